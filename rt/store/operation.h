/* operation.h: what gemms and math ops compute, as the op log records it and the data pass does it; and references to
 * operations. */
#ifndef KB_OPERATION_H
#define KB_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "view.h"

/* ---- what is computed */

/* An op on the m x n result of a gemm, with at most one operand, which strides of 0 broadcast to m x n. */
struct gemm_epilogue {
    uint16_t op;                                        /* OP_relu, OP_bias ... */
    uint8_t scope;                                      /* enum scope */
    bool has_operand, has_scalar;
    struct view operand;                                /* a row of n, a column of m, one element, or all of m x n */
    double scalar;                                      /* in place of the operand */
};

/* C[m, n] = A[m, k] B[k, n], then the epilogues in their order. The strides of a transposed operand say so. */
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

/* An elementwise op: all operands have the shape of `to`, if need be by broadcasting. A reduction: `to` has shape 1 along
 * the axis, and the operand the number of elements that are reduced. */
struct math {
    uint16_t op;                                        /* OP_add ... */
    uint8_t operands;
    uint8_t relation;                                   /* of OP_cmp: enum relation */
    int8_t axis;                                        /* of a reduction; otherwise NO_AXIS */
    bool has_scalar;                                    /* the last operand is this number instead of a view */
    double scalar;
    uint64_t tile_m, tile_n;                            /* of a composite; otherwise 0 */
    struct view to, operand[MATH_OPERANDS];
};

/* The number of operands that are views. */
static inline unsigned math_views(const struct math *math)
{
    return math->operands - (math->has_scalar ? 1 : 0);
}

/* ---- references to operations */

struct oplog_entry;
struct hb_op;

/* What memory keeps of an operation's record in the op log while somebody may still name it: a command, a message, a race.
 * It is freed with its last holder. */
struct op_ref {
    uint64_t id;                                        /* of the record, once it has its place in data order; or NO_ID */
    const char *name;                                   /* "dma_read", "gemm_f16" ... */
    int64_t pe;                                         /* over the machine, or OP_OF_HOST */
    uint32_t command;                                   /* its number in the launch */
    const char *kernel, *file;
    uint32_t line;
    uint32_t holders;
    uint64_t message;                                   /* of a send: where the bytes of its message are */
    uint64_t start_ps, end_ps;                          /* first service's start and last one's end */
    uint32_t node;                                      /* rank of the component of the first service */
    uint32_t services;                                  /* that have ended */
    bool complete;                                      /* the command is complete, and its services are recorded */
    uint32_t receivers;                                 /* of a send: how many receives will still read its message; each holds it */
    struct hb_op *hb;                                   /* what the race check knows of it, if that is on */
    struct oplog_entry *entry;                          /* its record, until that has its place */
};

#define NO_ID UINT64_MAX

/* A reference with one holder, all 0 apart from its id, NO_ID. */
struct op_ref *op_ref_new(void);

/* Adds a holder, and returns the reference; NULL: does nothing. */
static inline struct op_ref *op_ref_hold(struct op_ref *ref)
{
    if (ref)
        ref->holders++;
    return ref;
}

void op_ref_free(struct op_ref *ref);

/* Removes a holder; NULL: does nothing. */
static inline void op_ref_drop(struct op_ref *ref)
{
    if (ref && --ref->holders == 0)
        op_ref_free(ref);
}

/* Frees all references. */
void op_refs_reset(void);

#endif
