/* operation.c: references to operations, from a free list. */
#include "operation.h"

#include "common/pool.h"

static struct pool refs;

struct op_ref *op_ref_new(void)
{
    struct op_ref *ref = pool_reuse(&refs, sizeof *ref);
    *ref = (struct op_ref){.id = NO_ID, .holders = 1};
    return ref;
}

void op_ref_free(struct op_ref *ref)
{
    pool_give_back(&refs, ref);
}

void op_refs_reset(void)
{
    pool_release(&refs);
}
