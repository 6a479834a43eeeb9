/* composite.c: tl_composite: checks a gemm, and makes of it what the timing does and what the data pass computes. */
#include <inttypes.h>
#include <string.h>

#include "device_call.h"
#include "dtype.h"
#include "kb/tl.h"
#include "plan.h"
#include "text/base.h"

enum { SIZE_BITS = 40 };                                /* more than any memory holds, and products of two fit */

/* An operand with what the composite makes of it. */
struct part {
    const char *name;
    const struct tl_operand *operand;
    uint64_t rows, columns;
    bool pinned, moves;                                 /* moves: the timing reads or writes it by DMA */
};

/* ---- KERNEL_ERROR */

static void check_size(const struct call *call, const char *name, uint64_t size)
{
    if (size == 0 || size >> SIZE_BITS)
        call_error(call, "%s is %" PRIu64 "; 1 to 2^%d - 1 are possible", name, size, SIZE_BITS);
}

static void check_sizes(const struct call *call, const struct tl_composite *ask)
{
    static const char *const names[] = {"m", "k", "n"}, *const tiles[] = {"tile[0]", "tile[1]", "tile[2]"};
    const uint64_t sizes[] = {ask->m, ask->k, ask->n};
    if (ask->op != TL_GEMM)
        call_error(call, "op number %d is none; TL_GEMM is", (int)ask->op);
    for (unsigned i = 0; i < 3; i++) {
        check_size(call, names[i], sizes[i]);
        check_size(call, tiles[i], ask->tile[i]);
    }
}

static void check_form(const struct call *call, const struct part *part)
{
    const struct tl_operand *o = part->operand;
    if (o->dtype >= DTYPES)
        call_error(call, "%s has no dtype", part->name);
    if (o->transposed)
        call_error(call, "%s is transposed, which is not supported: store it the other way round", part->name);
    if (o->unfit)
        call_error(call, "%s is made of a shard that is no matrix with elements in rows", part->name);
    if ((o->ld && o->ld < part->columns) || o->ld >> SIZE_BITS)
        call_error(call, "%s has a leading dimension of %" PRIu64 ", its rows have %" PRIu64 " elements", part->name,
                   o->ld, part->columns);
}

static void check_dtypes(const struct call *call, const struct tl_composite *ask)
{
    if (ask->a.dtype != ask->b.dtype)
        call_error(call, "a is %s and b is %s; they have to be the same", dtype_words[ask->a.dtype],
                   dtype_words[ask->b.dtype]);
    if (!dtype_is_float(ask->a.dtype) && ask->a.dtype != DTYPE_i8)
        call_error(call, "a gemm of %s is not supported; f32, f16, bf16 and i8 are", dtype_words[ask->a.dtype]);
}

static void check_epilogue(const struct call *call, const struct tl_composite *ask, const struct tl_epilogue *e)
{
    bool is_bias = e->op && (!strcmp(e->op, "bias") || !strcmp(e->op, "bias_add"));
    if (!is_bias && !(e->op && !strcmp(e->op, "relu")))
        call_error(call, "epilogue '%s' is not supported; relu, bias and bias_add are", e->op ? e->op : "");
    if ((unsigned)e->scope > TL_ONCE)
        call_error(call, "epilogue %s has no scope", e->op);
    if (!is_bias)
        return;
    check_form(call, &(struct part){.name = "the bias", .operand = &e->row, .columns = ask->n});
    if (dtype_is_float(e->row.dtype) != dtype_is_float(ask->a.dtype))
        call_error(call, "a bias of %s cannot be added to a gemm of %s", dtype_words[e->row.dtype],
                   dtype_words[ask->a.dtype]);
}

static void check_epilogues(const struct call *call, const struct tl_composite *ask)
{
    if (ask->epilogues > TL_EPILOGUES)
        call_error(call, "%u epilogues; %d are possible", ask->epilogues, TL_EPILOGUES);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        check_epilogue(call, ask, &ask->epilogue[i]);
}

/* ---- BAD_ADDRESS */

/* Where the bytes of an operand are. With nothing there for its DMA, which then faults, the range is empty. */
static struct range range_of(const struct call *call, const struct part *part, uint64_t ld, uint64_t bytes)
{
    const struct tl_operand *o = part->operand;
    if (!call_translates(o->is_virtual))
        return call_range(call, part->name, o->addr, bytes);
    struct reach reach = call_reach(call, o->addr, true, bytes);
    if (reach.count == 1)
        return reach.range[0];
    if (reach.count > 1)
        call_error(call, "the pages of %s at 0x%" PRIx64 " do not follow one another in memory", part->name, o->addr);
    if (!part->moves || part->pinned || ld != part->columns)
        call_fault(call, FAULT_PAGE_FAULT, "%s at 0x%" PRIx64 ": not all of its pages are mapped to memory", part->name,
                   o->addr);
    return (struct range){0};
}

/* The matrix in its memory; without axes if it has no range. Its rows span at least as many bytes as its elements have,
 * so the blocks that the timing moves from its address on lie within what is checked here. */
static struct view matrix_of(const struct call *call, const struct part *part)
{
    const struct tl_operand *o = part->operand;
    uint64_t ld = o->ld ? o->ld : part->columns, elements, size = dtype_bytes[o->dtype];
    if (__builtin_mul_overflow(part->rows - 1, ld, &elements) || elements + part->columns < elements ||
        (elements + part->columns) >> SIZE_BITS)
        call_fault(call, FAULT_BAD_ADDRESS, "%s has %" PRIu64 " rows of %" PRIu64 " elements: more than any memory",
                   part->name, part->rows, ld);
    struct range range = range_of(call, part, ld, (elements + part->columns) * size);
    if (range.bytes == 0)
        return (struct view){.dtype = o->dtype};
    if (part->pinned && !call_owns(call, &range))
        call_error(call, "%s is pinned, but at %s, not in this PE's TCM", part->name, address_name(o->addr));
    if (range.offset % size)
        call_fault(call, FAULT_BAD_ADDRESS, "%s at %s is not aligned to %s", part->name, address_name(o->addr),
                   dtype_words[o->dtype]);
    struct view view = view_matrix(range.memory, o->dtype, range.offset, part->rows, part->columns, ld);
    call_check_use(call, &view);
    return view;
}

static void check_overlap(const struct call *call, const struct gemm *g)
{
    if (view_overlap(&g->c, &g->a) || view_overlap(&g->c, &g->b))
        call_error(call, "c lies where a or b does");
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].has_operand && view_overlap(&g->c, &g->epilogue[i].operand))
            call_error(call, "c lies where a bias does");
}

static const struct gemm_epilogue *epilogues_of(const struct call *call, const struct tl_composite *ask,
                                                struct epilogue **timed)
{
    static const enum scope scopes[] = {[TL_K_TILE] = SCOPE_K_TILE, [TL_OUTPUT_TILE] = SCOPE_OUTPUT_TILE,
                                        [TL_ONCE] = SCOPE_ONCE};
    struct gemm_epilogue *epilogues = arena_alloc(ask->epilogues, sizeof *epilogues);
    *timed = arena_alloc(ask->epilogues, sizeof **timed);
    for (uint32_t i = 0; i < ask->epilogues; i++) {
        const struct tl_epilogue *e = &ask->epilogue[i];
        bool is_relu = !strcmp(e->op, "relu");
        uint16_t timed_op = is_relu ? OP_relu : !strcmp(e->op, "bias") ? OP_bias : OP_bias_add;
        (*timed)[i] = (struct epilogue){timed_op, scopes[e->scope]};
        epilogues[i] = (struct gemm_epilogue){.op = is_relu ? OP_relu : OP_bias, .scope = scopes[e->scope]};
        if (is_relu)
            continue;
        epilogues[i].has_operand = true;
        struct view *row = &epilogues[i].operand;
        *row = matrix_of(call, &(struct part){"the bias", &e->row, 1, ask->n, false, false});
        row->shape[0] = ask->m;
        row->stride[0] = 0;
    }
    return epilogues;
}

tl_handle tl_composite_at(struct tl *tl, const struct tl_composite *ask, const char *file, uint32_t line)
{
    static const char *const names[DTYPES] = {
#define DTYPE(name, bytes, is_float) "gemm_" #name,
#include "kb/dtypes.def"
#undef DTYPE
    };
    struct call call = {tl, "tl_composite", file, line};
    const struct part a = {"a", &ask->a, ask->m, ask->k, ask->pin_a, true};
    const struct part b = {"b", &ask->b, ask->k, ask->n, ask->pin_b, true};
    const struct part c = {"c", &ask->c, ask->m, ask->n, false, true};
    check_sizes(&call, ask);
    check_form(&call, &a);
    check_form(&call, &b);
    check_form(&call, &c);
    check_dtypes(&call, ask);
    check_epilogues(&call, ask);
    struct op op = {.kind = OPKIND_gemm, .gemm = {.a = matrix_of(&call, &a), .b = matrix_of(&call, &b),
                    .c = matrix_of(&call, &c), .tile_m = ask->tile[0], .tile_k = ask->tile[1], .tile_n = ask->tile[2]}};
    op.name = names[ask->a.dtype];
    struct request timed = {.kind = COMMAND_gemm_tiles, .dtype = ask->a.dtype, .out_dtype = ask->c.dtype,
                            .pinned = {ask->pin_a, ask->pin_b}, .address = {ask->a.addr, ask->b.addr, ask->c.addr},
                            .virtual_address = {call_translates(ask->a.is_virtual), call_translates(ask->b.is_virtual),
                                                call_translates(ask->c.is_virtual)},
                            .m = ask->m, .k = ask->k, .n = ask->n,
                            .tile_m = ask->tile[0], .tile_k = ask->tile[1], .tile_n = ask->tile[2],
                            .epilogues = ask->epilogues};
    struct epilogue *timed_epilogues;
    op.gemm.epilogue = epilogues_of(&call, ask, &timed_epilogues);
    op.gemm.epilogues = ask->epilogues;
    timed.epilogue = timed_epilogues;
    check_overlap(&call, &op.gemm);
    bool there = op.gemm.a.rank && op.gemm.b.rank && op.gemm.c.rank;
    return call_submit(&call, &timed, there ? &op : NULL);
}
