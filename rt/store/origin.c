/* origin.c: the calls that operations come from, out of a pool. */
#include "origin.h"

#include <stddef.h>

#include "common/arena.h"

enum { CHUNK = 256 };

static struct origin *unused;

struct origin *origin_new(void)
{
    if (!unused) {
        struct origin *chunk = arena_alloc(CHUNK, sizeof *chunk);
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].next = unused;
            unused = &chunk[i];
        }
    }
    struct origin *origin = unused;
    unused = origin->next;
    *origin = (struct origin){.id = NO_ID, .holders = 1};
    return origin;
}

void origin_free(struct origin *origin)
{
    origin->next = unused;
    unused = origin;
}

void origins_reset(void)
{
    unused = NULL;                                      /* their room is the arena's, which goes back as well */
}
