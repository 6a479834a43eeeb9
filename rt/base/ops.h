/* ops.h: math ops by name. Numbers below kb_shape.ops are those of kb_op_names and kb_op_costs; a name that the machine
 * lacks gets a number above, so that a command that asks for it can be refused by name. */
#ifndef KB_OPS_H
#define KB_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

uint16_t op_number(const char *name);
const char *op_name(uint16_t op);
bool op_known(uint16_t op);

/* "gemm_f16": a gemm, by the dtype of its inputs. */
const char *gemm_name(enum dtype dtype);

/* Forgets the names that the machine lacks. */
void base_reset(void);

#endif
