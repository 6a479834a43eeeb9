/* same_dma.c: a pe_dma that chooses as the built-in one does: of the tiles of composites and of the other commands, the
 * first each, if it is ready; of these the one that arrived earlier. Sends need only be ready. `prepare` is a time before
 * each transfer; with `shortest: 1` the transfer of the fewest bytes goes next. */
#include <kb/impl.h>

#ifndef same_dma_prepare
#define same_dma_prepare 0
#endif
#ifndef same_dma_shortest
#define same_dma_shortest 0
#endif

struct same_dma {
    uint64_t transfers;
};

KB_STATE(same_dma);

uint64_t same_dma_service(struct same_dma *state, const struct kb_dma_request *ask)
{
    (void)ask;
    state->transfers++;
    return same_dma_prepare;
}

static bool goes_before(const struct kb_waiting_transfer *a, const struct kb_waiting_transfer *b)
{
    if (same_dma_shortest && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (a->arrived_ps != b->arrived_ps)
        return a->arrived_ps < b->arrived_ps;
    return a->command != b->command ? a->command < b->command : a->tile < b->tile;
}

uint32_t same_dma_next(struct same_dma *state, const struct kb_dma_queue *ask)
{
    (void)state;
    uint32_t best = KB_NONE;
    for (uint32_t i = 0; i < ask->count; i++) {
        const struct kb_waiting_transfer *waiting = &ask->waiting[i];
        bool may_go = waiting->ready && (waiting->first || ask->channel == KB_SEND || same_dma_shortest);
        if (may_go && (best == KB_NONE || goes_before(waiting, &ask->waiting[best])))
            best = i;
    }
    return best;
}
