/* collective.h: what the collectives share: ranks round a ring, blocks of a vector, parameters, measures.
 *
 * The ranks of a collective are the PEs of its launch. They stand round a ring in the order of a snake over the
 * machine, so that neighbours are near; `at` below is a place on that ring, and the rank is the PE's position in the
 * launch, which says whose block is whose. */
#ifndef COLLECTIVE_H
#define COLLECTIVE_H

#include "pipe.h"
#include <kb/host.h>
#include <kb/measure.h>

/* ---- in kernels */

struct ring {
    uint32_t at, count;
    const uint32_t *rank;                               /* by place */
};

static inline struct ring ring_of(struct tl *tl, struct kb_order order)
{
    struct ring ring = {0, order.count, order.position};
    while (ring.rank[ring.at] != tl_pe(tl))
        ring.at++;
    return ring;
}

/* The rank that stands `steps` places further on. */
static inline uint32_t ring_ahead(const struct ring *ring, uint64_t steps)
{
    return ring->rank[(ring->at + steps) % ring->count];
}

static inline uint32_t ring_behind(const struct ring *ring, uint64_t steps)
{
    return ring->rank[(ring->at + ring->count - steps % ring->count) % ring->count];
}

/* Dissemination: in step k a rank sends a byte to the one 2^k places further on and waits for one from 2^k places
 * behind. What a rank waited for before it came is known to all when they go on. */
static inline void barrier(struct tl *tl, const struct ring *ring)
{
    struct tl_shard out = tl_alloc(tl, KB_u8, 1), in = tl_alloc(tl, KB_u8, 1);
    for (uint64_t places = 1; places < ring->count; places *= 2) {
        tl_handle sent = tl_send_async(tl, ring_ahead(ring, places), out);
        tl_recv(tl, ring_behind(ring, places), in);
        tl_wait(tl, sent);
    }
    tl_free(tl, in);
    tl_free(tl, out);
}

struct span {
    uint64_t first, count;
};

/* Block i of n elements in p blocks, as even as can be: as kb_cols splits. */
static inline struct span block_of(uint64_t n, uint64_t p, uint64_t i)
{
    uint64_t first = (uint64_t)((unsigned __int128)n * i / p), end = (uint64_t)((unsigned __int128)n * (i + 1) / p);
    return (struct span){first, end - first};
}

static inline uint64_t longest_block(uint64_t n, uint64_t p)
{
    return kb_ceil_div(n, p);
}

/* The block that element i of n is in, of p blocks. */
static inline uint64_t block_with(uint64_t n, uint64_t p, uint64_t i)
{
    return (uint64_t)(((unsigned __int128)(i + 1) * p - 1) / n);
}

/* Of a span, the elements from `base` on, at most so many. */
static inline struct span span_cut(struct span span, uint64_t base, uint64_t most)
{
    uint64_t left = span.count > base ? span.count - base : 0;
    return (struct span){span.first + base, kb_min(left, most)};
}

/* The elements of a dense shard in one row; no shard: none. */
static inline struct tl_shard flat(struct tl_shard shard)
{
    uint64_t count = 1;
    for (uint32_t axis = 0; axis < shard.rank; axis++)
        count *= shard.shape[axis];
    return (struct tl_shard){.addr = shard.addr, .dtype = shard.dtype, .rank = 1, .shape = {count, 1, 1, 1},
                             .stride = {1, 1, 1, 1}};
}

static inline struct tl_shard part_of(struct tl *tl, struct tl_shard shard, struct span span)
{
    return span.count ? tl_part(tl, shard, 0, span.first, span.count) : shard;
}

/* ---- in benches */

#define PARAMS_OF_COLLECTIVE(dtypes, what_size)                                                                        \
    KB_INT(size, 1 << 20, 1, 1ull << 36, what_size), KB_WORD(dtype, dtypes, "of the elements"),                        \
    KB_TEXT(pes, "*", "which PEs take part: ids like this"),                                                           \
    KB_INT(chunk, 16384, 1, 1ull << 36, "bytes of a message, if a slot is not less"),                                  \
    KB_WORD(space, "hbm sram tcm", "where the vectors lie")

#define PARAMS_OF_REDUCTION KB_WORD(op, "sum min max mul", "how vectors are joined")

static inline enum kb_space space_of(const char *word)
{
    return word[0] == 'h' ? KB_HBM : word[0] == 's' ? KB_SRAM : KB_TCM;
}

/* The op of tl_math and kb_ref_reduce. */
static inline const char *op_of(const char *word)
{
    return word[0] == 's' ? "add" : word;
}

/* What the parameters of a collective say. */
struct collective {
    struct kb_pes pes;
    struct kb_order order;                              /* of the ring */
    enum kb_dtype dtype;
    enum kb_space space;
    const char *op;                                     /* of a reduction */
    uint64_t n, p, element_bytes;                       /* elements, ranks */
};

static inline struct collective collective_params(void)
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    return (struct collective){
        .pes = pes, .order = kb_snake(pes), .dtype = dtype, .space = space_of(kb_word(space)),
        .n = kb_int(size), .p = pes.count, .element_bytes = kb_dtype_bytes(dtype),
    };
}

static inline struct collective reduction_params(void)
{
    struct collective params = collective_params();
    params.op = op_of(kb_word(op));
    return params;
}

/* Random values that a reduction does not drive out of range: floats that are multiplied are near 1. Integers may wrap,
 * and take their whole range in sums. */
static inline void fill_for(kb_tensor tensor, enum kb_dtype dtype, const char *op)
{
    double most = dtype == KB_i32 ? 0x1p31 : dtype == KB_i8 ? 128 : 1;
    bool product = op[0] == 'm' && op[1] == 'u', whole = dtype == KB_i32 || dtype == KB_i8;
    if (product && !whole)
        kb_fill_uniform(tensor, 0.9, 1.1);
    else
        kb_fill_uniform(tensor, -most, most);
}

/* Times that an algorithm cannot beat: what its busiest link, the busiest rank's memory and its longest chain of
 * messages take. */
struct bound {
    kb_traffic traffic;
    uint64_t memory_ps, latency_ps;
};

/* Every rank sends so many bytes to the next one, in `rounds` chains of p - 1 messages one after the other. */
static inline struct bound ring_bound(struct kb_pes pes, struct kb_order order, uint64_t bytes, uint32_t rounds)
{
    uint64_t sum_ps = 0, longest_ps = 0;
    struct bound bound = {.traffic = kb_traffic_new()};
    for (uint32_t i = 0; order.count > 1 && i < order.count; i++) {
        uint32_t from = pes.pe[order.position[i]], to = pes.pe[order.position[(i + 1) % order.count]];
        uint64_t latency_ps = kb_latency_ps(from, to);
        kb_traffic_add(bound.traffic, from, to, bytes);
        sum_ps += latency_ps;
        longest_ps = latency_ps > longest_ps ? latency_ps : longest_ps;
    }
    bound.latency_ps = rounds * (sum_ps - longest_ps);
    return bound;
}

static inline uint64_t scaled(uint64_t x, uint64_t up, uint64_t down)
{
    return (uint64_t)((unsigned __int128)x * up / down);
}

/* Figures of a collective on `bytes`. As nccl-tests have it: algbw is bytes / time, busbw is algbw * up / down, which
 * compares with the links' bandwidth whatever the number of ranks is. */
static inline void report(kb_future launch, uint64_t bytes, uint64_t up, uint64_t down, struct bound bound)
{
    uint64_t time_ps = kb_kernels_ps(launch), link_ps = kb_traffic_ps(bound.traffic);
    kb_figure("time", time_ps, KB_PS);
    kb_figure("link_bound", link_ps, KB_PS);
    kb_figure("memory_bound", bound.memory_ps, KB_PS);
    kb_figure("latency_bound", bound.latency_ps, KB_PS);
    if (time_ps == 0)
        return;
    uint64_t algbw = scaled(bytes, 1000000000000u, time_ps);
    kb_figure("algbw", algbw, KB_BYTES_PER_S);
    kb_figure("busbw", scaled(algbw, up, down), KB_BYTES_PER_S);
    kb_figure("bound_reached", scaled(kb_max(kb_max(link_ps, bound.memory_ps), bound.latency_ps), 1000, time_ps),
              KB_PERMILLE);
}

#endif
