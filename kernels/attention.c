/* attention.c: O = softmax(Q K^T / sqrt(head_dim)) V of many heads: flash attention (attention.h).
 *
 * Neighbouring PEs share a kv head, or a PE has several, and the rows of those heads lie in the HBM of those PEs. Each PE
 * reads all keys and values that its queries see, for which the links between SIPs are slow. So the PEs that share a head
 * are in one SIP or, with fewer kv heads than SIPs, in as many as pay by an estimate of the time: most often in one. Several
 * heads share a SIP where that takes less time than a SIP for each. Other SIPs have nothing to do.
 *
 * If a head's team has more than two cubes, each cube first gets a copy of its keys and values, since all PEs of the team
 * read the same ones: over the links between cubes each cube then reads them once.
 *
 * A score takes 2 head_dim multiply-adds of pe_gemm, and a comparison, a subtraction, an exponential and an addition of
 * pe_math: the sum of both times bounds the kernel. */
#include <kb/host.h>
#include <kb/measure.h>

#include "attention.h"
#include "levels.h"
#include "params.h"

struct attention_args {
    struct attention a;
    kb_tensor k, v;                                     /* a head's for each cube; or NULL */
    uint32_t cube;                                      /* PEs of a cube */
};

/* Copies this PE's part of the copy of a head, as many rows at a time as fit. */
static void copy_part(struct tl *tl, const struct attention *a, kb_tensor from, kb_tensor to, uint64_t head)
{
    struct tl_shard mine = tl_my_shard(tl, to);
    uint64_t row = mine.shape[1] * kb_dtype_bytes(a->dtype), most = kb_clamp(tl_room_bytes(tl) / row, 1, mine.shape[0]);
    struct tl_shard buffer = tl_alloc(tl, a->dtype, most, mine.shape[1]);
    for (uint64_t first = 0, count; first < mine.shape[0]; first += count) {
        struct transfers loads = {.begun = 0};
        count = kb_min(most, mine.shape[0] - first);
        struct tl_shard rows = tl_part(tl, buffer, 0, 0, count);
        rect_load(tl, &loads, rows, (struct rect){from, head * a->keys + first, mine.first[1]});
        transfers_wait(tl, &loads);
        tl_store(tl, tl_part(tl, mine, 0, first, count), rows);
    }
    tl_free(tl, buffer);
}

KB_KERNEL(attention_heads, struct attention_args)
{
    struct attention a = arg->a;
    struct attention_share share = attention_share(&a, tl_pe(tl), tl_num_pes(tl));
    if (arg->k) {
        struct peers cube = {tl_pe(tl) / arg->cube * arg->cube, 1, arg->cube, tl_pe(tl) % arg->cube};
        struct notices notices = notices_open(tl);
        copy_part(tl, &a, a.k, arg->k, share.head);
        copy_part(tl, &a, a.v, arg->v, share.head);
        peers_barrier(tl, &notices, &cube);
        notices_close(tl, &notices);
        share.copy = tl_pe(tl) / arg->cube;
        a.k = arg->k, a.v = arg->v, a.copied = true;
    }
    attention(tl, &a, share);
}

/* Makes a tensor with `length` rows and `cols` columns for each kv head. */
static kb_tensor heads_tensor(const char *name, const struct attention *a, uint64_t length, uint64_t cols,
                              struct kb_place place)
{
    struct kb_dims dims = a->side_by_side ? kb_2d(length, a->kv_heads * cols) : kb_2d(a->kv_heads * length, cols);
    return kb_tensor_new(name, a->dtype, dims, place);
}

enum { LEAST_COLS = 16 };                               /* of a key in one memory */

/* Splits each key by columns over several PEs, so that every tile comes from many memories at once: with a causal mask
 * all PEs read the first keys, and few read the last ones. */
static struct kb_place keys_place(const struct attention *a, struct kb_pes pes)
{
    uint64_t members = pes.count / a->kv_heads, cols = kb_min(members, kb_ceil_div(a->head_dim, LEAST_COLS));
    if (a->side_by_side)
        return kb_cols(kb_main_memory(), pes);
    if (pes.count % a->kv_heads)
        return kb_rows(kb_main_memory(), pes);
    while (members % cols)
        cols--;
    return kb_blocks(kb_main_memory(), pes, pes.count / (uint32_t)cols, (uint32_t)cols);
}

/* Whether each cube gets a copy of its head: a team is of more than two whole cubes, each PE of which has columns. */
static bool copies_pay(const struct attention *a, struct kb_pes pes, uint32_t cube)
{
    uint64_t team = pes.count / a->kv_heads;
    return !a->side_by_side && pes.count % a->kv_heads == 0 && team % cube == 0 && team > 2 * cube && a->head_dim >= cube;
}

/* How long the links are busy if each of the first `count` PEs of a set reads `bytes`, evenly from all of them. */
static uint64_t shared_ps(struct kb_pes pes, uint32_t count, uint64_t bytes)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint32_t from = 0; from < count; from++)
        for (uint32_t to = 0; to < count; to++)
            if (from != to)
                kb_traffic_add(traffic, pes.pe[from], pes.pe[to], bytes / count);
    return kb_traffic_ps(traffic);
}

/* How long attention takes with these PEs, of `of_head` SIPs for a kv head. A PE reads the keys and values once for each of its
 * turns, from all PEs of its team or, if side by side, from all; where cubes get copies, from its cube, which has read them
 * piece by piece, a shard of rows each. Half of what attention_team_ps has for loads, and half of the copies, is hidden behind
 * the computation, which attention on ref_pod of 1,024 to 16,384 queries shows. */
static uint64_t attention_ps(struct attention a, struct kb_pes pes, uint32_t of_head, uint64_t room_bytes)
{
    struct levels machine = levels_of_machine();
    uint64_t in_sip = (uint64_t)machine.pes * machine.cubes, members = kb_max(pes.count / a.kv_heads, 1);
    uint64_t kv = 2 * a.keys * a.head_dim * kb_dtype_bytes(a.dtype), sips = kb_ceil_div(pes.count, in_sip);
    attention_plan(&a, pes.count, room_bytes);
    uint64_t heads = kb_ceil_div(a.kv_heads, pes.count), turns = kb_ceil_div(attention_blocks(&a), members) * heads;
    uint64_t scores = kb_product(attention_group(&a) * a.queries, a.keys / (a.causal ? 2 : 1)) / members * heads;
    uint64_t read = kb_product(kv / (a.causal ? 2 : 1), turns), apart = a.side_by_side ? sips : of_head;
    uint32_t sharing = (uint32_t)kb_min(a.side_by_side ? pes.count : members, in_sip);
    uint64_t ps = kb_gemm_ps(a.dtype, 2 * a.head_dim * scores) + kb_math_ps(a.dtype, attention_ops() * scores) +
                  heads * attention_team_ps(&a, a.tile, members, UINT64_MAX) / 2;
    if (copies_pay(&a, pes, machine.pes)) {
        uint64_t piece_ps = kb_attrs.pe_dma_overhead_ps + kb_latency_ps(pes.pe[0], pes.pe[sharing - 1]);
        ps += shared_ps(pes, sharing, kv / machine.pes) / 2 + 2 * keys_place(&a, pes).rows / a.kv_heads * piece_ps;
        sharing = machine.pes;
    }
    uint64_t links_ps = shared_ps(pes, sharing, read);
    if (apart > 1)
        links_ps = kb_max(links_ps, sips_exchange_ps(kb_scaled(kb_product(read, in_sip), apart - 1, apart), 1));
    return kb_max(ps, links_ps);
}

/* The PEs with which attention takes the shortest time: of the SIPs that hold its tensors at least, with some heads for each SIP or
 * some SIPs for each head. */
static struct kb_pes pes_that_pay(const struct attention *a, uint64_t room_bytes)
{
    uint64_t rows = a->kv_heads * a->keys + a->heads * a->queries, best_ps = UINT64_MAX;
    uint32_t sips = sips_count(), least = sips_least(2 * rows * a->head_dim * kb_dtype_bytes(a->dtype));
    struct kb_pes best = attention_pes(a, sips, 1);
    for (uint32_t i = least; sips > 1 && i <= sips; i++)
        for (uint32_t of_head = 1; of_head == 1 || (i == sips && of_head * a->kv_heads <= sips); of_head++) {
            struct kb_pes pes = attention_pes(a, i, of_head);
            uint64_t ps = attention_ps(*a, pes, of_head, room_bytes);
            if (ps < best_ps)
                best = pes, best_ps = ps;
        }
    return best;
}

/* Makes a tensor with a head for each cube, by columns over its PEs. */
static kb_tensor copies_tensor(const char *name, const struct attention *a, struct kb_pes pes, uint32_t cube)
{
    uint32_t cubes = pes.count / cube;
    return kb_tensor_new(name, a->dtype, kb_2d(cubes * a->keys, a->head_dim), kb_blocks(kb_main_memory(), pes, cubes, cube));
}

KB_BENCH(attention, "softmax(Q K^T / sqrt(head_dim)) V of many heads, with K and V in tiles",
         KB_INT(batch, 1, 1, 1 << 16, "sequences"),
         KB_INT(heads, 32, 1, 1 << 16, "heads of Q in a sequence"),
         KB_INT(kv_heads, 8, 1, 1 << 16, "heads of K and V in a sequence; divides heads"),
         KB_INT(queries, 4096, 1, 1 << 20, "rows of a head of Q and O"),
         KB_INT(keys, 0, 0, 1 << 20, "rows of a head of K and V; 0: the same as queries"),
         KB_INT(head_dim, 128, 1, 1024, "columns of a head"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of all tensors"),
         KB_BOOL(causal, true, "a query sees no later keys"),
         KB_BOOL(side_by_side, false, "a row has all heads, not only those of one kv head"),
         KB_INT(block, 0, 0, 1 << 16, "queries of a block; 0: chosen for the machine"),
         KB_INT(tile, 0, 0, 1 << 16, "keys of a tile; 0: chosen for the machine"))
{
    struct attention a = {
        .heads = kb_int(batch) * kb_int(heads), .kv_heads = kb_int(batch) * kb_int(kv_heads),
        .queries = kb_int(queries), .keys = kb_int(keys) ? kb_int(keys) : kb_int(queries), .head_dim = kb_int(head_dim),
        .dtype = kb_dtype(kb_word(dtype)), .causal = kb_bool(causal), .side_by_side = kb_bool(side_by_side),
        .block = kb_int(block), .tile = kb_int(tile),
    };
    uint64_t room_bytes = tcm_allocatable_bytes();
    attention_needs(&a, attention_least_bytes(&a));
    struct kb_pes pes = pes_that_pay(&a, room_bytes);
    uint64_t width = attention_group(&a) * a.head_dim;
    a.q = heads_tensor("q", &a, a.queries, width, kb_rows(kb_main_memory(), pes));
    a.k = heads_tensor("k", &a, a.keys, a.head_dim, keys_place(&a, pes));
    a.v = heads_tensor("v", &a, a.keys, a.head_dim, keys_place(&a, pes));
    a.o = heads_tensor("o", &a, a.queries, width, kb_rows(kb_main_memory(), pes));
    attention_fill(&a);
    kb_ref expected = kb_ref_attention(a.q, a.k, a.v, a.heads, a.kv_heads, a.causal, a.side_by_side);
    attention_plan(&a, pes.count, room_bytes);
    param_used("block", kb_int(block), a.block, "the queries of a head or what fits into the TCM");
    param_used("tile", kb_int(tile), a.tile, "the keys of a head or what fits into the TCM");
    struct attention_args args = {.a = a, .cube = kb_machine_pes("sip0.cube0.*").count};
    if (copies_pay(&a, pes, args.cube)) {
        args.k = copies_tensor("k of a cube", &a, pes, args.cube);
        args.v = copies_tensor("v of a cube", &a, pes, args.cube);
    }
    kb_future launch = kb_launch(attention_heads, pes, &args);
    kb_wait(launch);

    uint64_t hidden = a.causal ? a.queries * (a.queries - 1) / 2 : 0;
    uint64_t scores = a.heads * (a.queries * a.keys - hidden);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = a.dtype, .math_dtype = a.dtype, .macs = 2 * a.head_dim * scores, .math = attention_ops() * scores,
        .reads = {a.q, a.k, a.v}, .writes = {a.o} }, NULL);
    kb_expect_close(a.o, expected);
}
