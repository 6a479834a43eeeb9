/* written.c: two disjoint interval maps for each memory. Neighbours are joined, so results that fill a tensor are one. */
#include "written.h"

#include <stdlib.h>

#include "base/dtype.h"
#include "common/fail.h"
#include "common/interval_map.h"
#include "kb/arith.h"
#include "store.h"
#include "tensor.h"
#include "view.h"

static bool joins(const struct interval *low, const struct interval *high)
{
    (void)low, (void)high;
    return true;
}

static struct interval_kind ranges = {.size = sizeof(struct interval), .continues = joins};

struct written {
    struct interval_map ever, since_known;
};

static struct written *memories;                        /* NULL: nothing is written */

static void add(struct interval_map *map, const struct interval *range)
{
    const struct interval *found = interval_find(map, range->begin);
    bool known = found && found->begin <= range->begin && found->end >= range->end;
    map->kind = &ranges;
    if (range->begin < range->end && !known)
        interval_set(map, range);
}

void written_add(const struct view *view)
{
    struct interval range = {.begin = view->offset, .end = view->offset + view_span(view)};
    if (!memories && !(memories = calloc(store_count(), sizeof *memories)))
        die("no memory for what kernels write:");
    add(&memories[view->memory].ever, &range);
    add(&memories[view->memory].since_known, &range);
}

static uint64_t shard_bytes(const struct tensor *tensor, const struct shard *shard)
{
    return shard->elements * dtype_bytes[tensor->dtype];
}

void written_known(struct tensor *tensor)
{
    tensor->known = true;
    for (uint32_t i = 0; memories && i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        interval_erase(&memories[shard->memory].since_known, shard->offset, shard->offset + shard_bytes(tensor, shard));
    }
}

/* What was written of a shard first; NULL: nothing was. A shard may be empty. */
static const struct interval *first_of(const struct interval_map *map, uint64_t offset, uint64_t bytes)
{
    const struct interval *found = bytes ? interval_find(map, offset) : NULL;
    return found && found->begin < offset + bytes ? found : NULL;
}

bool written_any(const struct tensor *tensor)
{
    for (uint32_t i = 0; memories && i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        if (first_of(&memories[shard->memory].ever, shard->offset, shard_bytes(tensor, shard)))
            return true;
    }
    return false;
}

bool written_over(const struct tensor *tensor, struct written_byte *at)
{
    uint32_t shards = tensor->place.split == KB_COPIES ? 1 : tensor->shards;
    for (uint32_t i = 0; memories && tensor->known && i < shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        const struct interval *found = first_of(&memories[shard->memory].since_known, shard->offset, shard_bytes(tensor, shard));
        if (found && at)
            *at = (struct written_byte){shard->memory, kb_max(found->begin, shard->offset)};
        if (found)
            return true;
    }
    return false;
}

void written_reset(void)
{
    pool_release(&ranges.pool);
    free(memories);
    memories = NULL;
}
