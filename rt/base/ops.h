/* ops.h: math ops by name. Numbers below kb_shape.ops are indices of kb_op_names and kb_op_costs; names that the machine
 * lacks get the numbers above, so that a command that asks for one can be refused by name. */
#ifndef KB_OPS_H
#define KB_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

uint16_t op_number(const char *name);
const char *op_name(uint16_t op);
bool op_known(uint16_t op);

/* "gemm_f16", by the dtype of the inputs. */
const char *gemm_name(enum dtype dtype);

/* The room's reset (session/reset.c): forgets the names that the machine lacks. */
void base_reset(void);

#endif
