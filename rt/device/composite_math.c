/* composite_math.c: tl_composite of TL_MATH: checks it, and makes of it what the timing does and what the data pass
 * computes. */
#include "composite.h"
#include "datapass/math_ops.h"
#include "base/ops.h"

static void check_sizes(const struct call *call, const struct tl_composite *ask)
{
    composite_check_size(call, "m", ask->m);
    composite_check_size(call, "n", ask->n);
    composite_check_size(call, "tile[0]", ask->tile[0]);
    composite_check_size(call, "tile[1]", ask->tile[1]);
    if (ask->k || ask->tile[2])
        call_error(call, "math has m and n, and tiles of two sizes, but k or tile[2] is given");
    if (ask->epilogues)
        call_error(call, "epilogues follow gemms, not math");
    if (ask->relation > TL_GE)
        call_error(call, "relation number %d is none", (int)ask->relation);
}

static uint16_t check_op(const struct call *call, const struct tl_composite *ask)
{
    uint16_t op = op_number(ask->math ? ask->math : "");
    unsigned operands = math_operands(op);
    if (operands == 0 || operands > 2)
        call_error(call, "'%s' is no op of one or two operands, element by element", ask->math ? ask->math : "");
    if (operands == 1 && part_given(&ask->src2))
        call_error(call, "%s has one operand, but src2 is given", ask->math);
    if (operands == 2 && !part_given(&ask->src2))
        call_error(call, "%s has two operands, but src2 is missing", ask->math);
    if (operands == 2 && !ask->src2.is_number && ask->src2.dtype >= DTYPES)
        call_error(call, "src2 has no dtype");
    return op;
}

tl_handle composite_math(const struct call *call, const struct tl_composite *ask)
{
    const struct part src = {.name = "src", .operand = &ask->src, .rows = ask->m, .columns = ask->n, .place = PART_A,
                             .moves = true};
    const struct part dst = {.name = "dst", .operand = &ask->dst, .rows = ask->m, .columns = ask->n, .place = PART_C,
                             .moves = true, .written = true};
    check_sizes(call, ask);
    struct op op = {.kind = OPKIND_math, .math = {.op = check_op(call, ask), .axis = NO_AXIS,
                                                  .relation = (uint8_t)ask->relation, .tile_m = ask->tile[0],
                                                  .tile_n = ask->tile[1]}};
    struct math *math = &op.math;
    char why[MATH_WHY];
    op.name = op_name(math->op);
    math->operands = (uint8_t)math_operands(math->op);
    math->has_scalar = math->operands == 2 && ask->src2.is_number;
    math->scalar = ask->src2.number;
    part_check(call, &src);
    part_check(call, &dst);
    math->operand[0].dtype = ask->src.dtype;
    math->operand[1].dtype = ask->src2.dtype;
    math->to.dtype = ask->dst.dtype;
    if (!math_defined(math, why))
        call_error(call, "%s", why);
    math->operand[0] = part_view(call, &src);
    math->to = part_view(call, &dst);
    if (math_views(math) == 2)
        math->operand[1] = part_second(call, math->op, "src2", &ask->src2, ask->m, ask->n, PART_B);
    if (math_overlaps(math))
        call_error(call, "dst lies over a part of an operand");
    struct request timed = {.kind = COMMAND_math_tiles, .dtype = ask->src.dtype, .out_dtype = ask->dst.dtype,
                            .op = math->op, .address = {ask->src.addr, 0, ask->dst.addr}, .m = ask->m, .n = ask->n,
                            .virtual_address = {call_translates(ask->src.is_virtual), false,
                                                call_translates(ask->dst.is_virtual)},
                            .tile_m = ask->tile[0], .tile_n = ask->tile[1]};
    return composite_submit(call, &timed, &op, &dst, math->operand[0].rank && math->to.rank);
}
