/* definition.h: the elementwise math ops of one and two operands by their definition, in long double, for unit tests. */
#ifndef KB_UNIT_DEFINITION_H
#define KB_UNIT_DEFINITION_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tables.h"

/* The exact result of exact operands. Ends the test with a message if an op has no definition here. */
static long double op_defined(uint16_t op, long double x, long double y)
{
    switch (op) {
    case OP_copy: case OP_cast: return x;
    case OP_neg: return -x;
    case OP_abs: return fabsl(x);
    case OP_relu: return x < 0 ? 0 : x;
    case OP_exp: return expl(x);
    case OP_log: return logl(x);
    case OP_sqrt: return sqrtl(x);
    case OP_rsqrt: return 1 / sqrtl(x);
    case OP_recip: return 1 / x;
    case OP_tanh: return tanhl(x);
    case OP_sigmoid: return 1 / (1 + expl(-x));
    case OP_gelu: return x / 2 * (1 + erfl(x / sqrtl(2)));
    case OP_silu: return x / (1 + expl(-x));
    case OP_add: case OP_bias: case OP_bias_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul: case OP_scale: case OP_dequant: return x * y;
    case OP_div: return x / y;
    case OP_max: return isnan(x) || isnan(y) ? (long double)NAN : x > y ? x : y;
    case OP_min: return isnan(x) || isnan(y) ? (long double)NAN : x < y ? x : y;
    case OP_quant: return (float)x / (float)y;
    default:
        printf("not ok - the op %s has a definition in tests/unit/definition.h\n", kb_op_names[op]);
        exit(1);
    }
}

#endif
