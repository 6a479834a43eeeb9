/* simple.c: tl_math: one op on whole buffers, as one command of pe_math. */
#include "device_call.h"
#include "exec.h"
#include "ops.h"
#include "plan.h"

/* A buffer as a matrix of one row. */
static struct view matrix_of(const struct call *call, const struct tl_shard *shard)
{
    struct range range = call_buffer(call, shard);
    uint64_t size = dtype_bytes[shard->dtype], count = range.bytes / size;
    if (range.offset % size)
        call_fault(call, FAULT_BAD_ADDRESS, "the buffer at %s is not aligned to %s", address_name(shard->addr),
                   dtype_words[shard->dtype]);
    return view_matrix(range.memory, shard->dtype, range.offset, 1, count, count);
}

/* In place is well; a part is not. */
static void check_overlap(const struct call *call, const struct view *to, const struct view *from)
{
    uint64_t bytes = view_span(to);
    uint64_t apart = to->offset > from->offset ? to->offset - from->offset : from->offset - to->offset;
    if (apart > 0 && apart < bytes)
        call_error(call, "the result lies over a part of an operand");
}

static tl_handle submit(const struct call *call, const char *name, const struct tl_shard *to, const struct tl_shard *x,
                        const struct tl_shard *y)
{
    uint16_t number = name ? op_number(name) : 0;
    if (!name || !exec_has_math(number, 2))
        call_error(call, "op '%s' is not supported; add, mul, min and max are", name ? name : "");
    call_bytes(call, to);
    call_same_shape(call, to, x);
    call_same_shape(call, to, y);
    struct op op = {.kind = OPKIND_math, .name = op_name(number),
                    .math = {.op = number, .operands = 2, .axis = NO_AXIS, .to = matrix_of(call, to),
                             .operand = {matrix_of(call, x), matrix_of(call, y)}}};
    for (uint32_t i = 0; i < 2; i++)
        check_overlap(call, &op.math.to, &op.math.operand[i]);
    struct request ask = {.kind = COMMAND_math, .dtype = to->dtype, .op = number, .n = op.math.to.shape[1]};
    return call_submit(call, &ask, &op);
}

void tl_math_at(struct tl *tl, const char *op, struct tl_shard to, struct tl_shard x, struct tl_shard y,
                const char *file, uint32_t line)
{
    struct call call = {tl, "tl_math", file, line};
    call_wait(&call, submit(&call, op, &to, &x, &y));
}

tl_handle tl_math_async_at(struct tl *tl, const char *op, struct tl_shard to, struct tl_shard x, struct tl_shard y,
                           const char *file, uint32_t line)
{
    struct call call = {tl, "tl_math_async", file, line};
    return submit(&call, op, &to, &x, &y);
}
