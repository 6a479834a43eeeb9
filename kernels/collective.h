/* collective.h: what the collectives share: the ring of ranks, the block distribution of a vector, a barrier, the
 * parameters of their benches, and the bounds that they are measured against.
 *
 * The ranks of a collective are the PEs of its launch, numbered by their position in it; the rank says whose block is
 * whose. The ranks form a ring in the order of a snake over the machine (kb_snake), so that neighbours on the ring are
 * near each other. An index on the ring is not a rank: ring.rank[index] is. */
#ifndef COLLECTIVE_H
#define COLLECTIVE_H

#include "needs.h"
#include "params.h"
#include "pipeline.h"
#include "sips.h"
#include <kb/host.h>
#include <kb/measure.h>

/* ---- the ring */

struct rank_ring {
    uint32_t at, count;                                 /* this PE's index on the ring; ranks */
    const uint32_t *rank;                               /* by index */
};

static inline struct rank_ring ring_of(struct tl *tl, struct kb_order order)
{
    struct rank_ring ring = {0, order.count, order.position};
    while (ring.rank[ring.at] != tl_pe(tl))
        ring.at++;
    return ring;
}

/* The rank `steps` further along the ring. */
static inline uint32_t ring_ahead(const struct rank_ring *ring, uint64_t steps)
{
    return ring->rank[(ring->at + steps) % ring->count];
}

static inline uint32_t ring_behind(const struct rank_ring *ring, uint64_t steps)
{
    return ring->rank[(ring->at + ring->count - steps % ring->count) % ring->count];
}

/* Dissemination barrier: in step k each rank sends a byte to the rank 2^k ahead and waits for the byte of the rank 2^k
 * behind. What a rank waited for before the barrier has ended for all ranks after it. */
static inline void dissemination_barrier(struct tl *tl, const struct rank_ring *ring)
{
    struct tl_shard out = tl_alloc(tl, KB_u8, 1), in = tl_alloc(tl, KB_u8, 1);
    for (uint64_t distance = 1; distance < ring->count; distance *= 2) {
        tl_handle sent = tl_send_async(tl, ring_ahead(ring, distance), out);
        tl_recv(tl, ring_behind(ring, distance), in);
        tl_wait(tl, sent);
    }
    tl_free(tl, in);
    tl_free(tl, out);
}

/* ---- blocks of a vector */

/* Consecutive indices of an axis. */
struct indices {
    uint64_t first, count;
};

/* Block i of n elements in p blocks, as even as possible: the split of kb_rows and kb_cols. */
static inline struct indices block_range(uint64_t n, uint64_t p, uint64_t i)
{
    uint64_t first = (uint64_t)((unsigned __int128)n * i / p), end = (uint64_t)((unsigned __int128)n * (i + 1) / p);
    return (struct indices){first, end - first};
}

/* The elements of the longest block. */
static inline uint64_t block_longest(uint64_t n, uint64_t p)
{
    return kb_ceil_div(n, p);
}

/* The block that contains element i. */
static inline uint64_t block_owner(uint64_t n, uint64_t p, uint64_t i)
{
    return (uint64_t)(((unsigned __int128)(i + 1) * p - 1) / n);
}

/* At most `most` elements of a range, starting `base` elements into it. */
static inline struct indices range_window(struct indices range, uint64_t base, uint64_t most)
{
    uint64_t left = range.count > base ? range.count - base : 0;
    return (struct indices){range.first + base, kb_min(left, most)};
}

/* The elements of a dense shard as one axis. */
static inline struct tl_shard flattened(struct tl_shard shard)
{
    uint64_t count = 1;
    for (uint32_t axis = 0; axis < shard.rank; axis++)
        count *= shard.shape[axis];
    return (struct tl_shard){.addr = shard.addr, .dtype = shard.dtype, .rank = 1, .shape = {count, 1, 1, 1},
                             .stride = {1, 1, 1, 1}};
}

/* A range of a shard's first axis; for an empty range, the shard itself, which the pipeline does not use. */
static inline struct tl_shard subrange(struct tl *tl, struct tl_shard shard, struct indices range)
{
    return range.count ? tl_part(tl, shard, 0, range.first, range.count) : shard;
}

/* The first `count` elements of each of `rows` chunks of a buffer, as rows. */
static inline struct tl_shard chunks_as_rows(struct tl *tl, struct tl_shard buffer, uint64_t chunk, uint32_t rows, uint64_t count)
{
    return tl_view(tl, (struct tl_shard){.addr = buffer.addr, .dtype = buffer.dtype, .rank = 2, .shape = {rows, count},
                                         .stride = {chunk, 1}});
}

/* Reduces the rows of a buffer to one. There is no op that multiplies along an axis. */
static inline void reduce_rows(struct tl *tl, const char *op, struct tl_shard to, struct tl_shard rows)
{
    bool adds = op[0] == 'a', multiplies = op[1] == 'u';
    if (!multiplies) {
        tl_compute(tl, &(struct tl_compute){.op = adds ? "sum" : op, .to = to, .x = rows});
        return;
    }
    tl_copy(tl, to, flattened(tl_part(tl, rows, 0, 0, 1)));
    for (uint64_t i = 1; i < rows.shape[0]; i++)
        tl_math(tl, op, to, to, flattened(tl_part(tl, rows, 0, i, 1)));
}

/* ---- in benches */

#define COLLECTIVE_PARAMS(dtypes, size_help)                                                                           \
    KB_INT(size, 1 << 20, 1, 1ull << 36, size_help), KB_WORD(dtype, dtypes, "dtype of the elements"),                  \
    KB_TEXT(pes, "*", "PEs that take part: a pattern of ids such as sip0.*"),                                          \
    KB_INT(chunk, 16384, 1, 1ull << 36, "largest message in bytes; never more than a slot"),                           \
    KB_WORD(space, "hbm sram tcm", "memory that holds the vectors")

#define REDUCTION_PARAMS KB_WORD(op, "sum min max mul", "reduction")

/* The parameters of a collective's bench. */
struct collective {
    struct kb_pes pes;
    struct kb_order order;                              /* of the ring */
    enum kb_dtype dtype;
    enum kb_space space;
    const char *op;                                     /* of a reduction, for tl_math and kb_ref_reduce; else NULL */
    uint64_t n, p, element_bytes;                       /* elements of the vector, ranks */
    uint64_t sips;                                      /* that have ranks */
    uint64_t chunk;                                     /* bytes of the largest message */
};

/* The memory of the parameter `space`. Where there is no HBM, the default is the memory that there is. */
static inline enum kb_space collective_space(void)
{
    enum kb_space memory = kb_main_memory();
    if (kb_word(space)[0] != 'h')
        return kb_word(space)[0] == 's' ? KB_SRAM : KB_TCM;
    if (memory != KB_HBM)
        kb_note("space=hbm: sram is used, the machine has no HBM");
    return memory;
}

/* The parameter `chunk`, as far as a message can have it: it holds an element, and a spread, whose messages are at most a
 * sixteenth of the TCM, has one of these too. */
static inline uint64_t collective_chunk(uint64_t element_bytes)
{
    uint64_t asked = kb_int(chunk), most = pipeline_message_bytes(), least = kb_min(most, tcm_allocatable_bytes() / 16);
    if (least < element_bytes)
        kb_refuse("an element of %llu bytes does not fit into a message: a slot of pe_ipcq has %llu bytes (slot_kb), and a "
                  "sixteenth of what kernels have of a TCM %llu", (unsigned long long)element_bytes,
                  (unsigned long long)kb_attrs.pe_ipcq_slot_bytes, (unsigned long long)tcm_allocatable_bytes() / 16);
    return param_used("chunk", asked, kb_clamp(asked, element_bytes, most),
                      asked < element_bytes ? "an element" : "a slot of a ring or a quarter of the TCM");
}

static inline struct collective collective_params(void)
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    return (struct collective){
        .pes = pes, .order = kb_snake(pes), .dtype = dtype,
        .space = collective_space(),
        .n = kb_int(size), .p = pes.count, .element_bytes = kb_dtype_bytes(dtype),
        .sips = sips_of(pes),
        .chunk = collective_chunk(kb_dtype_bytes(dtype)),
    };
}

/* What tensors that take `held` bytes of each memory leave of a TCM, with paddings. */
static inline uint64_t collective_room(const struct collective *c, uint64_t held)
{
    uint64_t room = tcm_allocatable_bytes();
    return c->space == KB_TCM ? room - kb_min(held, room) : room;
}

/* The bytes of the longest messages whose buffers fit into a TCM beside tensors of `held` bytes: those of a pipeline, whose
 * segments have at most `longest` elements, and those of a spread, spread_buffers of them. */
static inline uint64_t collective_chunk_that_fits(const struct collective *c, uint64_t held, uint64_t longest,
                                                  uint64_t spread_buffers)
{
    uint64_t room = collective_room(c, held), buffer = room / 2 / 64 * 64, chunk = c->chunk;
    if (kb_min(kb_product(longest, c->element_bytes), chunk * pipeline_chunks(chunk)) > buffer)
        chunk = buffer / pipeline_chunks(c->element_bytes);
    if (spread_buffers && kb_min(chunk, tcm_allocatable_bytes() / 16) > room / spread_buffers / 64 * 64)
        chunk = room / spread_buffers / 64 * 64;
    return chunk;
}

/* Makes messages as short as that. Refuses the run if messages of one element are too long. */
static inline void collective_fits(struct collective *c, uint64_t held, uint64_t longest, uint64_t spread_buffers)
{
    uint64_t chunk = collective_chunk_that_fits(c, held, longest, spread_buffers);
    if (chunk < c->element_bytes)
        kb_refuse("space=tcm: the vectors take %llu bytes of a TCM, in which kernels have %llu, and leave no room for "
                  "messages: make size smaller", (unsigned long long)held, (unsigned long long)tcm_allocatable_bytes());
    if (chunk == c->chunk)
        return;
    c->chunk = chunk;
    kb_param_used("chunk", kb_int(chunk), chunk);
    kb_note("space=tcm: messages of %llu bytes are used, for which the vectors leave room", (unsigned long long)chunk);
}

static inline struct collective reduction_params(void)
{
    struct collective params = collective_params();
    params.op = kb_word(op)[0] == 's' ? "add" : kb_word(op);
    if (params.p > 1)
        needs_math(params.dtype);
    return params;
}

/* Fills a tensor with random values whose reduction of `p` vectors stays in range. Factors that are floats are near 1; integers
 * may wrap and take their whole range. The product of more than 8 of those is almost always 0, as too many are even: so most
 * factors of such a product are 1, and one or two of the p are 2. */
static inline void collective_fill(kb_tensor tensor, enum kb_dtype dtype, const char *op, uint64_t p)
{
    double most = dtype == KB_i32 ? 0x1p31 : dtype == KB_i8 ? 128 : 1;
    bool product = op[0] == 'm' && op[1] == 'u', integer = dtype == KB_i32 || dtype == KB_i8;
    if (product && !integer)
        kb_fill_uniform(tensor, 0.9, 1.1);
    else if (product && p > 8)                          /* 1.5 and more are rounded to 2: 0.3 log2(p) deviations from the mean */
        kb_fill_normal(tensor, 1.3, 2.0 / (3 * (63 - __builtin_clzll(p)) + 1));
    else if (dtype == KB_bf16)                          /* sums of both signs would be as small as their roundings */
        kb_fill_uniform(tensor, 0.5, 1);
    else
        kb_fill_uniform(tensor, -most, most);
}

/* The bound of an algorithm in which every rank sends `bytes` in all to the next one on the ring, as `rounds` chains of
 * p - 1 messages each. */
static inline struct kb_work ring_bound(struct kb_pes pes, struct kb_order order, uint64_t bytes, uint32_t rounds)
{
    uint64_t sum_ps = 0, longest_ps = 0;
    struct kb_work bound = {.traffic = kb_traffic_new()};
    for (uint32_t i = 0; order.count > 1 && i < order.count; i++) {
        uint32_t from = pes.pe[order.position[i]], to = pes.pe[order.position[(i + 1) % order.count]];
        uint64_t latency_ps = kb_latency_ps(from, to);
        kb_traffic_add(bound.traffic, from, to, bytes);
        sum_ps += latency_ps;
        longest_ps = kb_max(longest_ps, latency_ps);
    }
    bound.latency_ps = rounds * (sum_ps - longest_ps);
    return bound;
}

/* x * up / down, rounded down. */
static inline uint64_t mul_div(uint64_t x, uint64_t up, uint64_t down)
{
    return (uint64_t)((unsigned __int128)x * up / down);
}

/* Reports the roofline of a collective that reads `in` and writes `out`, and figures as nccl-tests define them: algbw is
 * the bytes of a vector divided by the time, and busbw is algbw * up / down, which compares with the bandwidth of a link
 * whatever the number of ranks. `bytes` are those of a vector. A reduction has an op for all its elements of `in`, less
 * those of one vector. */
static inline void collective_report(kb_future launch, const struct collective *params, kb_tensor in, kb_tensor out,
                                     uint64_t bytes, uint64_t up, uint64_t down, const struct kb_work *work)
{
    uint64_t time_ps = kb_kernels_ps(launch), ops = params->op ? (params->p - 1) * params->n : 0;
    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = params->dtype, .math = ops ? ops * kb_op_cost(params->op) : 0, .reads = {in}, .writes = {out} },
        work);
    if (time_ps == 0)
        return;
    uint64_t algbw = mul_div(bytes, 1000000000000u, time_ps);
    kb_figure("algbw", algbw, KB_BYTES_PER_S);
    kb_figure("busbw", mul_div(algbw, up, down), KB_BYTES_PER_S);
}

/* ---- the choice of an algorithm */

/* What a command that moves data costs besides its bytes. */
static inline uint64_t command_ps(void)
{
    return kb_attrs.pe_cpu_overhead_ps + kb_attrs.pe_scheduler_overhead_ps + kb_attrs.pe_dma_overhead_ps;
}

/* The ranks of a cube. */
static inline uint64_t collective_sharing(const struct collective *c)
{
    return kb_min(c->p, kb_machine_pes("sip0.cube0.*").count);
}

/* How long the memory of the vectors is busy if each rank reads and writes these bytes: an sram is that of all ranks of a cube,
 * behind a link between routers. */
static inline uint64_t collective_memory_ps(const struct collective *c, uint64_t read_bytes, uint64_t write_bytes)
{
    uint64_t memory_ps = kb_memory_ps(c->space, read_bytes, write_bytes);
    if (c->space != KB_SRAM)
        return memory_ps;
    uint64_t link_ps = kb_move_ps(kb_sum(read_bytes, write_bytes), kb_attrs.noc_link_bw_bps);
    return kb_max(link_ps, kb_product(collective_sharing(c), memory_ps));
}

/* How long the memory of the vectors takes to find what a load asks for. */
static inline uint64_t collective_access_ps(const struct collective *c)
{
    return c->space == KB_HBM ? kb_attrs.hbm_ctrl_access_ps : c->space == KB_SRAM ? kb_attrs.sram_overhead_ps : 0;
}

/* The steps of a ring follow one another, and a message waits until one of the slots is free, which takes the way there and
 * back, and the reduction if there is one. A ring loads and stores while it sends; what it reduces it loads piece by piece. In one
 * round, the reduced vector or what is gathered is only a block of each rank. */
static inline uint64_t ring_estimate_ps(const struct collective *c, const struct kb_work *bound, uint32_t rounds)
{
    uint64_t bytes = c->n * c->element_bytes, part = rounds == 1 ? block_longest(c->n, c->p) * c->element_bytes : bytes;
    uint64_t steps = rounds * c->p, memory_ps = collective_memory_ps(c, c->op ? bytes : part, c->op ? part : bytes);
    if (c->space == KB_SRAM)                            /* each step of each rank of a cube loads or stores */
        memory_ps = kb_max(memory_ps, kb_product(steps * collective_sharing(c), kb_attrs.sram_overhead_ps));
    uint64_t messages = kb_ceil_div(block_longest(c->n, c->p) * c->element_bytes, c->chunk);
    uint64_t loads = c->op ? c->p * kb_ceil_div(messages, pipeline_chunks(c->chunk)) : 0;
    uint64_t far_ps = 0, message_ps = 0;
    memory_ps = kb_sum(memory_ps, kb_product(loads, command_ps() + collective_access_ps(c)));
    if (c->p == 1)                                      /* it sends nothing */
        return memory_ps + command_ps();
    for (uint32_t i = 0; i < c->order.count; i++) {
        uint32_t from = c->pes.pe[c->order.position[i]], to = c->pes.pe[c->order.position[(i + 1) % c->order.count]];
        if (kb_latency_ps(from, to) <= far_ps)
            continue;
        kb_traffic one = kb_traffic_new();
        kb_traffic_add(one, from, to, kb_min(c->chunk, block_longest(c->n, c->p) * c->element_bytes));
        far_ps = kb_latency_ps(from, to);
        message_ps = kb_traffic_ps(one);
    }
    bool adds = c->op && messages > kb_attrs.pe_ipcq_slots;     /* a slot is free only when its message is added */
    uint64_t math_ps = !adds ? 0 : kb_attrs.pe_cpu_overhead_ps + kb_attrs.pe_scheduler_overhead_ps +
                                   kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz) +
                                   kb_math_ps(c->dtype, kb_min(c->chunk / c->element_bytes, block_longest(c->n, c->p)));
    uint64_t step_ps = (command_ps() + switch_ps(c->sips, c->sips)) * messages;
    uint64_t steps_ps = bound->latency_ps + steps * step_ps;
    uint64_t slots_ps = steps * messages * (2 * far_ps + message_ps + command_ps() + math_ps) /
                        kb_attrs.pe_ipcq_slots;
    return kb_max(kb_max(steps_ps, slots_ps), bound->latency_ps + kb_max(kb_traffic_ps(bound->traffic), memory_ps));
}

/* The algorithm that a bench was asked for by name, or the one with the shortest estimate, which a note says: UINT64_MAX for
 * one that cannot run. Their names differ in their first letter, and from "auto". */
static inline uint32_t algorithm_used(const char *const *names, uint32_t count, const uint64_t *estimate_ps)
{
    char each[256] = "";
    uint32_t best = 0, length = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kb_word(algorithm)[0] == names[i][0])
            return i;
        best = estimate_ps[i] < estimate_ps[best] ? i : best;
        if (estimate_ps[i] < UINT64_MAX)
            length += (uint32_t)__builtin_snprintf(each + length, sizeof each - length, "%s%s %.2f", length ? ", " : "",
                                                   names[i], (double)estimate_ps[i] / 1e6);
    }
    if (estimate_ps[best] < UINT64_MAX)
        kb_note("algorithm=auto: %s is used, estimated at %.2f us (%s)", names[best], (double)estimate_ps[best] / 1e6, each);
    return best;
}

#endif
