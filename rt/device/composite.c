/* composite.c: tl_composite: checks a gemm, and makes of it what the timing does and what the data pass computes.
 * composite_math.c has math. */
#include "composite.h"

#include <inttypes.h>

#include "composite_part.h"
#include "base/dtype.h"
#include "datapass/gemm_epilogue.h"
#include "datapass/math_ops.h"
#include "base/ops.h"
#include "machine/tiling.h"

/* ---- KERNEL_ERROR */

void composite_check_size(const struct call *call, const char *name, uint64_t size)
{
    if (size == 0 || size >> SIZE_BITS)
        call_error(call, "%s is %" PRIu64 "; 1 to 2^%d - 1 are possible", name, size, SIZE_BITS);
}

static void check_sizes(const struct call *call, const struct tl_composite *ask)
{
    static const char *const names[] = {"m", "k", "n"}, *const tiles[] = {"tile[0]", "tile[1]", "tile[2]"};
    const uint64_t sizes[] = {ask->m, ask->k, ask->n};
    for (unsigned i = 0; i < 3; i++) {
        composite_check_size(call, names[i], sizes[i]);
        composite_check_size(call, tiles[i], ask->tile[i]);
    }
}

/* ---- epilogues */

/* The op on values of a class, as a math op: its result is of the same class, or what the op makes of it. */
static void check_defined(const struct call *call, const struct tl_composite *ask, const struct tl_epilogue *e,
                          uint16_t op, bool floats)
{
    enum dtype values = floats ? DTYPE_f32 : DTYPE_i32;
    struct math math = {.op = op, .operands = (uint8_t)math_operands(op), .has_scalar = e->operand.is_number,
                        .scalar = e->operand.number, .to.dtype = values, .operand = {{.dtype = values}}};
    char why[MATH_WHY];
    if (op == OP_quant || op == OP_cast)
        math.to.dtype = ask->c.dtype;
    else if (op == OP_dequant)
        math.to.dtype = DTYPE_f32;
    if (math_operands(op) == 2 && e->operand.dtype >= DTYPES && !e->operand.is_number)
        call_error(call, "the operand of epilogue %s has no dtype", e->op);
    math.operand[1].dtype = e->operand.dtype;
    if (!math_defined(&math, why))
        call_error(call, "epilogue: %s", why);
}

static uint16_t check_epilogue(const struct call *call, const struct tl_composite *ask, const struct tl_epilogue *e,
                               bool floats)
{
    uint16_t op = op_number(e->op ? e->op : "");
    unsigned operands = math_operands(op);
    if (operands == 0 || operands > 2 || op == OP_cmp)
        call_error(call, "'%s' is no epilogue", e->op ? e->op : "");
    if ((unsigned)e->scope > TL_ONCE)
        call_error(call, "epilogue %s has no scope", e->op);
    if (operands == 1 && part_given(&e->operand))
        call_error(call, "epilogue %s has no operand, but one is given", e->op);
    if (operands == 2 && !part_given(&e->operand))
        call_error(call, "epilogue %s has an operand, but none is given", e->op);
    check_defined(call, ask, e, op, floats);
    if (!floats && e->scope != TL_OUTPUT_TILE && gemm_epilogue_makes_floats(op, ask->c.dtype))
        call_error(call, "epilogue %s makes f32 of i32, for all of c: its scope has to be TL_OUTPUT_TILE", e->op);
    return op;
}

/* In the order in which they work, by scopes; what is f32 after one is so for the next. */
static void take_epilogues(const struct call *call, const struct tl_composite *ask, struct gemm_epilogue *data,
                           struct epilogue *timed)
{
    static const enum scope scopes[] = {[TL_K_TILE] = SCOPE_K_TILE, [TL_OUTPUT_TILE] = SCOPE_OUTPUT_TILE,
                                        [TL_ONCE] = SCOPE_ONCE};
    bool floats = dtype_is_float(ask->a.dtype);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        if ((unsigned)ask->epilogue[i].scope > TL_ONCE)
            call_error(call, "epilogue %s has no scope", ask->epilogue[i].op ? ask->epilogue[i].op : "");
    for (enum tl_scope scope = TL_K_TILE; scope <= TL_ONCE; scope++)
        for (uint32_t i = 0; i < ask->epilogues; i++) {
            const struct tl_epilogue *e = &ask->epilogue[i];
            if (e->scope != scope)
                continue;
            uint16_t op = check_epilogue(call, ask, e, floats);
            floats |= gemm_epilogue_makes_floats(op, ask->c.dtype);
            timed[i] = (struct epilogue){op, scopes[scope]};
            data[i] = (struct gemm_epilogue){.op = op, .scope = scopes[scope], .scalar = e->operand.number,
                                             .has_scalar = math_operands(op) == 2 && e->operand.is_number,
                                             .has_operand = math_operands(op) == 2 && !e->operand.is_number};
        }
}

/* ---- the command */

static void check_overlap(const struct call *call, const struct gemm *g)
{
    if (view_overlap(&g->c, &g->a) || view_overlap(&g->c, &g->b))
        call_error(call, "c lies where a or b does");
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].has_operand && view_overlap(&g->c, &g->epilogue[i].operand))
            call_error(call, "c lies where the operand of an epilogue does");
}

static struct request timed_gemm(const struct tl_composite *ask, const struct epilogue *epilogues)
{
    return (struct request){.kind = COMMAND_gemm_tiles, .dtype = ask->a.dtype, .out_dtype = ask->c.dtype,
                            .pinned = {ask->pin_a, ask->pin_b}, .address = {ask->a.addr, ask->b.addr, ask->c.addr},
                            .virtual_address = {call_translates(ask->a.is_virtual), call_translates(ask->b.is_virtual),
                                                call_translates(ask->c.is_virtual)},
                            .m = ask->m, .k = ask->k, .n = ask->n,
                            .tile_m = ask->tile[0], .tile_k = ask->tile[1], .tile_n = ask->tile[2],
                            .epilogues = ask->epilogues, .epilogue = epilogues};
}

tl_handle composite_submit(const struct call *call, struct request *timed, struct op *op, const struct part *written,
                           bool there)
{
    if (!there)
        return call_submit(call, timed, NULL);
    struct origin *record = origin_hold(call_record(call, op));
    part_spread(call, written);
    tl_handle handle = call_submit_recorded(call, timed, record);
    origin_drop(record);
    return handle;
}

static tl_handle submit_gemm(const struct call *call, const struct tl_composite *ask)
{
    const struct part a = {.name = "a", .operand = &ask->a, .rows = ask->m, .columns = ask->k, .place = PART_A,
                           .pinned = ask->pin_a, .moves = true, .transposable = true};
    const struct part b = {.name = "b", .operand = &ask->b, .rows = ask->k, .columns = ask->n, .place = PART_B,
                           .pinned = ask->pin_b, .moves = true, .transposable = true};
    const struct part c = {.name = "c", .operand = &ask->c, .rows = ask->m, .columns = ask->n, .place = PART_C,
                           .moves = true, .written = true};
    struct gemm_epilogue epilogues[TL_EPILOGUES];
    struct epilogue timed_epilogues[TL_EPILOGUES];
    check_sizes(call, ask);
    part_check(call, &a);
    part_check(call, &b);
    part_check(call, &c);
    call_gemm_dtypes(call, ask->a.dtype, ask->b.dtype);
    if (ask->epilogues > TL_EPILOGUES)
        call_error(call, "%u epilogues; %d are possible", ask->epilogues, TL_EPILOGUES);
    take_epilogues(call, ask, epilogues, timed_epilogues);
    struct op op = {.kind = OPKIND_gemm, .name = gemm_name(ask->a.dtype),
                    .gemm = {.a = part_view(call, &a), .b = part_view(call, &b), .c = part_view(call, &c),
                             .tile_m = ask->tile[0], .tile_k = ask->tile[1], .tile_n = ask->tile[2],
                             .epilogue = epilogues, .epilogues = ask->epilogues}};
    for (uint32_t i = 0; i < ask->epilogues; i++)
        if (epilogues[i].has_operand)
            epilogues[i].operand = part_second(call, epilogues[i].op, "the operand of an epilogue",
                                               &ask->epilogue[i].operand, ask->m, ask->n, PART_EPILOGUE + i);
    check_overlap(call, &op.gemm);
    struct request timed = timed_gemm(ask, timed_epilogues);
    return composite_submit(call, &timed, &op, &c, op.gemm.a.rank && op.gemm.b.rank && op.gemm.c.rank);
}

tl_handle tl_composite_at(struct tl *tl, const struct tl_composite *ask, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_composite", file, line};
    if (ask->op == TL_MATH)
        return composite_math(&call, ask);
    if (ask->op != TL_GEMM)
        call_error(&call, "op number %d is none; TL_GEMM and TL_MATH are", (int)ask->op);
    return submit_gemm(&call, ask);
}
