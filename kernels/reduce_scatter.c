/* reduce_scatter.c: every rank gets its block of the reduction of all ranks' vectors, or one rank, the root, gets all of it.
 *
 * Direct, within a SIP: each rank makes its block (direct.h), and stores it, with the root if that gets all. Else the root gets it
 * along a chain (chain.h), and ranks get their blocks by a ring or in levels.
 *
 * Ring: the block of a rank starts at the next rank, goes once around the ring, is reduced with each rank's own part on the
 * way, and is complete when it reaches its rank. Every rank sends (p - 1) / p of the vector, to its neighbour only.
 *
 * Levels: the vector is cut into units, which are the blocks of neighbouring ranks of a SIP. The PEs of a cube reduce a
 * share of the units each, over the vectors of their cube; then the PEs of a SIP, over its cubes; then, over the SIPs, those
 * of the SIP that the unit is for. They give the ranks their blocks. Fewer units are fewer messages between SIPs, more of them
 * are shared by more PEs.
 *
 * auto estimates the time of each and takes the shortest. */
#include "chain.h"
#include "direct.h"

struct reduce_scatter_args {
    kb_tensor in, out;                                  /* `in`: a row per rank; `out`: a block of columns per rank, or all of it */
    struct kb_order order;
    const char *op;
    uint64_t chunk_bytes;
    struct levels levels;
    uint64_t unit;                                      /* ranks of a unit */
    kb_tensor of_cube, of_sip;                          /* units that were reduced: a row per rank */
    const uint32_t *ranks;                              /* of cubes; direct */
    uint64_t chunk;                                     /* elements of a message; direct */
};

KB_KERNEL(reduce_scatter_ring, struct reduce_scatter_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0], longest = block_longest(n, p);
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, arg->op, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipeline.segment)
        for (uint64_t step = 0; step < p; step++) {
            struct indices block = block_range(n, p, ring_behind(&ring, step + 1));
            struct indices range = range_window(block, base, pipeline.segment);
            struct indices own = {base, step == p - 1 ? range.count : 0};
            unsigned actions = PIPELINE_LOAD | (step > 0 ? PIPELINE_RECV : 0) |
                               (step == p - 1 ? PIPELINE_STORE : PIPELINE_SEND);
            pipeline_push(&pipeline, &(struct segment){
                actions, ring_behind(&ring, 1), ring_ahead(&ring, 1), subrange(tl, in, range), subrange(tl, out, own),
                range.count});
        }
    pipeline_drain(&pipeline);
}

KB_KERNEL(reduce_direct, struct reduce_scatter_args)
{
    bool at_root = tl_shards(arg->out) == 1;
    struct tl_shard out = flattened(at_root ? tl_shard(tl, arg->out, 0) : tl_my_shard(tl, arg->out));
    if (at_root)
        out = subrange(tl, out, block_range(out.shape[0], tl_num_pes(tl), tl_pe(tl)));
    direct_run(tl, arg->in, out, arg->op, &arg->levels, arg->ranks, arg->chunk);
}

KB_KERNEL(reduce, struct chain_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_shard(tl, arg->out, 0));
    bool begins = ring.at == 1 || ring.count == 1;      /* the rank after the root, which is last */
    chain_run(tl, arg, &ring, in, out, PIPELINE_LOAD | (begins ? 0 : PIPELINE_RECV) |
                                           (ring.at == 0 ? PIPELINE_STORE : PIPELINE_SEND));
}

/* ---- levels */

struct units {
    uint64_t n, p, ranks;                               /* elements, ranks, ranks of a unit */
};

static struct indices units_range(const struct units *units, uint64_t first, uint64_t end)
{
    uint64_t from = block_range(units->n, units->p, first * units->ranks).first;
    return (struct indices){from, block_range(units->n, units->p, end * units->ranks).first - from};
}

/* The elements of the units that PE number `pe` of a cube with `pes` reduces. */
static struct indices units_of_pe(const struct units *units, uint64_t pe, uint64_t pes)
{
    uint64_t all = units->p / units->ranks;
    return units_range(units, all * pe / pes, all * (pe + 1) / pes);
}

static uint64_t units_longest(const struct units *units)
{
    return block_longest(units->n, units->p) * units->ranks;
}

/* Stores the blocks of a unit, which lie in a row of a tensor, with their ranks. */
static void give_blocks(struct tl *tl, const struct units *units, uint64_t unit, struct tl_shard row, kb_tensor out)
{
    struct indices all = units_range(units, unit, unit + 1);
    uint64_t most = kb_min(all.count, tl_room_bytes(tl) / kb_dtype_bytes(row.dtype) / 2);
    if (most == 0)
        return;
    struct tl_shard buffer = tl_alloc(tl, row.dtype, most);
    struct transfers stores = {0};
    for (uint64_t base = 0; base < all.count; base += most) {
        uint64_t count = kb_min(most, all.count - base);
        transfers_wait(tl, &stores);
        tl_load_into(tl, tl_part(tl, buffer, 0, 0, count), tl_part(tl, row, 0, base, count));
        for (uint64_t done = 0; done < count;) {
            uint64_t at = all.first + base + done, rank = block_owner(units->n, units->p, at);
            struct indices block = block_range(units->n, units->p, rank);
            uint64_t some = kb_min(block.first + block.count - at, count - done);
            transfers_add(tl, &stores, tl_store_async(
                tl, tl_part(tl, flattened(tl_shard(tl, out, rank)), 0, at - block.first, some),
                tl_part(tl, buffer, 0, done, some)));
            done += some;
        }
    }
    transfers_wait(tl, &stores);
    tl_free(tl, buffer);
}

KB_KERNEL(reduce_scatter_levels, struct reduce_scatter_args)
{
    const struct levels *levels = &arg->levels;
    struct units units = {flattened(tl_my_shard(tl, arg->in)).shape[0], tl_num_pes(tl), arg->unit};
    uint64_t in_sip = levels->pes * levels->cubes, all = units.p / units.ranks, longest = units_longest(&units);
    uint32_t me = tl_pe(tl);
    struct notices notices = notices_open(tl);
    struct peers cube = level_peers(tl, levels, LEVEL_CUBE), cubes = level_peers(tl, levels, LEVEL_SIP);
    struct peers sips = level_peers(tl, levels, LEVEL_SYSTEM);
    struct indices mine = units_of_pe(&units, cube.at, cube.count);
    struct mover mover;
    mover_open(&mover, tl, flattened(tl_my_shard(tl, arg->in)).dtype, arg->op);
    mover_push(&mover, (struct span){arg->in, cube, mine.first, 0}, (struct span){arg->of_cube, only(me), 0, 0},
               mine.count, 4);
    mover_drain(&mover);
    levels_barrier(tl, &notices, levels);

    for (uint64_t i = me % in_sip; i < all; i += in_sip) {
        struct indices unit = units_range(&units, i, i + 1);
        uint64_t pe = block_owner(all, cube.count, i);
        struct peers theirs = {cubes.first - cube.at + (uint32_t)pe, cubes.stride, cubes.count, cubes.at};
        uint64_t from = unit.first - units_of_pe(&units, pe, cube.count).first;
        mover_push(&mover, (struct span){arg->of_cube, theirs, from, 0},
                   (struct span){arg->of_sip, only(me), i / in_sip * longest, 0}, unit.count, 4);
    }
    mover_drain(&mover);
    if (sips.count > 1)
        levels_barrier(tl, &notices, levels);

    uint64_t first = sips.at * (in_sip / units.ranks);          /* the units of this SIP */
    for (uint64_t i = first; i < first + in_sip / units.ranks; i++) {
        uint64_t from = i / in_sip * longest;
        if (i % in_sip != me % in_sip)
            continue;
        if (sips.count > 1)                             /* what others read, none of them reads twice */
            mover_push(&mover, (struct span){arg->of_sip, sips, from, 0}, (struct span){arg->of_cube, only(me), 0, 0},
                       units_range(&units, i, i + 1).count, 4);
        mover_drain(&mover);
        mover_close(&mover);
        struct tl_shard row = flattened(tl_my_shard(tl, sips.count > 1 ? arg->of_cube : arg->of_sip));
        give_blocks(tl, &units, i, tl_part(tl, row, 0, sips.count > 1 ? 0 : from, longest), arg->out);
        mover_open(&mover, tl, row.dtype, arg->op);
    }
}

/* ---- the bench of reduce_scatter */

/* What each level loads: shares of the units in a cube, units in a SIP and of all SIPs. */
static struct kb_work levels_bound(const struct collective *c, const struct levels *l)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint64_t bytes = c->n * c->element_bytes, in_sip = l->pes * l->cubes;
    bound.latency_ps += level_traffic(bound.traffic, c->pes, 1, l->pes, bytes / l->pes);
    bound.latency_ps += level_traffic(bound.traffic, c->pes, l->pes, l->cubes, bytes / in_sip);
    bound.latency_ps += level_traffic(bound.traffic, c->pes, (uint32_t)in_sip, l->sips, bytes / c->p);
    return bound;
}

/* How long the SIPs take with `units` units for each of them, which the switch passes, and PEs load one after another. */
static uint64_t units_ps(const struct collective *c, const struct levels *l, const struct kb_work *bound, uint64_t units)
{
    uint64_t in_sip = l->pes * l->cubes, ranks = in_sip / units, bytes = block_longest(c->n, c->p) * c->element_bytes * ranks;
    uint64_t turns = kb_ceil_div(units * l->sips, in_sip), loads_ps = 0;
    if (l->sips > 1)
        loads_ps = (l->sips - 1) * (2 * kb_latency_ps(c->pes.pe[0], c->pes.pe[c->p - 1]) + command_ps());
    return kb_max(kb_max(switch_ps(l->sips, l->sips * units * (l->sips - 1)), kb_traffic_ps(bound->traffic)), loads_ps) +
           turns * collective_memory_ps(c, 2 * bytes, 2 * bytes) + (turns * l->cubes + 2 * ranks) * command_ps();
}

static uint64_t levels_estimate_ps(const struct collective *c, const struct levels *l, const struct kb_work *bound,
                                   uint64_t units)
{
    uint64_t bytes = c->n * c->element_bytes, commands = 2 * (l->pes + l->cubes) + 8;
    return 4 * bound->latency_ps + collective_memory_ps(c, bytes + bytes / 2, bytes / l->pes) + commands * command_ps() +
           units_ps(c, l, bound, units);
}

enum algorithm { RING, IN_LEVELS, DIRECT, ALGORITHMS };

KB_BENCH(reduce_scatter, "every PE gets its block of the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS,
         KB_WORD(algorithm, "auto ring levels direct",
                 "the shortest of: a ring; cubes, SIPs and the system in turn; within a SIP, each block made by its PE"))
{
    struct collective c = reduction_params();
    struct levels levels = levels_of(c.pes);
    uint64_t longest = block_longest(c.n, c.p), in_sip = levels.pes * levels.cubes, units = 1;
    struct kb_work bound[ALGORITHMS] = {[RING] = ring_bound(c.pes, c.order, (c.n - longest) * c.element_bytes, 1),
                                        [IN_LEVELS] = levels_bound(&c, &levels), [DIRECT] = direct_bound(&c, &levels)};
    for (uint64_t i = 2; i <= in_sip; i++)
        if (in_sip % i == 0 && units_ps(&c, &levels, &bound[IN_LEVELS], i) <
                                   units_ps(&c, &levels, &bound[IN_LEVELS], units))
            units = i;
    struct units all = {c.n, c.p, in_sip / units};
    uint64_t shares = kb_ceil_div(c.p / all.ranks, levels.pes), turns = kb_ceil_div(c.p / all.ranks, in_sip);
    uint64_t of_cube = shares * units_longest(&all), of_sip = turns * units_longest(&all);
    uint64_t held = tcm_padded(c.n * c.element_bytes) + tcm_padded(longest * c.element_bytes);
    uint64_t between = tcm_padded(of_cube * c.element_bytes) + tcm_padded(of_sip * c.element_bytes);
    between = (c.space == KB_TCM ? between : 0) + MOVER_LEAST_ROOM;
    bool fits = collective_room(&c, held) >= between;
    uint64_t chunk = direct_chunk(&c, &levels, held);
    static const char *const names[] = {[RING] = "ring", [IN_LEVELS] = "levels", [DIRECT] = "direct"};
    enum algorithm algorithm = algorithm_used(names, ALGORITHMS, (const uint64_t[]){
        [RING] = ring_estimate_ps(&c, &bound[RING], 1),
        [IN_LEVELS] = fits ? levels_estimate_ps(&c, &levels, &bound[IN_LEVELS], units) : UINT64_MAX,
        [DIRECT] = direct_estimate_ps(&c, &levels, &bound[DIRECT], chunk)});
    algorithm = direct_used(&c, algorithm, DIRECT, RING, "ring", chunk);
    if (algorithm == IN_LEVELS && !fits)
        kb_refuse("levels need %llu bytes of a TCM, in which %llu are left: make size smaller, or take algorithm=ring",
                  (unsigned long long)between, (unsigned long long)collective_room(&c, held));
    if (algorithm == RING)
        collective_fits(&c, held, longest, 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_cols(c.space, c.pes));
    collective_fill(in, c.dtype, c.op, c.p);
    struct reduce_scatter_args args = {in, out, c.order, c.op, c.chunk, levels, in_sip / units, NULL, NULL, cube_ranks(&levels), chunk};
    if (algorithm == IN_LEVELS) {
        args.of_cube = kb_tensor_new("of_cube", c.dtype, kb_2d(c.p, of_cube), kb_rows(c.space, c.pes));
        args.of_sip = kb_tensor_new("of_sip", c.dtype, kb_2d(c.p, of_sip), kb_rows(c.space, c.pes));
    }
    kb_future launch = algorithm == RING ? kb_launch(reduce_scatter_ring, c.pes, &args)
                       : algorithm == DIRECT ? kb_launch(reduce_direct, c.pes, &args)
                                             : kb_launch(reduce_scatter_levels, c.pes, &args);
    kb_wait(launch);

    bound[algorithm].memory_ps = kb_memory_ps(c.space, c.n * c.element_bytes, longest * c.element_bytes);
    collective_report(launch, &c, in, out, c.n * c.element_bytes, c.p - 1, c.p, &bound[algorithm]);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}

/* ---- the bench of reduce */

enum { CHAIN, BLOCKS };                                 /* algorithms: along a chain; direct */

/* Each rank of a chain waits for a message, adds to it and sends it on, and a message waits until a slot is free; the last message
 * passes all ranks. */
static uint64_t chain_estimate_ps(const struct collective *c, const struct kb_work *bound)
{
    uint64_t bytes = c->n * c->element_bytes, message = kb_min(c->chunk, bytes), messages = kb_ceil_div(bytes, message);
    uint64_t far_ps = bound->latency_ps / kb_max(c->p - 1, 1), message_ps = kb_move_ps(message, kb_attrs.noc_link_bw_bps);
    uint64_t math_ps = kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz) +
                       kb_math_ps(c->dtype, message / c->element_bytes);
    uint64_t slot_ps = (2 * far_ps + message_ps + command_ps() + math_ps) / kb_attrs.pe_ipcq_slots;
    uint64_t step_ps = kb_max(2 * command_ps() + math_ps, slot_ps);
    uint64_t work_ps = kb_max(kb_traffic_ps(bound->traffic), collective_memory_ps(c, bytes, bytes));
    return kb_max(work_ps, c->p > 1 ? kb_product(messages, step_ps) : 0) + bound->latency_ps +
           kb_product(c->p, message_ps + math_ps + 2 * command_ps());
}

/* When the last window is made, all blocks of it go to one memory; of others, they do so while the next one is made. */
static uint64_t reduce_direct_estimate_ps(const struct collective *c, const struct levels *l, const struct kb_work *bound,
                                          uint64_t chunk)
{
    uint64_t makes_ps = direct_estimate_ps(c, l, bound, chunk), bytes = c->n * c->element_bytes;
    return kb_sum(makes_ps, chunk ? kb_memory_ps(c->space, 0, kb_min(bytes, chunk * c->p * c->element_bytes)) : 0);
}

KB_BENCH(reduce, "one PE gets the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS, ROOT_PARAM,
         KB_WORD(algorithm, "auto direct chain", "within a SIP, each PE makes a block; from one PE to the next; or the shorter"))
{
    struct collective c = reduction_params();
    uint32_t root = (uint32_t)param_used("root", kb_int(root), kb_int(root) % c.pes.count, "modulo the number of ranks");
    uint64_t bytes = c.n * c.element_bytes;
    struct levels levels = levels_of(c.pes);
    c.order = kb_order_from(c.order, root);
    struct kb_work bound[] = {[CHAIN] = chain_bound(c.pes, c.order, 1 % c.order.count, bytes), [BLOCKS] = direct_bound(&c, &levels)};
    uint64_t chunk = direct_chunk(&c, &levels, 2 * tcm_padded(bytes));
    static const char *const names[] = {[CHAIN] = "chain", [BLOCKS] = "direct"};
    uint32_t algorithm = algorithm_used(names, 2, (const uint64_t[]){
        [CHAIN] = chain_estimate_ps(&c, &bound[CHAIN]), [BLOCKS] = reduce_direct_estimate_ps(&c, &levels, &bound[BLOCKS], chunk)});
    algorithm = direct_used(&c, algorithm, BLOCKS, CHAIN, "chain", chunk);
    if (algorithm == CHAIN)
        collective_fits(&c, 2 * tcm_padded(bytes), c.n, 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    collective_fill(in, c.dtype, c.op, c.p);
    struct chain_args chain = {in, out, c.order, false, c.op, c.chunk};
    struct reduce_scatter_args direct = {.in = in, .out = out, .op = c.op, .levels = levels, .ranks = cube_ranks(&levels), .chunk = chunk};
    kb_future launch = algorithm == CHAIN ? kb_launch(reduce, c.pes, &chain) : kb_launch(reduce_direct, c.pes, &direct);
    kb_wait(launch);

    bound[algorithm].memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 1, 1, &bound[algorithm]);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
