/* operation.h: what gemms and math ops compute, as the op log records it and the data pass does it. */
#ifndef KB_COMPUTE_H
#define KB_COMPUTE_H

#include "view.h"

/* An op on the m x n result of a gemm, with one operand at most, which is broadcast to m x n by strides of 0. */
struct gemm_epilogue {
    uint16_t op;                                        /* OP_relu, OP_bias ... */
    uint8_t scope;                                      /* enum scope */
    bool has_operand, has_scalar;
    struct view operand;                                /* a row of n, a column of m, one element, or all of m x n */
    double scalar;                                      /* in its place */
};

/* C[m, n] = A[m, k] B[k, n], then the epilogues in their order. A transposed operand is one of other strides. */
struct gemm {
    struct view a, b, c;
    uint64_t tile_m, tile_k, tile_n;
    const struct gemm_epilogue *epilogue;
    uint32_t epilogues;
};

enum { MATH_OPERANDS = 3, NO_AXIS = -1 };

enum relation {
#define RELATION(name, operator) RELATION_##name,
#include "kb/ops.def"
    RELATIONS
};

/* An elementwise op: all have the shape of `to`, by broadcasting where needed. A reduction: `to` has shape 1 along the
 * axis, the operand as many elements as are reduced. */
struct math {
    uint16_t op;                                        /* OP_add ... */
    uint8_t operands;
    uint8_t relation;                                   /* of OP_cmp: enum relation */
    int8_t axis;                                        /* of a reduction; else NO_AXIS */
    bool has_scalar;                                    /* the last operand is this number, and no view */
    double scalar;
    uint64_t tile_m, tile_n;                            /* of a composite; else 0 */
    struct view to, operand[MATH_OPERANDS];
};

/* How many of the operands are views. */
static inline unsigned math_views(const struct math *math)
{
    return math->operands - (math->has_scalar ? 1 : 0);
}

#endif
