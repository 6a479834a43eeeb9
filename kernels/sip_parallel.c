/* sip_parallel.c: a feed-forward block, y = relu(x w1) w2, over several SIPs, with a program of the host for each SIP:
 * data-parallel, and tensor-parallel within groups of SIPs that are data-parallel.
 *
 *             x, y                        w1              w2
 *     group 0 [rows 0, 1, 2, ...]         SIP 0 [|  ]     SIP 0 [--]
 *     group 1 [rows n / 2, ...  ]         SIP 1 [  |]     SIP 1 [--]      the same in each group
 *
 * Each group of SIPs has a share of the rows of x and all weights. With one SIP in a group no data passes between SIPs.
 * Otherwise each SIP of a group has columns of w1 and the same rows of w2, and gets a partial sum of each element of y.
 * The SIPs then exchange partial sums over PCIe: each adds up a part of each PE's rows.
 *
 * Within a SIP the rows are split over the PEs, each of which has the SIP's weights in its HBM. Where SIPs exchange sums, few
 * PEs of each have rows if that takes less time: each sends messages of its own, which pass one switch. x and y lie in the
 * first SIP of each group. The programs share the tensors: the first one makes them, which takes no time, while the others wait
 * at a barrier; each then launches the kernel on its own SIP. */
#include "collective.h"
#include "skinny_gemm.h"

struct mlp_args {
    kb_tensor x, y;                                     /* batch x d, rows over the PEs of the first SIP of each group */
    kb_tensor w1, w2;                                   /* d x hidden, hidden x d: this SIP's part, a copy per PE */
    uint32_t group, member, peer, in_sip;               /* SIPs of a group; this SIP's number in it; the group's first PE;
                                                           the PEs of a SIP */
    uint64_t shard;                                     /* of x and y, of the first PE of this SIP */
    uint64_t message;                                   /* elements of a message of partial sums */
    uint64_t widest;                                    /* the most columns of w1 that a SIP has */
};

/* Elements [base, base + most) of part i of a buffer that is split over the group; a shape of 0 if there are none. */
static struct tl_shard part_of_sip(struct tl *tl, const struct mlp_args *arg, struct tl_shard all, uint32_t i,
                                   uint64_t base, uint64_t most)
{
    struct indices range = range_window(block_range(all.shape[0], arg->group, i), base, most);
    struct tl_shard none = {0};
    return range.count ? tl_part(tl, all, 0, range.first, range.count) : none;
}

/* Adds up the group's partial sums of this SIP's part of the elements, and stores it. */
static void add_partial_sums(struct tl *tl, const struct mlp_args *arg, struct tl_shard sums, struct tl_shard y)
{
    uint64_t longest = block_longest(sums.shape[0], arg->group), most = kb_min(arg->message, longest);
    struct tl_shard got = tl_alloc(tl, KB_f32, most), rounded = tl_alloc(tl, y.dtype, most);
    for (uint64_t base = 0; base < longest; base += most) {
        struct tl_shard own = part_of_sip(tl, arg, sums, arg->member, base, most);
        for (uint32_t i = 1; i < arg->group; i++) {
            uint32_t to = (arg->member + i) % arg->group;
            struct tl_shard part = part_of_sip(tl, arg, sums, to, base, most);
            if (part.rank)
                tl_send(tl, TL_NUMBER(arg->peer + to * arg->in_sip + tl_pe(tl)), part);
        }
        for (uint32_t i = 1; i < arg->group && own.rank; i++) {
            uint32_t from = (arg->member + arg->group - i) % arg->group;
            struct tl_shard part = tl_part(tl, got, 0, 0, own.shape[0]);
            tl_recv(tl, TL_NUMBER(arg->peer + from * arg->in_sip + tl_pe(tl)), part);
            tl_add(tl, own, own, part);
        }
        if (own.rank) {
            struct tl_shard out = tl_part(tl, rounded, 0, 0, own.shape[0]);
            tl_cast(tl, out, own);
            tl_store(tl, part_of_sip(tl, arg, y, arg->member, base, most), out);
        }
    }
    tl_free(tl, rounded);
    tl_free(tl, got);
}

/* What a row of x, of the hidden layer and of sums takes of a TCM. */
static uint64_t row_bytes(uint64_t d, uint64_t widest, uint64_t size)
{
    return (d + widest) * size + 4 * d;
}

/* What messages of partial sums are added and rounded in, of 4 bytes an element at most, and what it takes that each of the kernel's
 * five buffers begins at a multiple of 64. */
static uint64_t messages_bytes(uint64_t message)
{
    return 2 * 4 * message + 5 * 64;
}

/* How many rows fit into `room` bytes at a time, beside messages. */
static uint64_t rows_that_fit(uint64_t room, uint64_t message, uint64_t a_row)
{
    uint64_t messages = messages_bytes(message);
    return room > messages ? (room - messages) / a_row : 0;
}

KB_KERNEL(mlp, struct mlp_args)
{
    struct tl_shard x = tl_shard(tl, arg->x, arg->shard + tl_pe(tl)), y = tl_shard(tl, arg->y, arg->shard + tl_pe(tl));
    struct tl_shard w1 = tl_my_shard(tl, arg->w1), w2 = tl_my_shard(tl, arg->w2);
    uint64_t d = x.shape[1], hidden = w1.shape[1];
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    uint64_t step = kb_min(rows_that_fit(tl_room_bytes(tl), arg->message, row_bytes(d, arg->widest, kb_dtype_bytes(x.dtype))),
                           x.shape[0]);
    struct tl_shard in = tl_alloc(tl, x.dtype, step, d), h = tl_alloc(tl, x.dtype, step, hidden);
    struct tl_shard sums = tl_alloc(tl, KB_f32, step, d);
    for (uint64_t row = 0; row < x.shape[0]; row += step) {
        uint64_t rows = kb_min(step, x.shape[0] - row);
        struct tl_shard rows_in = tl_part(tl, in, 0, 0, rows), rows_h = tl_part(tl, h, 0, 0, rows);
        struct tl_shard rows_sums = tl_part(tl, sums, 0, 0, rows), to = tl_part(tl, y, 0, row, rows);
        tl_load_into(tl, rows_in, tl_part(tl, x, 0, row, rows));
        tl_wait(tl, skinny_gemm(tl, rows_h, rows_in, w1, 0, "relu"));
        tl_wait(tl, skinny_gemm(tl, rows_sums, rows_h, w2, 0, NULL));
        add_partial_sums(tl, arg, tl_reshape(tl, rows_sums, rows * d), tl_reshape(tl, to, rows * d));
    }
}

/* ---- in benches */

enum { MOST_SIPS = 64 };                                /* of a group */

/* What the programs of all SIPs share. */
static struct shared {
    kb_tensor x, y, w1[MOST_SIPS], w2[MOST_SIPS];       /* w1 and w2 by member of a group */
    kb_future *launch;                                  /* by SIP */
    uint32_t of_sip;                                    /* PEs of a SIP that have rows */
} shared;

#define MLP_PARAMS                                                                                                     \
    KB_INT(batch, 2048, 1, 1 << 24, "rows of x and y"), KB_INT(d, 256, 1, 1 << 16, "columns of x and y"),             \
    KB_INT(hidden, 1024, 1, 1 << 20, "columns of w1, rows of w2"),                                                     \
    KB_WORD(dtype, "f16 bf16 f32", "dtype of all tensors")

/* The PEs of every `stride`-th SIP from `first` on that have rows. */
static struct kb_pes pes_of_sips(uint32_t first, uint32_t stride)
{
    uint32_t in_sip = kb_pes("*").count, of_sip = shared.of_sip, sips = (kb_ranks() - first + stride - 1) / stride;
    uint32_t *pe = kb_array(uint32_t, sips * of_sip);
    for (uint32_t i = 0; i < sips * of_sip; i++)
        pe[i] = (first + i / of_sip * stride) * in_sip + i % of_sip;
    return (struct kb_pes){pe, sips * of_sip};
}

/* Makes the tensors of all SIPs, in groups of `group`. The copies of a weight have the same values in all groups. */
static void make_tensors(uint32_t group)
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t batch = kb_int(batch), d = kb_int(d), hidden = kb_int(hidden);
    shared.launch = kb_array(kb_future, kb_ranks());
    shared.x = kb_tensor_new("x", dtype, kb_2d(batch, d), kb_rows(kb_main_memory(), pes_of_sips(0, group)));
    shared.y = kb_tensor_new("y", dtype, kb_2d(batch, d), kb_rows(kb_main_memory(), pes_of_sips(0, group)));
    kb_fill_uniform(shared.x, -1, 1);
    for (uint32_t i = 0; i < group; i++) {
        struct kb_place copies = kb_copies(kb_main_memory(), pes_of_sips(i, group));
        uint64_t part = block_range(hidden, group, i).count;
        shared.w1[i] = kb_tensor_new("w1", dtype, kb_2d(d, part), copies);
        shared.w2[i] = kb_tensor_new("w2", dtype, kb_2d(part, d), copies);
        if (!kb_has_data())                             /* times do not depend on the values */
            continue;
        kb_fill_uniform(shared.w1[i], -1 / __builtin_sqrt(d), 1 / __builtin_sqrt(d));
        kb_fill_uniform(shared.w2[i], -1 / __builtin_sqrt(hidden), 1 / __builtin_sqrt(hidden));
    }
}

/* Each row of x times the parts of w1 and of w2 of each member of a group, added up. */
static kb_ref expected(uint32_t group)
{
    kb_ref sum = NULL;
    for (uint32_t i = 0; i < group; i++) {
        kb_ref h = kb_ref_gemm(shared.x, shared.w1[i]);
        kb_ref_relu(h);
        kb_ref part = kb_ref_gemm(h, shared.w2[i]);
        kb_ref_unrounded(part);
        sum = i ? kb_ref_binary("add", sum, part) : part;
        kb_ref_unrounded(sum);
    }
    return sum;
}

/* The partial sums that the SIPs of each group send each other. */
static kb_traffic sums_traffic(uint32_t group)
{
    kb_traffic traffic = kb_traffic_new();
    uint32_t in_sip = kb_pes("*").count, of_sip = shared.of_sip, groups = kb_ranks() / group, sharers = groups * of_sip;
    for (uint32_t i = 0; i < sharers; i++) {            /* PEs that have rows of x, and their peers */
        uint32_t first = i / of_sip * group * in_sip + i % of_sip;
        uint64_t elements = block_range(kb_int(batch), sharers, i).count * kb_int(d);
        for (uint32_t from = 0; from < group; from++)
            for (uint32_t to = 0; to < group; to++)
                if (from != to)
                    kb_traffic_add(traffic, first + from * in_sip, first + to * in_sip,
                                   block_range(elements, group, to).count * 4);
    }
    return traffic;
}

/* Reports the roofline of the launch that took longest. The algorithm is that of one SIP: its share of the work. */
static void report(uint32_t group)
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t batch = kb_int(batch), d = kb_int(d), hidden = kb_int(hidden), size = kb_dtype_bytes(dtype);
    uint64_t sips = kb_ranks(), part = hidden / group;
    kb_future longest = shared.launch[0];
    for (uint32_t i = 1; i < sips; i++)
        if (kb_kernels_ps(shared.launch[i]) > kb_kernels_ps(longest))
            longest = shared.launch[i];
    struct kb_problem problem = {.gemm_dtype = dtype, .macs = 2 * batch * d * hidden,
                                 .reads = {shared.x}, .writes = {shared.y}, .read_bytes = 2 * d * hidden * size};
    uint64_t readers = kb_min(shared.of_sip, kb_max(batch * group / sips, 1)), weights = 2 * d * part * size;
    kb_roofline(longest, &problem, &(struct kb_work){
        .macs = kb_ceil_div(problem.macs, sips), .hbm_read = readers * weights + kb_ceil_div(batch * d * size, sips),
        .hbm_written = kb_ceil_div(batch * d * size, sips), .traffic = group > 1 ? sums_traffic(group) : NULL });
}

/* The elements of a message of partial sums: a slot; it is added and rounded in a small part of the TCM. */
static uint64_t sums_message(void)
{
    return kb_max(kb_min(kb_attrs.pe_ipcq_slot_bytes, tcm_allocatable_bytes() / 16) / 4, 1);
}

/* How long a group of several SIPs takes with `of_sip` PEs of each: these multiply their rows, the SIPs exchange sums, the first
 * one gives x to the others and gets y from them, and each message passes the switch. */
static uint64_t mlp_ps(uint32_t group, uint64_t of_sip)
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t d = kb_int(d), part = block_longest(kb_int(hidden), group), size = kb_dtype_bytes(dtype);
    uint64_t batch = kb_ceil_div(kb_int(batch) * group, kb_ranks()), rows = kb_ceil_div(batch, of_sip);
    uint64_t step = rows_that_fit(tcm_allocatable_bytes(), sums_message(), row_bytes(d, part, size));
    uint64_t turns = kb_ceil_div(rows, kb_max(step, 1)), some = kb_ceil_div(rows, turns);
    uint64_t product_ps = kb_gemm_tile_ps(dtype, some, d, part) + kb_gemm_tile_ps(dtype, some, part, d);
    uint64_t read_ps = kb_memory_ps(kb_main_memory(), 2 * d * part * size, 0), others = group - 1;
    uint64_t messages = others * kb_ceil_div(kb_ceil_div(some * d, group), sums_message()) + 1;
    uint64_t passes = kb_min(of_sip, batch) * turns * kb_ranks() * messages;
    uint64_t sent = kb_ceil_div(batch * d * others, group) * 4 + batch * d * size;
    return turns * kb_max(product_ps, read_ps) + kb_max(switch_ps(group, passes), sips_exchange_ps(sent, 3 * turns));
}

/* The number of PEs of a SIP for which a group takes the shortest time. SIPs that exchange nothing use all of theirs. */
static uint32_t pes_that_pay(uint32_t group)
{
    uint32_t in_sip = kb_pes("*").count, best = in_sip;
    if (group == 1)
        return in_sip;
    for (uint32_t i = in_sip; i-- > 1;)
        if (mlp_ps(group, i) < mlp_ps(group, best))
            best = i;
    return best;
}

/* The program of a SIP, in a group of `group` SIPs. */
static void run_mlp(uint32_t group)
{
    uint32_t first = kb_rank() / group * group, in_sip = kb_pes("*").count;     /* SIP of the group */
    uint64_t message = sums_message(), size = kb_dtype_bytes(kb_dtype(kb_word(dtype)));
    uint64_t widest = block_longest(kb_int(hidden), group), a_row = row_bytes(kb_int(d), widest, size);
    skinny_gemm_needs();
    needs_tcm(a_row + messages_bytes(message), "a row of x, of the hidden layer and of sums beside messages", "make d or hidden smaller");
    if (kb_rank() == 0) {
        shared.of_sip = pes_that_pay(group);
        make_tensors(group);
    }
    kb_barrier();
    uint32_t member = kb_rank() - first;
    struct kb_pes own = {kb_pes("*").pe, shared.of_sip};
    shared.launch[kb_rank()] = kb_launch(mlp, own, &(struct mlp_args){
        shared.x, shared.y, shared.w1[member], shared.w2[member], group, member, first * in_sip, in_sip,
        first / group * own.count, message, widest});
    kb_wait(shared.launch[kb_rank()]);
    kb_barrier();
    if (kb_rank() > 0)
        return;
    report(group);
    kb_expect_close(shared.y, expected(group));
}

KB_BENCH_PER_SIP(data_parallel, "a feed-forward block: each SIP has all weights and a share of the rows", MLP_PARAMS)
{
    run_mlp(1);
}

/* The most SIPs up to `asked` that divide the SIPs of the machine into groups of equal size, and for each of which there
 * is a column of w1. */
static uint32_t group_of(uint64_t asked)
{
    uint32_t group = (uint32_t)kb_min(kb_min(asked, kb_int(hidden)), kb_ranks());
    while (kb_ranks() % group)
        group--;
    return group;
}

KB_BENCH_PER_SIP(hybrid_parallel, "a feed-forward block: weights split within groups of SIPs, rows over the groups",
                 MLP_PARAMS, KB_INT(group, 2, 1, MOST_SIPS, "SIPs of a group, which divides the SIPs of the machine"))
{
    uint32_t group = group_of(kb_int(group));
    param_used("group", kb_int(group), group, "the SIPs of the machine in equal groups");
    run_mlp(group);
}
