/* ops.c: math ops by name. */
#include "ops.h"

#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "tables.h"

static struct ARRAY(const char *) unknown;              /* names that the machine lacks */

/* The op that a text at this address named last: calls name ops by a few literals. */
enum { CACHED = 64 };
static uint16_t cached[CACHED];

static uint16_t *cached_of(const char *name)
{
    return &cached[(uintptr_t)name / 4 % CACHED];
}

static uint16_t op_find(const char *name)
{
    for (uint32_t i = 0; i < kb_shape.ops; i++)
        if (!strcmp(kb_op_names[i], name))
            return i;
    for (size_t i = 0; i < unknown.count; i++)
        if (!strcmp(unknown.at[i], name))
            return kb_shape.ops + i;
    *array_add(&unknown) = arena_text(name, strlen(name));
    return kb_shape.ops + unknown.count - 1;
}

uint16_t op_number(const char *name)
{
    uint16_t *op = cached_of(name);
    if (!op_known(*op) || strcmp(kb_op_names[*op], name))
        *op = op_find(name);
    return *op;
}

const char *op_name(uint16_t op)
{
    return op_known(op) ? kb_op_names[op] : unknown.at[op - kb_shape.ops];
}

bool op_known(uint16_t op)
{
    return op < kb_shape.ops;
}

const char *gemm_name(enum dtype dtype)
{
    static const char *const names[] = {
#define DTYPE(name, bytes, is_float) "gemm_" #name,
#include "kb/dtypes.def"
#undef DTYPE
    };
    return names[dtype];
}

void base_reset(void)
{
    array_free(&unknown);
}
