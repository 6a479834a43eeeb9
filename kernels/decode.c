/* decode.c: attention of one new query per sequence to a long cache of keys and values: flash decoding.
 *
 * The keys of a kv head are split evenly over the PEs of a team, and each PE works through its own part tile by tile,
 * as attention.h does. It then sends its partial result to the first PE of the team: O, its sums of weights, and the
 * maxima that both are relative to. The first PE rescales all partial results to the largest maximum and adds them up.
 * Every key and value is read once, and used for no more rows than a group has heads, so the memories bound the
 * kernel. A team is in one SIP or, with fewer kv heads than SIPs, in as many as pay by an estimate of the time. */
#include <kb/host.h>

#include "attention.h"
#include "params.h"

enum { TILES = 3 };                                     /* by default, for the keys of a PE */

/* The bytes of one head's partial result: O, sum and maximum. */
static uint64_t partial_bytes(const struct attention *a)
{
    return (a->head_dim + 2) * 4;
}

/* The room in the TCM for the partial results of several heads and members. */
static uint64_t partials_bytes(void)
{
    return tcm_allocatable_bytes() / 8;
}

/* Works through the keys [first, end) of a head. Returns the last tile. */
static struct key_tile decode_keys(struct attention_pe *pe, uint64_t head, uint64_t first, uint64_t end)
{
    struct key_tile t = {.head = head, .queries = 1, .rows = pe->group, .first = first, .sees = end}, next;
    key_tile_cut(pe, &t);
    load_keys(pe, &t);
    load_values(pe, &t);
    for (; !key_tile_is_last(&t); t = next) {
        next = t;
        key_tile_next(pe, &next);
        compute_tile(pe, &t, &next);
    }
    compute_tile(pe, &t, NULL);
    return t;
}

/* Copies this PE's partial result: O and its sums, then the maxima. */
static void copy_partial(struct attention_pe *pe, const struct key_tile *last, struct tl_shard to)
{
    uint64_t sums = pe->a->head_dim + 1;
    to = tl_reshape(pe->tl, to, pe->group, sums + 1);
    tl_copy(pe->tl, tl_part(pe->tl, to, 1, 0, sums), pe->o);
    tl_cast(pe->tl, tl_part(pe->tl, to, 1, sums, 1), maxima_of(pe, last, false));
}

/* Merges partial results, members x heads x (head_dim + 2), into the rows of O and sums from `head` on. */
static void merge_partials(struct attention_pe *pe, struct tl_shard all, uint64_t head)
{
    struct tl *tl = pe->tl;
    uint64_t heads = all.shape[1], sums = pe->a->head_dim + 1;
    struct tl_shard o = tl_part(tl, all, 2, 0, sums), maxima = tl_part(tl, all, 2, sums, 1);
    struct tl_shard most = tl_alloc(tl, KB_f32, 1, heads, 1);
    tl_reduce_max(tl, most, maxima, 0);
    tl_sub(tl, maxima, maxima, most);
    tl_exp(tl, maxima, maxima);
    tl_mul(tl, o, o, maxima);
    tl_sum(tl, tl_reshape(tl, tl_part(tl, pe->o, 0, head, heads), 1, heads, sums), o, 0);
    tl_free(tl, most);
}

/* Sends this PE's partial result to the first member, which merges them, at_once heads at a time. */
static void gather_partials(struct attention_pe *pe, struct tl_shard mine, uint64_t members, uint64_t at_once)
{
    struct tl *tl = pe->tl;
    uint32_t member = (uint32_t)pe->share.member, leader = tl_pe(tl) - member;
    struct tl_shard all = member ? mine : tl_alloc(tl, KB_f32, members, at_once, mine.shape[2]);
    for (uint64_t head = 0; head < pe->group; head += at_once) {
        uint64_t heads = kb_min(at_once, pe->group - head);
        struct tl_shard own = tl_part(tl, mine, 1, head, heads), some = tl_part(tl, all, 1, 0, heads);
        if (member) {
            tl_send(tl, leader, own);
            continue;
        }
        tl_copy(tl, tl_part(tl, some, 0, 0, 1), own);
        for (uint32_t i = 1; i < members; i++)
            tl_recv(tl, leader + i, tl_part(tl, some, 0, i, 1));
        merge_partials(pe, some, head);
    }
    if (!member)
        tl_free(tl, all);
}

/* Decodes one head. Members without keys have nothing to do, nor members whose partial result the first one has no room
 * for. If a message is too short for a partial result, one member does all the work. */
static void decode_head(struct attention_pe *pe, uint64_t head)
{
    uint64_t keys = pe->a->keys, row = partial_bytes(pe->a), member = pe->share.member;
    uint64_t most = row <= tl_slot_bytes(pe->tl) ? kb_max(partials_bytes() / row, 1) : 1;
    uint64_t members = kb_min(kb_min(pe->share.members, keys), most);
    if (member >= members)
        return;
    struct key_tile last = decode_keys(pe, head, member * keys / members, (member + 1) * keys / members);
    if (members > 1) {
        struct tl_shard mine = tl_alloc(pe->tl, KB_f32, 1, pe->group, pe->a->head_dim + 2);
        uint64_t at_once = kb_min(tl_slot_bytes(pe->tl) / row, partials_bytes() / row / members);
        copy_partial(pe, &last, mine);
        gather_partials(pe, mine, members, kb_min(kb_max(at_once, 1), pe->group));
        tl_free(pe->tl, mine);
    }
    if (member == 0)
        finish_block(pe, &last);
}

KB_KERNEL(decode, struct attention)
{
    struct attention_pe pe = attention_open(tl, arg, attention_share(arg, tl_pe(tl), tl_num_pes(tl)));
    for (uint64_t head = pe.share.head; head < pe.share.end; head++)
        decode_head(&pe, head);
}

/* How long decoding takes with these PEs, of `sips_of_head` SIPs for a head: a PE reads its keys and values; the first of a
 * team gets the partial results, some heads at a time, in a message from each of the others. Those of other SIPs pass
 * the switch, and so do queries. */
static uint64_t decode_ps(const struct attention *a, uint64_t pes, uint32_t sips_of_head)
{
    uint64_t turns = kb_ceil_div(a->kv_heads, pes), members = kb_max(pes / a->kv_heads, 1), row = partial_bytes(a);
    uint64_t bytes = kb_ceil_div(2 * a->keys * a->head_dim * kb_dtype_bytes(a->dtype), members), group = attention_group(a);
    uint64_t at_once = kb_clamp(kb_min(kb_attrs.pe_ipcq_slot_bytes / row, partials_bytes() / row / members), 1, group);
    uint64_t message_ps = kb_max(kb_attrs.pe_dma_overhead_ps, kb_move_ps(at_once * row, kb_attrs.noc_link_bw_bps));
    uint64_t messages = (members - 1) * kb_ceil_div(group, at_once), far = a->kv_heads * (members - members / sips_of_head);
    uint64_t ps = turns * (kb_memory_ps(kb_main_memory(), bytes, 0) + messages * message_ps);
    if (sips_of_head > 1)
        ps += switch_ps(sips_of_head, 2 * far * kb_ceil_div(group, at_once)) + sips_exchange_ps(far * group * row, 2);
    return ps;
}

/* The PEs with which decoding takes the shortest time: of the SIPs that hold the keys and values at least, with some heads for
 * each SIP or some SIPs for each head. */
static struct kb_pes decode_pes(const struct attention *a)
{
    uint32_t sips = sips_count(), least = sips_least(2 * a->kv_heads * a->keys * a->head_dim * kb_dtype_bytes(a->dtype));
    struct kb_pes best = attention_pes(a, sips, 1);
    uint64_t best_ps = UINT64_MAX;
    for (uint32_t i = least; i <= sips; i++)
        for (uint32_t of_head = 1; of_head == 1 || (i == sips && of_head * a->kv_heads <= sips); of_head++) {
            struct kb_pes pes = attention_pes(a, i, of_head);
            uint64_t ps = decode_ps(a, pes.count, of_head);
            if (ps < best_ps)
                best = pes, best_ps = ps;
        }
    return best;
}

KB_BENCH(decode, "attention of one query per sequence to a long cache of keys and values",
         KB_INT(batch, 2, 1, 1 << 16, "sequences"),
         KB_INT(heads, 32, 1, 1 << 16, "heads of Q in a sequence"),
         KB_INT(kv_heads, 8, 1, 1 << 16, "heads of K and V in a sequence; divides heads"),
         KB_INT(keys, 32768, 1, 1 << 24, "rows of a head of K and V"),
         KB_INT(head_dim, 128, 1, 1024, "columns of a head"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of all tensors"),
         KB_INT(tile, 0, 0, 1 << 16, "keys of a tile; 0: a third of a PE's keys"))
{
    struct attention a = {
        .heads = kb_int(batch) * kb_int(heads), .kv_heads = kb_int(batch) * kb_int(kv_heads), .queries = 1,
        .keys = kb_int(keys), .head_dim = kb_int(head_dim), .dtype = kb_dtype(kb_word(dtype)), .tile = kb_int(tile),
    };
    uint64_t own = (attention_group(&a) + 1) * partial_bytes(&a), room = 7 * partials_bytes();
    attention_needs(&a, kb_ceil_div(attention_least_bytes(&a) + own, 7) * 8);
    struct kb_pes pes = decode_pes(&a);
    uint64_t width = attention_group(&a) * a.head_dim, cols = kb_attrs.pe_gemm_cols;
    if (a.tile == 0)                                    /* nothing overlaps the first and the last tile */
        a.tile = kb_ceil_div(a.kv_heads * a.keys, pes.count * TILES * cols) * cols;
    a.q = kb_tensor_new("q", a.dtype, kb_2d(a.kv_heads, width), kb_rows(kb_main_memory(), pes));
    a.k = kb_tensor_new("k", a.dtype, kb_2d(a.kv_heads * a.keys, a.head_dim), kb_rows(kb_main_memory(), pes));
    a.v = kb_tensor_new("v", a.dtype, kb_2d(a.kv_heads * a.keys, a.head_dim), kb_rows(kb_main_memory(), pes));
    a.o = kb_tensor_new("o", a.dtype, kb_2d(a.kv_heads, width), kb_rows(kb_main_memory(), pes));
    attention_fill(&a);
    kb_ref expected = kb_ref_attention(a.q, a.k, a.v, .heads = a.heads, .kv_heads = a.kv_heads);
    attention_plan(&a, pes.count, room - own);
    param_used("tile", kb_int(tile), a.tile, "the keys of a head or what fits into the TCM");
    kb_future launch = kb_launch(decode, pes, &a);
    kb_wait(launch);

    uint64_t scores = a.heads * a.keys;
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = a.dtype, .math_dtype = a.dtype, .macs = 2 * a.head_dim * scores, .math = attention_ops() * scores,
        .reads = {a.q, a.k, a.v}, .writes = {a.o} }, NULL);
    kb_expect_close(a.o, expected);
}
