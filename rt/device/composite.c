/* composite.c: tl_composite: a gemm or math on matrices in any memory, as one command of many tiles.
 *
 * Two things are made of a call: the request, which is timed, and the op, whose views the data pass computes with. An
 * operand whose pages lie apart is gathered into a staging area ahead of the command, and a result is scattered from
 * there: these copies are part of the data pass, not of the timing. */
#include <inttypes.h>

#include "axes.h"
#include "base/dtype.h"
#include "base/ops.h"
#include "call.h"
#include "common/array.h"
#include "datapass/gemm.h"
#include "datapass/math.h"
#include "device.h"
#include "hazards.h"
#include "kb/arith.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "store/allocator.h"

enum { SIZE_BITS = 40 };                                /* sizes are below 2^40: beyond any memory */

static void check_size(const struct call *call, const char *name, uint64_t size)
{
    if (size == 0 || size >> SIZE_BITS)
        call_error(call, "%s is %" PRIu64 "; 1 to 2^%d - 1 are possible", name, size, SIZE_BITS);
}

/* ---- matrices: the operands and the result */

/* Each operand has its own staging area. */
enum { AREA_A, AREA_B, AREA_C, AREA_EPILOGUE };

struct matrix {
    const char *name;
    const struct tl_operand *operand;
    uint64_t rows, columns;                             /* that the composite uses */
    unsigned area;                                      /* AREA_A ...; AREA_EPILOGUE + i */
    bool pinned;
    bool moves;                                         /* the DMA reads or writes it */
    bool transposable, written;                         /* transposable: it may also have axes of its own */
};

/* Returns whether a second operand was given: one that was not is all 0. */
static bool is_given(const struct tl_operand *operand)
{
    return operand->is_number || operand->addr || operand->rows || operand->ld || operand->dtype || operand->unfit
           || operand->axes;
}

/* KERNEL_ERROR: axes that the operand cannot have, that give another matrix, or that reach beyond the shard. */
static void check_axes(const struct call *call, const struct matrix *matrix)
{
    const struct tl_operand *o = matrix->operand;
    const char *name = matrix->name;
    if (!matrix->transposable)
        call_error(call, "%s has axes of its own; only a and b of a gemm can have them", name);
    if (!matrix->pinned)
        call_error(call, "%s has axes of its own, and is not pinned", name);
    if (call_translates(o->is_virtual))
        call_error(call, "%s has axes of its own, and is at a virtual address", name);
    if (o->transposed || o->ld)
        call_error(call, "%s has axes of its own, and %s: its axes say where each element lies", name,
                   o->transposed ? "is transposed" : "a leading dimension");
    uint64_t rows = axes_product(o->axes->row), columns = axes_product(o->axes->col), reach = axes_reach(o->axes);
    if (rows != matrix->rows || columns != matrix->columns)
        call_error(call, "%s is %" PRIu64 " x %" PRIu64 " by its axes, but the op needs %" PRIu64 " x %" PRIu64, name,
                   rows, columns, matrix->rows, matrix->columns);
    if (reach >= o->span)
        call_error(call, "%s reaches element %" PRIu64 " by its axes, but its shard has %" PRIu64, name, reach, o->span);
}

/* KERNEL_ERROR: a number, no dtype, not a matrix, or too small. */
static void check_matrix(const struct call *call, const struct matrix *matrix)
{
    const struct tl_operand *o = matrix->operand;
    const char *name = matrix->name;
    uint64_t row = o->transposed ? matrix->rows : matrix->columns;
    if (o->is_number)
        call_error(call, "%s is a number", name);
    if (o->dtype >= DTYPES)
        call_error(call, "%s has no dtype", name);
    if (o->transposed && !matrix->transposable)
        call_error(call, "%s is transposed; only a and b of a gemm can be", name);
    if (o->axes && !o->unfit) {
        check_axes(call, matrix);
        return;
    }
    if (o->unfit)
        call_error(call, "%s is made of a shard that is not a matrix with consecutive elements in its rows", name);
    if ((o->ld && o->ld < row) || o->ld >> SIZE_BITS)
        call_error(call, "%s has a leading dimension of %" PRIu64 ", its rows have %" PRIu64 " elements", name, o->ld,
                   row);
    bool vector = o->rows == 1 && o->cols >= matrix->rows && matrix->columns == 1;      /* one axis: also a column */
    if (o->rows && !vector && (o->rows < matrix->rows || o->cols < matrix->columns))
        call_error(call, "%s is %" PRIu64 " x %" PRIu64 ", but the op needs %" PRIu64 " x %" PRIu64, name, o->rows,
                   o->cols, matrix->rows, matrix->columns);
}

static uint64_t leading_dimension(const struct matrix *matrix)
{
    const struct tl_operand *o = matrix->operand;
    return o->ld ? o->ld : o->transposed ? matrix->rows : matrix->columns;
}

/* Bytes from the first element to the end of the last. A row spans at least the bytes of its elements, so the blocks
 * that the timing moves from the address on lie within what is checked here. */
static uint64_t span_bytes(const struct call *call, const struct matrix *matrix)
{
    if (matrix->operand->axes)
        return kb_product(kb_sum(axes_reach(matrix->operand->axes), 1), dtype_bytes[matrix->operand->dtype]);
    bool transposed = matrix->operand->transposed;
    uint64_t lines = transposed ? matrix->columns : matrix->rows, length = transposed ? matrix->rows : matrix->columns;
    uint64_t ld = leading_dimension(matrix), elements;
    if (__builtin_mul_overflow(lines - 1, ld, &elements) || elements >> SIZE_BITS || (elements + length) >> SIZE_BITS)
        call_fault(call, FAULT_BAD_ADDRESS, "%s has %" PRIu64 " rows of %" PRIu64 " elements: more than any memory",
                   matrix->name, lines, ld);
    return (elements + length) * dtype_bytes[matrix->operand->dtype];
}

static struct view view_in(const struct matrix *matrix, uint32_t memory, uint64_t offset)
{
    const struct tl_operand *o = matrix->operand;
    uint64_t ld = leading_dimension(matrix);
    struct view view = view_matrix(memory, o->dtype, offset, matrix->rows, matrix->columns, o->transposed ? 1 : ld);
    if (o->transposed)
        view.stride[1] = ld;
    return view;
}

/* ---- where a matrix lies */

/* The ranges of memory that hold the matrix, in order of address, as the last call of locate found them. */
static struct range_list ARRAY(struct range) ranges;

/* Finds the ranges: one, or several if consecutive pages lie apart. None if a page is unmapped and the timing will
 * fault; PAGE_FAULT if the timing will not. */
static const struct range_list *locate(const struct call *call, const struct matrix *matrix)
{
    const struct tl_operand *o = matrix->operand;
    uint64_t bytes = span_bytes(call, matrix);
    ranges.count = 0;
    if (!call_translates(o->is_virtual)) {
        struct range range = call_range(call, matrix->name, o->addr, bytes);
        *array_add(&ranges) = range;
        return &ranges;
    }
    struct translation t = mmu_look(call->tl->pe, o->addr, bytes);
    bool good = !t.unmapped;
    for (size_t i = 0; good && i < t.count; i++)
        good = !address_decode(t.runs[i].address, t.runs[i].bytes, array_add(&ranges));
    if (good)
        return &ranges;
    bool timing_faults = matrix->moves && !matrix->pinned &&
                         bytes == matrix->rows * matrix->columns * dtype_bytes[o->dtype];
    if (!timing_faults)
        call_fault(call, FAULT_PAGE_FAULT, "%s at 0x%" PRIx64 ": not all of its pages are mapped to memory",
                   matrix->name, o->addr);
    ranges.count = 0;
    return &ranges;
}

/* Records copies between the pages of a matrix and its staging area, where they follow one another. */
static void record_copies(const struct call *call, const struct matrix *matrix, const struct range_list *pages,
                          bool scatter)
{
    uint64_t offset = allocator_staging(pe_number(call->tl->pe), matrix->area, span_bytes(call, matrix));
    for (size_t i = 0; i < pages->count; i++) {
        const struct range *r = &pages->at[i];
        struct view page = view_bytes(r->memory, r->offset, r->bytes);
        struct view staged = view_bytes(store_staging(), offset, r->bytes);
        struct op op = {.kind = OPKIND_memory, .name = scatter ? "scatter" : "gather",
                        .copy = {scatter ? staged : page, scatter ? page : staged}};
        call_record(call, &op);
        offset += r->bytes;
    }
}

static void record_copy(const struct view *from, const struct view *to, void *call)
{
    struct op op = {.kind = OPKIND_memory, .name = "gather", .copy = {*from, *to}};
    hazards_check_use(call, from);
    call_record(call, &op);
}

/* The elements of an operand with axes of its own, as a view where they lie, or brought together. */
static struct view view_with_axes(const struct call *call, const struct matrix *matrix, const struct range *range)
{
    struct axes axes = axes_of(matrix->operand->axes);
    struct view view = {.memory = range->memory, .dtype = matrix->operand->dtype, .offset = range->offset};
    if (axes_view(&axes, &view)) {
        hazards_check_use(call, &view);
        return view;
    }
    uint64_t bytes = kb_product(kb_product(matrix->rows, matrix->columns), dtype_bytes[view.dtype]);
    if (bytes > OFFSET_MASK)
        call_error(call, "%s has %" PRIu64 " x %" PRIu64 " elements, more than any memory", matrix->name, matrix->rows,
                   matrix->columns);
    uint64_t offset = allocator_staging(pe_number(call->tl->pe), matrix->area, bytes);
    struct view together = view_matrix(store_staging(), view.dtype, offset, matrix->rows, matrix->columns,
                                       matrix->columns);
    axes_each_copy(&axes, &view, &together, record_copy, (void *)call);
    return together;
}

/* Returns the matrix as the data pass uses it; rank 0 if its DMA will fault because a page is unmapped. */
static struct view matrix_view(const struct call *call, const struct matrix *matrix)
{
    const struct tl_operand *o = matrix->operand;
    const struct range_list *found = locate(call, matrix);
    if (found->count == 0)
        return (struct view){.dtype = o->dtype};
    for (size_t i = 0; i < found->count; i++) {
        const struct range *r = &found->at[i];
        if (matrix->pinned && !(r->space == SPACE_TCM && r->number == pe_number(call->tl->pe)))
            call_error(call, "%s is pinned, but at %s, not in this PE's TCM", matrix->name, address_name(o->addr));
        struct view page = view_bytes(r->memory, r->offset, r->bytes);
        if (found->count > 1)
            hazards_check_use(call, &page);
    }
    if (found->at[0].offset % dtype_bytes[o->dtype])
        call_fault(call, FAULT_BAD_ADDRESS, "%s at %s is not aligned to %s", matrix->name, address_name(o->addr),
                   dtype_words[o->dtype]);
    if (o->axes)
        return view_with_axes(call, matrix, &found->at[0]);
    if (found->count == 1) {
        struct view view = view_in(matrix, found->at[0].memory, found->at[0].offset);
        hazards_check_use(call, &view);
        return view;
    }
    /* A result with gaps between its rows is gathered, too: the gaps are scattered with it, and must not change. */
    if (!matrix->written || leading_dimension(matrix) != matrix->columns)
        record_copies(call, matrix, found, false);
    return view_in(matrix, store_staging(), allocator_staging(pe_number(call->tl->pe), matrix->area,
                                                         span_bytes(call, matrix)));
}

/* The second operand of an op on m x n elements: of that size, or a row, column or single element that is broadcast.
 * An operand that does not give its shape has the usual one of the op. */
static struct view second_view(const struct call *call, uint16_t op, const char *name,
                               const struct tl_operand *operand, uint64_t m, uint64_t n, unsigned area)
{
    struct matrix matrix = {.name = name, .operand = operand, .rows = operand->rows, .columns = operand->cols,
                            .area = area};
    enum op_second second = (enum op_second)op_traits(op).second;
    bool row_only = second == SECOND_ROW, scale = second == SECOND_SCALE;
    if (matrix.rows == 0 || matrix.columns == 0) {
        matrix.rows = scale || row_only ? 1 : m;
        matrix.columns = scale ? 1 : n;
    }
    bool rows_fit = matrix.rows == 1 || (matrix.rows == m && !row_only && !scale);
    bool columns_fit = matrix.columns == n || (matrix.columns == 1 && !row_only);
    if (!rows_fit || !columns_fit)
        call_error(call, "%s of %" PRIu64 " x %" PRIu64 " is not a %s for %" PRIu64 " x %" PRIu64 " elements", name,
                   matrix.rows, matrix.columns,
                   row_only ? "row" : scale ? "row or single element" : "block, row, column or single element", m, n);
    check_matrix(call, &matrix);
    struct view view = matrix_view(call, &matrix);
    untimed.operand_bytes += matrix.rows * matrix.columns * dtype_bytes[operand->dtype];
    if (matrix.rows == 1)
        view.stride[0] = 0;
    if (matrix.columns == 1)
        view.stride[1] = 0;
    view.shape[0] = m;
    view.shape[1] = n;
    return view;
}

/* Submits a composite, whose result is `written`. Unless all is mapped it has no effect on data: its DMA faults. */
static tl_handle submit(const struct call *call, struct request *timed, struct op *op, const struct matrix *written,
                        bool mapped)
{
    if (!mapped)
        return call_submit(call, timed, NULL);
    struct op_ref *record = op_ref_hold(call_record(call, op));
    const struct range_list *pages = locate(call, written);
    if (pages->count > 1)
        record_copies(call, written, pages, true);
    tl_handle handle = call_submit_recorded(call, timed, record);
    op_ref_drop(record);
    return handle;
}

/* ---- epilogues of a gemm */

/* Checks an epilogue as a math op on accumulators, which are f32 or i32. Its result is the same, unless it converts. */
static void check_defined(const struct call *call, const struct tl_composite *ask, const struct tl_epilogue *e,
                          uint16_t op, bool floats)
{
    enum dtype values = floats ? DTYPE_f32 : DTYPE_i32;
    struct math math = {.op = op, .operands = op_traits(op).operands, .has_scalar = e->operand.is_number,
                        .scalar = e->operand.number, .to.dtype = values, .operand = {{.dtype = values}}};
    char why[MATH_WHY];
    enum op_domain domain = (enum op_domain)op_traits(op).domain;
    if (domain == DOMAIN_QUANT || domain == DOMAIN_CAST)
        math.to.dtype = ask->c.dtype;
    else if (domain == DOMAIN_DEQUANT)
        math.to.dtype = DTYPE_f32;
    if (op_traits(op).operands == 2 && e->operand.dtype >= DTYPES && !e->operand.is_number)
        call_error(call, "the operand of epilogue %s has no dtype", e->op);
    math.operand[1].dtype = e->operand.dtype;
    if (!math_defined(&math, why))
        call_error(call, "epilogue: %s", why);
}

static uint16_t check_epilogue(const struct call *call, const struct tl_composite *ask, const struct tl_epilogue *e,
                               bool floats)
{
    uint16_t op = op_number(e->op ? e->op : "");
    unsigned operands = op_traits(op).operands;
    enum op_domain domain = (enum op_domain)op_traits(op).domain;
    if (operands == 0 || operands > 2 || domain == DOMAIN_COMPARE || domain == DOMAIN_LOOKUP)
        call_error(call, "'%s' is not an epilogue", e->op ? e->op : "");
    if (operands == 1 && is_given(&e->operand))
        call_error(call, "epilogue %s takes no operand, but one is given", e->op);
    if (operands == 2 && !is_given(&e->operand))
        call_error(call, "epilogue %s takes an operand, but none is given", e->op);
    check_defined(call, ask, e, op, floats);
    if (!floats && e->scope != TL_OUTPUT_TILE && gemm_epilogue_makes_floats(op, ask->c.dtype))
        call_error(call, "epilogue %s makes f32 of i32, for all of c: its scope has to be TL_OUTPUT_TILE", e->op);
    return op;
}

/* Checks the epilogues in the order in which they are applied, scope by scope: one may make floats for the next. */
static void set_epilogues(const struct call *call, const struct tl_composite *ask, struct gemm_epilogue *data,
                          struct epilogue *timed)
{
    static const enum tl_scope scopes[SCOPES] = {[SCOPE_K_TILE] = TL_K_TILE, [SCOPE_OUTPUT_TILE] = TL_OUTPUT_TILE,
                                                 [SCOPE_ONCE] = TL_ONCE};
    bool floats = dtype_is_float(ask->a.dtype);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        if ((unsigned)ask->epilogue[i].scope > TL_ONCE)
            call_error(call, "epilogue %s has no scope", ask->epilogue[i].op ? ask->epilogue[i].op : "");
    for (enum scope scope = SCOPE_K_TILE; scope < SCOPES; scope++)
        for (uint32_t i = 0; i < ask->epilogues; i++) {
            const struct tl_epilogue *e = &ask->epilogue[i];
            if (e->scope != scopes[scope])
                continue;
            uint16_t op = check_epilogue(call, ask, e, floats);
            floats |= gemm_epilogue_makes_floats(op, ask->c.dtype);
            timed[i] = (struct epilogue){op, (uint8_t)scope};
            data[i] = (struct gemm_epilogue){.op = op, .scope = (uint8_t)scope, .scalar = e->operand.number,
                                             .has_scalar = op_traits(op).operands == 2 && e->operand.is_number,
                                             .has_operand = op_traits(op).operands == 2 && !e->operand.is_number};
        }
}

/* ---- gemm */

struct meeting {
    const struct view *c;
    bool found;
};

static void look_for_overlap(const struct view *from, const struct view *to, void *arg)
{
    struct meeting *meeting = arg;
    (void)to;
    meeting->found |= view_overlap(meeting->c, from);
}

/* Whether c has bytes of an operand, which may have been brought together. */
static bool overlaps(const struct call *call, const struct view *c, const struct matrix *matrix, const struct view *view)
{
    if (!matrix->operand->axes || view->memory != store_staging())
        return view_overlap(c, view);
    const struct range *range = &locate(call, matrix)->at[0];
    struct axes axes = axes_of(matrix->operand->axes);
    struct view from = {.memory = range->memory, .dtype = view->dtype, .offset = range->offset};
    struct meeting meeting = {.c = c};
    axes_each_copy(&axes, &from, view, look_for_overlap, &meeting);
    return meeting.found;
}

static tl_handle submit_gemm(const struct call *call, const struct tl_composite *ask)
{
    static const char *const sizes[] = {"m", "k", "n"}, *const tiles[] = {"tile[0]", "tile[1]", "tile[2]"};
    const struct matrix a = {.name = "a", .operand = &ask->a, .rows = ask->m, .columns = ask->k, .area = AREA_A,
                             .pinned = ask->pin_a, .moves = true, .transposable = true};
    const struct matrix b = {.name = "b", .operand = &ask->b, .rows = ask->k, .columns = ask->n, .area = AREA_B,
                             .pinned = ask->pin_b, .moves = true, .transposable = true};
    const struct matrix c = {.name = "c", .operand = &ask->c, .rows = ask->m, .columns = ask->n, .area = AREA_C,
                             .moves = true, .written = true};
    for (unsigned i = 0; i < 3; i++) {
        check_size(call, sizes[i], (const uint64_t[]){ask->m, ask->k, ask->n}[i]);
        check_size(call, tiles[i], ask->tile[i]);
    }
    check_matrix(call, &a);
    check_matrix(call, &b);
    check_matrix(call, &c);
    call_gemm_dtypes(call, ask->a.dtype, ask->b.dtype);
    if (ask->epilogues > TL_EPILOGUES)
        call_error(call, "%u epilogues; at most %d are possible", ask->epilogues, TL_EPILOGUES);
    struct gemm_epilogue epilogues[TL_EPILOGUES];
    struct epilogue timed_epilogues[TL_EPILOGUES];
    set_epilogues(call, ask, epilogues, timed_epilogues);
    static struct op op;
    op = (struct op){.kind = OPKIND_gemm, .name = gemm_name(ask->a.dtype),
                     .gemm = {.tile_m = ask->tile[0], .tile_k = ask->tile[1], .tile_n = ask->tile[2],
                              .epilogue = epilogues, .epilogues = ask->epilogues}};
    struct gemm *g = &op.gemm;
    g->a = matrix_view(call, &a);
    g->b = matrix_view(call, &b);
    g->c = matrix_view(call, &c);
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (epilogues[i].has_operand)
            epilogues[i].operand = second_view(call, epilogues[i].op, "the operand of an epilogue",
                                               &ask->epilogue[i].operand, ask->m, ask->n, AREA_EPILOGUE + i);
    if (overlaps(call, &g->c, &a, &g->a) || overlaps(call, &g->c, &b, &g->b))
        call_error(call, "c overlaps a or b");
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (epilogues[i].has_operand && view_overlap(&g->c, &epilogues[i].operand))
            call_error(call, "c overlaps the operand of an epilogue");
    static struct request timed;
    timed = (struct request){.kind = COMMAND_gemm_tiles, .dtype = ask->a.dtype, .out_dtype = ask->c.dtype,
                             .pinned = {ask->pin_a, ask->pin_b}, .address = {ask->a.addr, ask->b.addr, ask->c.addr},
                             .virtual_address = {call_translates(ask->a.is_virtual), call_translates(ask->b.is_virtual),
                                                 call_translates(ask->c.is_virtual)},
                             .m = ask->m, .k = ask->k, .n = ask->n,
                             .tile_m = ask->tile[0], .tile_k = ask->tile[1], .tile_n = ask->tile[2],
                             .epilogues = ask->epilogues, .epilogue = timed_epilogues};
    return submit(call, &timed, &op, &c, g->a.rank && g->b.rank && g->c.rank);
}

/* ---- math */

static uint16_t check_math(const struct call *call, const struct tl_composite *ask)
{
    check_size(call, "m", ask->m);
    check_size(call, "n", ask->n);
    check_size(call, "tile[0]", ask->tile[0]);
    check_size(call, "tile[1]", ask->tile[1]);
    if (ask->k || ask->tile[2])
        call_error(call, "math has m and n, and tiles of two sizes, but k or tile[2] is given");
    if (ask->epilogues)
        call_error(call, "math has no epilogues; a gemm has");
    if (ask->relation > TL_GE)
        call_error(call, "there is no relation number %d", (int)ask->relation);
    const char *name = ask->math ? ask->math : "";
    uint16_t op = op_number(name);
    unsigned operands = op_traits(op).operands;
    if (operands == 0 || operands > 2 || op_traits(op).domain == DOMAIN_LOOKUP)
        call_error(call, "'%s' is not an elementwise op of one or two operands", name);
    if (operands == 1 && is_given(&ask->src2))
        call_error(call, "%s takes one operand, but src2 is given", name);
    if (operands == 2 && !is_given(&ask->src2))
        call_error(call, "%s takes two operands, but src2 is missing", name);
    if (operands == 2 && !ask->src2.is_number && ask->src2.dtype >= DTYPES)
        call_error(call, "src2 has no dtype");
    return op;
}

static tl_handle submit_math(const struct call *call, const struct tl_composite *ask)
{
    const struct matrix src = {.name = "src", .operand = &ask->src, .rows = ask->m, .columns = ask->n, .area = AREA_A,
                               .moves = true};
    const struct matrix dst = {.name = "dst", .operand = &ask->dst, .rows = ask->m, .columns = ask->n, .area = AREA_C,
                               .moves = true, .written = true};
    static struct op op;
    op = (struct op){.kind = OPKIND_math, .math = {.op = check_math(call, ask), .axis = NO_AXIS,
                                                   .relation = (uint8_t)ask->relation, .tile_m = ask->tile[0],
                                                   .tile_n = ask->tile[1]}};
    struct math *math = &op.math;
    char why[MATH_WHY];
    op.name = op_name(math->op);
    math->operands = op_traits(math->op).operands;
    math->has_scalar = math->operands == 2 && ask->src2.is_number;
    math->scalar = ask->src2.number;
    check_matrix(call, &src);
    check_matrix(call, &dst);
    math->operand[0].dtype = ask->src.dtype;
    math->operand[1].dtype = ask->src2.dtype;
    math->to.dtype = ask->dst.dtype;
    if (!math_defined(math, why))
        call_error(call, "%s", why);
    math->operand[0] = matrix_view(call, &src);
    math->to = matrix_view(call, &dst);
    if (math_views(math) == 2)
        math->operand[1] = second_view(call, math->op, "src2", &ask->src2, ask->m, ask->n, AREA_B);
    if (math_overlaps(math))
        call_error(call, "dst overlaps a part of an operand");
    static struct request timed;
    timed = (struct request){.kind = COMMAND_math_tiles, .dtype = ask->src.dtype, .out_dtype = ask->dst.dtype,
                             .op = math->op, .address = {ask->src.addr, 0, ask->dst.addr}, .m = ask->m, .n = ask->n,
                             .virtual_address = {call_translates(ask->src.is_virtual), false,
                                                 call_translates(ask->dst.is_virtual)},
                             .tile_m = ask->tile[0], .tile_n = ask->tile[1]};
    return submit(call, &timed, &op, &dst, math->operand[0].rank && math->to.rank);
}

tl_handle tl_composite_at(struct tl *tl, const struct tl_composite *ask, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_composite", file, line);
    if (ask->op == TL_MATH)
        return submit_math(&call, ask);
    if (ask->op != TL_GEMM)
        call_error(&call, "there is no op number %d; TL_GEMM and TL_MATH are possible", (int)ask->op);
    return submit_gemm(&call, ask);
}
