/* direct.h: the ranks of a SIP reduce their vectors, and each makes a block of the result. PE p of a cube works for PE p of
 * every cube: for each of these ranks it loads the block from all PEs of its cube in one command, adds it up, and sends the
 * sum to the rank. So a rank has a load, a sum and a message for each cube, and a last sum of what the cubes send it.
 *
 * A block is made in windows, each of which is a message. Ranks receive a window while they load for the next one. */
#ifndef DIRECT_H
#define DIRECT_H

#include "levels.h"

enum { DIRECT_LOADS = 3, DIRECT_WINDOWS = 2 };          /* buffers, for loads and windows that overlap */

struct direct {
    struct tl *tl;
    kb_tensor in;                                       /* a row per rank */
    struct tl_shard out;                                /* where this rank's block goes */
    const char *op;
    uint64_t n, chunk, parts;                           /* elements of a vector, of a window; windows times cubes */
    struct peers cube, cubes;
    const int32_t *ranks;                               /* of the cube, from this one on */
    tl_handle load[DIRECT_LOADS];
    struct tl_shard loaded[DIRECT_LOADS];               /* a chunk of each PE of the cube */
    struct direct_window {
        struct tl_shard sums, got;                      /* a chunk for each cube: what this cube gives it, what it gives */
        struct transfers sends, receives;
        tl_handle store;
    } window[DIRECT_WINDOWS];
};

/* What a rank makes in a window, of all elements. */
static inline struct indices direct_range(const struct direct *direct, uint32_t rank, uint64_t window)
{
    return range_window(block_range(direct->n, tl_num_pes(direct->tl), rank), window * direct->chunk, direct->chunk);
}

/* The cube for which a part is, the own one last in each window. */
static inline uint32_t direct_cube(const struct direct *direct, uint64_t part)
{
    return (uint32_t)((direct->cubes.at + 1 + part) % direct->cubes.count);
}

static inline void direct_load(struct direct *direct, uint64_t part)
{
    if (part >= direct->parts)
        return;
    uint64_t window = part / direct->cubes.count;
    struct indices range = direct_range(direct, peer_rank(&direct->cubes, direct_cube(direct, part)), window);
    if (range.count)
        direct->load[part % DIRECT_LOADS] = tl_load_rows_async(
            direct->tl, chunks_as_rows(direct->tl, direct->loaded[part % DIRECT_LOADS], direct->chunk, direct->cube.count, range.count),
            tl_rows_part(direct->in, range.first, range.count), direct->ranks);
}

/* Adds up what the PEs of the cube have for another one, and sends it. */
static inline void direct_part(struct direct *direct, uint64_t part)
{
    struct tl *tl = direct->tl;
    uint32_t cube = direct_cube(direct, part), rank = peer_rank(&direct->cubes, cube);
    struct direct_window *window = &direct->window[part / direct->cubes.count % DIRECT_WINDOWS];
    uint64_t count = direct_range(direct, rank, part / direct->cubes.count).count;
    if (count == 0)
        return;
    bool own = cube == direct->cubes.at;
    struct tl_shard sum = tl_part(tl, own ? window->got : window->sums, 0, cube * direct->chunk, count);
    tl_wait(tl, direct->load[part % DIRECT_LOADS]);
    reduce_rows(tl, direct->op, sum, chunks_as_rows(tl, direct->loaded[part % DIRECT_LOADS], direct->chunk, direct->cube.count, count));
    if (!own)
        transfers_add(tl, &window->sends, tl_send_async(tl, rank, sum));
}

/* Begins to receive what all other cubes send for a window. */
static inline void direct_begin(struct direct *direct, uint64_t number)
{
    struct tl *tl = direct->tl;
    struct direct_window *window = &direct->window[number % DIRECT_WINDOWS];
    uint64_t count = direct_range(direct, tl_pe(tl), number).count;
    transfers_wait(tl, &window->sends);
    for (uint32_t i = 1; i < direct->cubes.count && count; i++) {
        uint32_t cube = (direct->cubes.at + direct->cubes.count - i) % direct->cubes.count;
        transfers_add(tl, &window->receives, tl_recv_async(tl, peer_rank(&direct->cubes, cube),
                                                           tl_part(tl, window->got, 0, cube * direct->chunk, count)));
    }
}

/* Adds up a window and begins to store it. */
static inline void direct_end(struct direct *direct, uint64_t number)
{
    struct tl *tl = direct->tl;
    struct direct_window *window = &direct->window[number % DIRECT_WINDOWS];
    uint64_t count = direct_range(direct, tl_pe(tl), number).count;
    transfers_wait(tl, &window->receives);
    if (count == 0)
        return;
    if (window->store)
        tl_wait(tl, window->store);
    struct tl_shard sum = tl_part(tl, window->sums, 0, direct->cubes.at * direct->chunk, count);
    reduce_rows(tl, direct->op, sum, chunks_as_rows(tl, window->got, direct->chunk, direct->cubes.count, count));
    window->store = tl_store_async(tl, tl_part(tl, direct->out, 0, number * direct->chunk, count), sum);
}

/* Makes this rank's block of the reduction of `in`, and stores it in `out`. All ranks of the launch call it, which are those of
 * levels.sips = 1; `ranks`: cube_ranks of them; `chunk`: elements of a message. */
static inline void direct_run(struct tl *tl, kb_tensor in, struct tl_shard out, const char *op, const struct levels *levels,
                              const uint32_t *ranks, uint64_t chunk)
{
    struct tl_shard mine = flattened(tl_my_shard(tl, in));
    struct direct direct = {.tl = tl, .in = in, .out = out, .op = op, .n = mine.shape[0], .chunk = chunk,
                            .cube = level_peers(tl, levels, LEVEL_CUBE), .cubes = level_peers(tl, levels, LEVEL_SIP)};
    uint64_t windows = kb_ceil_div(block_longest(direct.n, tl_num_pes(tl)), chunk);
    direct.parts = windows * direct.cubes.count;
    direct.ranks = (const int32_t *)ranks + 2 * direct.cube.first + direct.cube.at;
    for (uint32_t i = 0; i < DIRECT_LOADS; i++)
        direct.loaded[i] = tl_alloc(tl, mine.dtype, direct.cube.count * chunk);
    for (uint32_t i = 0; i < DIRECT_WINDOWS; i++)
        direct.window[i] = (struct direct_window){.sums = tl_alloc(tl, mine.dtype, direct.cubes.count * chunk),
                                                  .got = tl_alloc(tl, mine.dtype, direct.cubes.count * chunk)};
    for (uint64_t part = 0; part < DIRECT_LOADS - 1; part++)
        direct_load(&direct, part);
    for (uint64_t part = 0; part < direct.parts; part++) {
        uint64_t window = part / direct.cubes.count;
        if (part % direct.cubes.count == 0)
            direct_begin(&direct, window);
        direct_load(&direct, part + DIRECT_LOADS - 1);
        direct_part(&direct, part);
        if ((part + 1) % direct.cubes.count == 0 && window > 0)
            direct_end(&direct, window - 1);
    }
    if (windows > 0)
        direct_end(&direct, windows - 1);
    for (uint32_t i = 0; i < DIRECT_WINDOWS; i++) {
        transfers_wait(tl, &direct.window[i].sends);
        if (direct.window[i].store)
            tl_wait(tl, direct.window[i].store);
    }
}

/* ---- in benches */

/* Returns the elements of a message: as many as a TCM has room for beside tensors of `held` bytes. 0: it has none, or the ranks are
 * not equally many in each cube of one SIP. */
static inline uint64_t direct_chunk(const struct collective *c, const struct levels *l, uint64_t held)
{
    uint64_t rows = DIRECT_LOADS * l->pes + 2 * DIRECT_WINDOWS * l->cubes, buffers = DIRECT_LOADS + 2 * DIRECT_WINDOWS;
    uint64_t room = collective_room(c, held), chunk = (room > 64 * buffers ? room - 64 * buffers : 0) / rows;
    return c->sips == 1 && l->even ? kb_min(kb_min(chunk, c->chunk) / c->element_bytes, block_longest(c->n, c->p)) : 0;
}

/* What the ranks load from one another and send. */
static inline struct kb_work direct_bound(const struct collective *c, const struct levels *l)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint64_t bytes = c->n * c->element_bytes;
    bound.latency_ps += level_traffic(bound.traffic, c->pes, 1, l->pes, bytes / l->pes);
    bound.latency_ps += level_traffic(bound.traffic, c->pes, l->pes, l->cubes, bytes / l->pes / l->cubes);
    return bound;
}

/* How long a memory takes to find what PEs of the cube load from it for a part; half of them meet. */
static inline uint64_t direct_access_ps(const struct collective *c, const struct levels *l)
{
    return collective_access_ps(c) * l->pes * (c->space == KB_SRAM ? l->pes : 1) / 2;
}

/* The most parts of a window that are not empty. */
static inline uint64_t direct_parts(const struct collective *c, const struct levels *l)
{
    uint64_t most = 0;
    for (uint32_t pe = 0; pe < l->pes; pe++) {
        uint64_t parts = 0;
        for (uint32_t cube = 0; cube < l->cubes; cube++)
            parts += block_range(c->n, c->p, cube * l->pes + pe).count > 0;
        most = kb_max(most, parts);
    }
    return most;
}

/* A rank loads and adds up one part after another, and what it gets of all cubes after the last one. One rank has nothing to add. */
static inline uint64_t direct_estimate_ps(const struct collective *c, const struct levels *l, const struct kb_work *bound,
                                          uint64_t chunk)
{
    if (chunk == 0 || c->p == 1)
        return UINT64_MAX;
    uint64_t parts = kb_ceil_div(block_longest(c->n, c->p), chunk) * direct_parts(c, l);
    uint64_t fill_ps = kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz);
    uint64_t part_ps = kb_max(collective_memory_ps(c, c->n * c->element_bytes, 0) / parts, direct_access_ps(c, l)) +
                       fill_ps + kb_math_ps(c->dtype, chunk * l->pes) + command_ps();
    return kb_max(parts * part_ps, kb_traffic_ps(bound->traffic)) + 2 * bound->latency_ps +
           l->cubes * command_ps() + fill_ps + kb_math_ps(c->dtype, chunk * l->cubes);
}

/* Returns the algorithm that is used: `other`, which has a name, where direct cannot run, and a note says so. A note also says if
 * the TCMs make messages shorter than was asked for. */
static inline uint32_t direct_used(const struct collective *c, uint32_t algorithm, uint32_t direct, uint32_t other, const char *name,
                                   uint64_t chunk)
{
    uint64_t message = kb_min(c->chunk / c->element_bytes, block_longest(c->n, c->p));
    if (algorithm != direct)
        return algorithm;
    if (chunk == 0)
        kb_note("algorithm=direct: %s is used, the PEs are not equally many in each cube of one SIP, or their TCMs have no room", name);
    else if (chunk < message)
        param_used("chunk", kb_int(chunk), chunk * c->element_bytes, "the TCMs have room for that");
    return chunk ? direct : other;
}

#endif
