/* clocks.c: vector clocks, out of a pool; copied when one of several holders learns something. */
#include "clocks.h"

#include <string.h>

#include "machine/emitted.h"
#include "common/arena.h"

static struct clocks *unused;

static struct clocks *clocks_take(void)
{
    struct clocks *clocks = unused;
    if (clocks)
        unused = clocks->next;
    else
        clocks = arena_alloc(1, sizeof *clocks + pe_count() * sizeof *clocks->at);
    clocks->holders = 1;
    return clocks;
}

struct clocks *clocks_new(void)
{
    struct clocks *clocks = clocks_take();
    memset(clocks->at, 0, pe_count() * sizeof *clocks->at);
    return clocks;
}

struct clocks *clocks_hold(struct clocks *clocks)
{
    if (clocks)
        clocks->holders++;
    return clocks;
}

void clocks_drop(struct clocks *clocks)
{
    if (!clocks || --clocks->holders)
        return;
    clocks->next = unused;
    unused = clocks;
}

/* Makes it the holder's own. */
static void unshare(struct clocks **own)
{
    struct clocks *shared = *own;
    if (shared->holders == 1)
        return;
    *own = clocks_take();
    memcpy((*own)->at, shared->at, pe_count() * sizeof *shared->at);
    clocks_drop(shared);
}

void clocks_learn(struct clocks **own, const struct clocks *other)
{
    if (!other || other == *own)
        return;
    uint32_t pe = 0, pes = pe_count();
    while (pe < pes && other->at[pe] <= (*own)->at[pe])
        pe++;
    if (pe == pes)
        return;
    unshare(own);
    for (; pe < pes; pe++)
        if (other->at[pe] > (*own)->at[pe])
            (*own)->at[pe] = other->at[pe];
}

void clocks_learn_of(struct clocks **own, uint32_t pe, uint32_t at)
{
    if (at <= (*own)->at[pe])
        return;
    unshare(own);
    (*own)->at[pe] = at;
}

void clocks_reset(void)
{
    unused = NULL;                                      /* their room is the arena's, which goes back as well */
}
