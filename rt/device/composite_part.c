/* composite_part.c: the operands of a composite. */
#include "composite_part.h"

#include <inttypes.h>

#include "datapass/math_ops.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "store/allocator.h"

bool part_given(const struct tl_operand *operand)
{
    return operand->is_number || operand->addr || operand->rows || operand->ld || operand->dtype || operand->unfit;
}

void part_check(const struct call *call, const struct part *part)
{
    const struct tl_operand *o = part->operand;
    uint64_t row = o->transposed ? part->rows : part->columns;
    if (o->is_number)
        call_error(call, "%s is a number", part->name);
    if (o->dtype >= DTYPES)
        call_error(call, "%s has no dtype", part->name);
    if (o->transposed && !part->transposable)
        call_error(call, "%s is transposed; only a and b of a gemm can be", part->name);
    if (o->unfit)
        call_error(call, "%s is made of a shard that is no matrix with elements in rows", part->name);
    if ((o->ld && o->ld < row) || o->ld >> SIZE_BITS)
        call_error(call, "%s has a leading dimension of %" PRIu64 ", its rows have %" PRIu64 " elements", part->name,
                   o->ld, row);
    bool vector = o->rows == 1 && o->cols >= part->rows && part->columns == 1;  /* of one axis: a column as well */
    if (o->rows && !vector && (o->rows < part->rows || o->cols < part->columns))
        call_error(call, "%s is %" PRIu64 " x %" PRIu64 ", %" PRIu64 " x %" PRIu64 " are computed with", part->name,
                   o->rows, o->cols, part->rows, part->columns);
}

/* ---- where it is */

static uint64_t ld_of(const struct part *part)
{
    const struct tl_operand *o = part->operand;
    return o->ld ? o->ld : o->transposed ? part->rows : part->columns;
}

/* From the first element to the end of the last. Rows span at least as many bytes as their elements have, so the blocks
 * that the timing moves from the address on lie within what is checked. */
static uint64_t span_bytes(const struct call *call, const struct part *part)
{
    bool transposed = part->operand->transposed;
    uint64_t lines = transposed ? part->columns : part->rows, length = transposed ? part->rows : part->columns;
    uint64_t elements;
    if (__builtin_mul_overflow(lines - 1, ld_of(part), &elements) || elements >> SIZE_BITS ||
        (elements + length) >> SIZE_BITS)
        call_fault(call, FAULT_BAD_ADDRESS, "%s has %" PRIu64 " rows of %" PRIu64 " elements: more than any memory",
                   part->name, lines, ld_of(part));
    return (elements + length) * dtype_bytes[part->operand->dtype];
}

/* Where its bytes are: in `one`, or in several where pages that follow one another lie apart. None: some of them are
 * not mapped, which the timing finds as well. */
static struct reach reach_of(const struct call *call, const struct part *part, struct range *one)
{
    const struct tl_operand *o = part->operand;
    uint64_t bytes = span_bytes(call, part);
    if (!call_translates(o->is_virtual)) {
        *one = call_range(call, part->name, o->addr, bytes);
        return (struct reach){one, 1};
    }
    struct reach reach = call_reach(call, o->addr, true, bytes);
    bool timing_faults = part->moves && !part->pinned && bytes == part->rows * part->columns * dtype_bytes[o->dtype];
    if (reach.count == 0 && !timing_faults)
        call_fault(call, FAULT_PAGE_FAULT, "%s at 0x%" PRIx64 ": not all of its pages are mapped to memory", part->name,
                   o->addr);
    return reach;
}

static struct view view_of(const struct part *part, uint32_t memory, uint64_t offset)
{
    const struct tl_operand *o = part->operand;
    uint64_t ld = ld_of(part);
    struct view view = view_matrix(memory, o->dtype, offset, part->rows, part->columns, o->transposed ? 1 : ld);
    if (o->transposed)
        view.stride[1] = ld;
    return view;
}

/* ---- in one place */

static uint64_t place_of(const struct call *call, const struct part *part)
{
    return room_staging(pe_number(call->tl->pe), part->place, span_bytes(call, part));
}

/* Between the pages and the place where all of them follow one another. */
static void copy_pages(const struct call *call, const struct part *part, const struct reach *reach, bool back)
{
    uint64_t offset = place_of(call, part);
    for (size_t i = 0; i < reach->count; i++) {
        const struct range *r = &reach->range[i];
        struct view page = view_bytes(r->memory, r->offset, r->bytes);
        struct view place = view_bytes(store_staging(), offset, r->bytes);
        struct op op = {.kind = OPKIND_memory, .name = back ? "scatter" : "gather",
                        .copy = {back ? place : page, back ? page : place}};
        call_record(call, &op);
        offset += r->bytes;
    }
}

/* Bytes between the rows of what is written come along, so that they go back as they were. */
static bool is_read(const struct part *part)
{
    return !part->written || ld_of(part) != part->columns;
}

struct view part_view(const struct call *call, const struct part *part)
{
    const struct tl_operand *o = part->operand;
    uint64_t size = dtype_bytes[o->dtype];
    struct range one;
    struct reach reach = reach_of(call, part, &one);
    if (reach.count == 0)
        return (struct view){.dtype = o->dtype};
    for (size_t i = 0; i < reach.count; i++) {
        if (part->pinned && !call_owns(call, &reach.range[i]))
            call_error(call, "%s is pinned, but at %s, not in this PE's TCM", part->name, address_name(o->addr));
        struct view page = view_bytes(reach.range[i].memory, reach.range[i].offset, reach.range[i].bytes);
        if (reach.count > 1)
            call_check_use(call, &page);
    }
    if (reach.range[0].offset % size)
        call_fault(call, FAULT_BAD_ADDRESS, "%s at %s is not aligned to %s", part->name, address_name(o->addr),
                   dtype_words[o->dtype]);
    if (reach.count == 1) {
        struct view view = view_of(part, reach.range[0].memory, reach.range[0].offset);
        call_check_use(call, &view);
        return view;
    }
    if (is_read(part))
        copy_pages(call, part, &reach, false);
    return view_of(part, store_staging(), place_of(call, part));
}

void part_spread(const struct call *call, const struct part *part)
{
    struct range one;
    struct reach reach = reach_of(call, part, &one);
    if (reach.count > 1)
        copy_pages(call, part, &reach, true);
}

/* ---- what is broadcast */

/* The shape of a second operand that does not say its own. */
static void usual_shape(uint16_t op, uint64_t m, uint64_t n, uint64_t *rows, uint64_t *columns)
{
    bool one = op == OP_scale || op == OP_quant || op == OP_dequant, row = op == OP_bias || op == OP_bias_add;
    *rows = one || row ? 1 : m;
    *columns = one ? 1 : n;
}

static void check_second(const struct call *call, uint16_t op, const char *name, const struct part *part, uint64_t m,
                         uint64_t n)
{
    bool row_only = op == OP_bias || op == OP_bias_add;
    bool row = row_only || op == OP_scale || op == OP_quant || op == OP_dequant;
    bool rows_fit = part->rows == 1 || (part->rows == m && !row);
    bool columns_fit = part->columns == n || (part->columns == 1 && !row_only);
    if (!rows_fit || !columns_fit)
        call_error(call, "%s of %" PRIu64 " x %" PRIu64 " is no %s%s for %" PRIu64 " x %" PRIu64 " elements", name,
                   part->rows, part->columns, row ? "row" : "block, row, column",
                   row_only ? "" : " or single element", m, n);
}

struct view part_second(const struct call *call, uint16_t op, const char *name, const struct tl_operand *operand,
                        uint64_t m, uint64_t n, unsigned place)
{
    struct part part = {.name = name, .operand = operand, .rows = operand->rows, .columns = operand->cols,
                        .place = place};
    if (part.rows == 0 || part.columns == 0)
        usual_shape(op, m, n, &part.rows, &part.columns);
    check_second(call, op, name, &part, m, n);
    part_check(call, &part);
    struct view view = part_view(call, &part);
    if (part.rows == 1)
        view.stride[0] = 0;
    if (part.columns == 1)
        view.stride[1] = 0;
    view.shape[0] = m;
    view.shape[1] = n;
    return view;
}
