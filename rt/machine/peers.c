/* peers.c: lists of PEs, each kept once for a run: kernels name the same few again and again. */
#include "peers.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/hash.h"

struct numbered_list {
    struct numbered_list *next;                         /* in its chain of the hash table */
    uint32_t number;
    struct pe_list pes;
};

enum { CHAIN_BITS = 10, CHAINS = 1 << CHAIN_BITS };

static struct {
    struct numbered_list **chains;                      /* NULL: there is no list */
    struct ARRAY(const struct numbered_list *) by_number;   /* list n at n - 1 */
} lists;

static int in_rank_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t list_number(const uint32_t *pes, uint32_t count)
{
    size_t bytes = count * sizeof *pes;
    if (!lists.chains)
        lists.chains = arena_alloc(CHAINS, sizeof *lists.chains);
    struct numbered_list **chain = &lists.chains[hash_bits(hash_bytes(0, pes, bytes), CHAIN_BITS)];
    for (const struct numbered_list *list = *chain; list; list = list->next)
        if (list->pes.count == count && !memcmp(list->pes.pe, pes, bytes))
            return list->number;
    struct numbered_list *list = arena_alloc(1, sizeof *list);
    uint32_t *copy = memcpy(arena_alloc(count, sizeof *copy), pes, bytes);
    *array_add(&lists.by_number) = list;
    *list = (struct numbered_list){*chain, (uint32_t)lists.by_number.count, {copy, count}};
    *chain = list;
    return list->number;
}

void peers_set(struct request *ask, uint32_t *pes, uint32_t count)
{
    qsort(pes, count, sizeof *pes, in_rank_order);
    ask->peer = pes[0];
    ask->peers = count > 1 ? list_number(pes, count) : 0;
}

struct pe_list peers_listed(uint32_t number)
{
    return lists.by_number.at[number - 1]->pes;
}

void peers_reset(void)
{
    array_free(&lists.by_number);
    memset(&lists, 0, sizeof lists);
}
