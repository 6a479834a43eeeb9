/* written.c: a disjoint interval map for each memory. Neighbours are joined, so results that fill a tensor are one. */
#include "written.h"

#include <stdlib.h>

#include "common/fail.h"
#include "common/interval_map.h"
#include "store.h"
#include "view.h"

static bool joins(const struct interval *low, const struct interval *high)
{
    (void)low, (void)high;
    return true;
}

static struct interval_kind ranges = {.size = sizeof(struct interval), .continues = joins};
static struct interval_map *maps;                       /* by memory; NULL: nothing is written */

static struct interval_map *map_of(uint32_t memory)
{
    if (!maps && !(maps = calloc(store_count(), sizeof *maps)))
        die("no memory for what kernels write:");
    maps[memory].kind = &ranges;
    return &maps[memory];
}

void written_add(const struct view *view)
{
    struct interval range = {.begin = view->offset, .end = view->offset + view_span(view)};
    struct interval_map *map = map_of(view->memory);
    const struct interval *found = interval_find(map, range.begin);
    bool known = found && found->begin <= range.begin && found->end >= range.end;
    if (range.begin < range.end && !known)
        interval_set(map, &range);
}

bool written_any(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    const struct interval *found = maps ? interval_find(&maps[memory], offset) : NULL;
    return found && found->begin < offset + bytes;
}

void written_reset(void)
{
    pool_release(&ranges.pool);
    free(maps);
    maps = NULL;
}
