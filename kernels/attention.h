/* attention.h: O = softmax(Q K^T / sqrt(head_dim)) V on a PE: flash attention.
 *
 * The scores of a block of queries are computed for one tile of keys at a time and never leave the TCM. For each row
 * the kernel keeps the largest score so far, and O and its sum of weights relative to that score; when a tile raises
 * the maximum, both are rescaled (online softmax). The heads that share a kv head are rows of the same block, so that K
 * and V are read once for all of them. Tiles beyond the diagonal of a causal mask are skipped, tiles on it are masked.
 *
 * K and V have one buffer each. The buffer of K is free as soon as the scores are computed, and V is not needed before
 * their softmax is, so the next tile's K and V are loaded while pe_gemm and pe_math work on the current one. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <kb/tl.h>

#include "column_numbers.h"
#include "needs.h"
#include "sips.h"
#include "tcm.h"
#include "transfers.h"

/* ---- the problem, and how it is shared out: known to host and device */

/* A group is the heads of Q that share a kv head. The queries of a group lie side by side: columns of a matrix,
 * head_dim for each head. The rows of a group follow those of the previous group or, if side_by_side, all groups lie
 * side by side too; K and V likewise by kv heads. If causal, the last query sees all keys, and each query before it one
 * key fewer. */
struct attention {
    kb_tensor q, k, v, o;
    uint64_t heads, kv_heads, queries, keys, head_dim;
    enum kb_dtype dtype;
    bool causal, side_by_side, copied;                  /* copied: K and V have copies of heads, one for some PEs each */
    uint64_t block, tile;                               /* queries of a block, keys of a tile: set by attention_plan */
};

static inline uint64_t attention_group(const struct attention *a)
{
    return a->heads / a->kv_heads;
}

/* The number of keys that the last one of `count` queries sees. */
static inline uint64_t attention_sees(const struct attention *a, uint64_t first, uint64_t count)
{
    return a->causal ? a->keys - a->queries + first + count : a->keys;
}

/* The work of a PE: the kv heads [head, end), which it shares with the other members of its team. The members take the
 * blocks of queries in turn, back and forth, so that with a causal mask each has early blocks and late ones. */
struct attention_share {
    uint64_t head, end, member, members;                /* member: number of this PE in its team */
    uint64_t copy;                                      /* its only head's number in K and V, if copied; else 0 */
};

/* The share of PE `pe` of `pes`. Neighbouring PEs form a team for each kv head or, with more heads than PEs, each PE is
 * a team of one and has several heads. */
static inline struct attention_share attention_share(const struct attention *a, uint64_t pe, uint64_t pes)
{
    uint64_t teams = kb_min(pes, a->kv_heads), team = pe * teams / pes;
    uint64_t first = kb_ceil_div(team * pes, teams), end = kb_ceil_div((team + 1) * pes, teams);
    return (struct attention_share){.head = team * a->kv_heads / teams, .end = (team + 1) * a->kv_heads / teams,
                                    .member = pe - first, .members = end - first};
}

/* The blocks of queries of a kv head. */
static inline uint64_t attention_blocks(const struct attention *a)
{
    return kb_ceil_div(a->queries, a->block);
}

/* The block that a member takes in a turn; attention_blocks or more if it takes none. */
static inline uint64_t attention_turn(uint64_t turn, uint64_t member, uint64_t members)
{
    return turn * members + (turn % 2 ? members - 1 - member : member);
}

/* ---- the plan: block and tile, from the attributes of the machine */

/* What a block takes of a TCM, without a tile. */
static inline uint64_t attention_block_bytes(const struct attention *a, uint64_t block)
{
    uint64_t rows = block * attention_group(a), size = kb_dtype_bytes(a->dtype), buffers = 9;
    uint64_t mask = a->causal ? block * (block + 4) : 0;
    return rows * (a->head_dim * size + 2 * (a->head_dim + 1) * 4 + 3 * size) + mask + buffers * 64;
}

/* What each key of a tile takes. */
static inline uint64_t attention_key_bytes(const struct attention *a, uint64_t block)
{
    return kb_dtype_bytes(a->dtype) * (block * attention_group(a) + 2 * a->head_dim);
}

/* What a query of each head of a group and a key take. */
static inline uint64_t attention_least_bytes(const struct attention *a)
{
    return attention_block_bytes(a, 1) + attention_key_bytes(a, 1);
}

/* The longest tile that fits beside a block into room_bytes, in whole columns of the array where possible. Returns 0 if
 * none fits. */
static inline uint64_t attention_fit(const struct attention *a, uint64_t block, uint64_t room_bytes)
{
    uint64_t fixed = attention_block_bytes(a, block), cols = kb_attrs.pe_gemm_cols;
    if (fixed >= room_bytes)
        return 0;
    uint64_t tile = kb_min((room_bytes - fixed) / attention_key_bytes(a, block), a->keys);
    return tile > cols && tile < a->keys ? tile / cols * cols : tile;
}

/* What pe_math does for each score, in ops of cost 1. */
static inline uint64_t attention_ops(void)
{
    return kb_op_cost("max") + kb_op_cost("sub") + kb_op_cost("exp") + kb_op_cost("sum");
}

/* An estimate of the time of block i, each score of which takes `ops` ops: that of the scores and the fixed time of each tile, or
 * that of the DMA, if it is longer. */
static inline uint64_t attention_block_ps(const struct attention *a, uint64_t i, uint64_t tile, uint64_t ops)
{
    uint64_t count = kb_min(a->block, a->queries - i * a->block), keys = attention_sees(a, i * a->block, count);
    uint64_t rows = count * attention_group(a), scores = rows * keys, tiles = kb_ceil_div(keys, tile);
    uint64_t tile_ps = 10 * kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz) +
                       kb_math_ps(KB_f32, 2 * rows * a->head_dim);
    uint64_t dma_ps = kb_memory_ps(kb_main_memory(), 2 * keys * a->head_dim * kb_dtype_bytes(a->dtype), 0);
    uint64_t compute_ps = kb_gemm_ps(a->dtype, 2 * a->head_dim * scores) + tiles * tile_ps +
                          kb_math_ps(a->dtype, ops * scores);
    return kb_max(compute_ps, 3 * dma_ps);              /* loads wait for their first bytes and for other PEs' loads */
}

/* An estimate of the time of the slowest member of a team. If that is most_ps or more, the estimate may be too short, but not less
 * than most_ps. */
static inline uint64_t attention_team_ps(const struct attention *a, uint64_t tile, uint64_t members, uint64_t most_ps)
{
    uint64_t longest_ps = 0, blocks = attention_blocks(a), ops = attention_ops();
    for (uint64_t member = 0; member < members && longest_ps < most_ps; member++) {
        uint64_t ps = 0;
        for (uint64_t turn = 0; turn * members < blocks && ps < most_ps; turn++) {
            uint64_t block = attention_turn(turn, member, members);
            ps += block < blocks ? attention_block_ps(a, block, tile, ops) : 0;
        }
        longest_ps = kb_max(longest_ps, ps);
    }
    return longest_ps;
}

/* Sets block and tile where they are 0 or too large, for `pes` PEs with room_bytes of TCM each, which is at least
 * attention_least_bytes. */
static inline void attention_plan(struct attention *a, uint64_t pes, uint64_t room_bytes)
{
    a->block = kb_min(a->block, a->queries);
    while (a->block > 1 && attention_fit(a, a->block, room_bytes) == 0)
        a->block--;
    struct attention trial = *a;
    uint64_t members = kb_ceil_div(pes, kb_min(pes, a->kv_heads));
    uint64_t best_ps = UINT64_MAX, from = a->block ? a->block : 1, to = a->block ? a->block : a->queries;
    for (trial.block = from; trial.block <= to; trial.block++) {
        uint64_t tile = attention_fit(a, trial.block, room_bytes);
        if (tile == 0)
            break;
        tile = a->tile ? kb_min(a->tile, tile) : tile;
        uint64_t team_ps = attention_team_ps(&trial, tile, members, best_ps);
        if (team_ps < best_ps) {
            best_ps = team_ps;
            a->block = trial.block;
        }
    }
    uint64_t tile = best_ps < UINT64_MAX ? attention_fit(a, a->block, room_bytes) : 0;
    a->tile = a->tile ? kb_min(a->tile, tile) : tile;
}

/* ---- in benches */

/* Refuses the run if heads do not share heads of K and V evenly, or if a TCM has fewer bytes for kernels than these, in which
 * attention_plan finds a plan. */
static inline void attention_needs(const struct attention *a, uint64_t bytes)
{
    if (a->heads % a->kv_heads)
        kb_refuse("the heads of Q are no multiple of those of K and V: make heads a multiple of kv_heads");
    needs_tcm(bytes, "a query of each head of a group, and a key", "make head_dim or heads / kv_heads smaller");
}

/* The PEs of the teams, neighbours for each kv head, in `sips` SIPs at most: those of the same number of SIPs for each head or,
 * with several heads for each SIP, as many of its PEs for each. With more heads than PEs, all PEs of these SIPs. */
static inline struct kb_pes attention_pes(const struct attention *a, uint32_t sips, uint32_t sips_of_head)
{
    struct kb_pes all = kb_pes("*");
    uint32_t in_sip = all.count / sips_count(), heads = (uint32_t)kb_ceil_div(a->kv_heads, sips);
    if (sips_count() == 1 || heads > in_sip)
        return (struct kb_pes){all.pe, sips * in_sip};
    uint32_t team = sips_of_head * in_sip / heads, count = (uint32_t)a->kv_heads * team, *pe = kb_array(uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        pe[i] = all.pe[i / (heads * team) * sips_of_head * in_sip + i % (heads * team)];
    return (struct kb_pes){pe, count};
}

/* Scores have a standard deviation of 1; in bf16, of 1/4, because scores of 1 or more that are rounded to 8 bits leave
 * little of the result certain. Causal results then are means of few values or of many: with a mean of V beside 0 they are
 * of one size, so that the errors of the first rows do not cover the last ones. */
static inline void attention_fill(const struct attention *a)
{
    bool coarse = a->dtype == KB_bf16;
    double spread = coarse ? 0.43 : 1.7, mean = coarse && a->causal ? 0.3 : 0;
    kb_fill_uniform(a->q, -spread, spread);
    kb_fill_uniform(a->k, -1.7, 1.7);
    kb_fill_uniform(a->v, mean - 1, mean + 1);
}

/* ---- the tiles of a PE, in order */

struct attention_pe {
    struct tl *tl;
    const struct attention *a;
    struct attention_share share;
    uint64_t group;                                     /* heads of a group */
    struct tl_shard q, k, v, o, part, sum, mask;        /* q, o, part, sum: a row per query and head of a group */
    struct tl_shard s;                                  /* scores, then weights, between two columns of maxima */
    struct transfers q_loads, k_loads, v_loads, o_stores;
};

/* A tile of keys for a block of queries. */
struct key_tile {
    uint64_t head, next_turn;                           /* the block's head; how many turns this PE has taken of it */
    uint64_t query, queries, rows, sees;                /* of the block: first, count, rows; keys its last query sees */
    uint64_t first, count, number;                      /* its keys; its number among the block's tiles */
};

/* Sets the length of a tile from its first key on. The tiles of a block have about the same length, in whole columns of
 * the array; only a PE's very first tile, whose loads nothing overlaps, is half as long. */
static inline void key_tile_cut(const struct attention_pe *pe, struct key_tile *t)
{
    uint64_t left = t->sees - t->first, most = pe->a->tile, tiles = kb_ceil_div(left, most);
    bool is_first = t->head == pe->share.head && t->next_turn == 1 && t->first == 0;
    uint64_t count = kb_ceil_div(left, is_first ? 2 * tiles - 1 : tiles), cols = kb_attrs.pe_gemm_cols;
    count = kb_min(kb_min(kb_ceil_div(count, cols) * cols, most), left);
    t->count = kb_max(count, left - kb_min(left, (tiles - 1) * most));
}

/* Goes to the first tile of this PE's next block, from a turn on. The last turn, whose blocks see the most keys, comes
 * first. Returns false if there are no more blocks. */
static inline bool key_tile_begin(const struct attention_pe *pe, struct key_tile *t, uint64_t head, uint64_t turn)
{
    const struct attention *a = pe->a;
    uint64_t blocks = attention_blocks(a), block = blocks, members = pe->share.members;
    uint64_t turns = kb_ceil_div(blocks, members);
    for (; turn < turns && block >= blocks; turn++)
        block = attention_turn(turns - 1 - turn, pe->share.member, members);
    if (block >= blocks)
        return head + 1 < pe->share.end && key_tile_begin(pe, t, head + 1, 0);
    uint64_t query = block * a->block, queries = kb_min(a->block, a->queries - query);
    *t = (struct key_tile){.head = head, .next_turn = turn, .query = query, .queries = queries,
                           .rows = queries * pe->group, .sees = attention_sees(a, query, queries)};
    key_tile_cut(pe, t);
    return true;
}

static inline bool key_tile_is_last(const struct key_tile *t)
{
    return t->first + t->count == t->sees;
}

/* Goes to the next tile. Returns false if there is none. */
static inline bool key_tile_next(const struct attention_pe *pe, struct key_tile *t)
{
    if (key_tile_is_last(t))
        return key_tile_begin(pe, t, t->head, t->next_turn);
    t->first += t->count;
    t->number++;
    key_tile_cut(pe, t);
    return true;
}

/* ---- loads and stores */

/* Rows of a kv head in a tensor that has `length` rows and `cols` columns of each head, from row `first` on. */
static inline struct rect head_rect(const struct attention *a, kb_tensor tensor, uint64_t head, uint64_t length,
                                    uint64_t first, uint64_t cols)
{
    return a->side_by_side ? (struct rect){tensor, first, head * cols}
                           : (struct rect){tensor, head * length + first, 0};
}

/* The block's queries in Q or O. */
static inline struct rect block_rect(const struct attention_pe *pe, kb_tensor tensor, const struct key_tile *t)
{
    return head_rect(pe->a, tensor, t->head, pe->a->queries, t->query, pe->group * pe->a->head_dim);
}

/* The block's rows of a buffer in the shape that they have in memory: a row for each query. */
static inline struct tl_shard block_rows(const struct attention_pe *pe, struct tl_shard rows, const struct key_tile *t)
{
    return tl_reshape(pe->tl, tl_part(pe->tl, rows, 0, 0, t->rows), t->queries, pe->group * pe->a->head_dim);
}

/* The number of the tile's head in K and V. */
static inline uint64_t kv_head(const struct attention_pe *pe, const struct key_tile *t)
{
    return pe->a->copied ? pe->share.copy : t->head;
}

static inline void load_keys(struct attention_pe *pe, const struct key_tile *t)
{
    const struct attention *a = pe->a;
    if (t->number == 0)
        rect_load(pe->tl, &pe->q_loads, block_rows(pe, pe->q, t), block_rect(pe, a->q, t));
    rect_load(pe->tl, &pe->k_loads, tl_part(pe->tl, pe->k, 0, 0, t->count),
              head_rect(a, a->k, kv_head(pe, t), a->keys, t->first, a->head_dim));
}

static inline void load_values(struct attention_pe *pe, const struct key_tile *t)
{
    const struct attention *a = pe->a;
    rect_load(pe->tl, &pe->v_loads, tl_part(pe->tl, pe->v, 0, 0, t->count),
              head_rect(a, a->v, kv_head(pe, t), a->keys, t->first, a->head_dim));
}

/* ---- the online softmax */

/* Makes a mask whose element (i, j) is 1 for j <= i. */
static inline void causal_mask(struct tl *tl, struct tl_shard mask)
{
    uint64_t n = mask.shape[0];
    struct tl_shard column = tl_alloc(tl, KB_f32, 1, n);
    tl_wait(tl, column_numbers(tl, column, submatrix(tl, mask, 0, 1, 0, 1)));
    tl_cmp(tl, mask, column, TL_LE, tl_transposed(tl, column, 0, 1));
    tl_free(tl, column);
}

/* Sets the scores of the keys that a query does not see to -inf, where the tile touches the diagonal. */
static inline void mask_scores(struct attention_pe *pe, const struct key_tile *t, struct tl_shard scores)
{
    struct tl *tl = pe->tl;
    uint64_t diagonal = t->sees - t->queries;           /* the last key that the first query sees */
    uint64_t from = kb_max(t->first, diagonal), cols = t->first + t->count - from;
    if (!pe->a->causal || t->first + t->count <= from)
        return;
    struct tl_shard sees = submatrix(tl, pe->mask, 0, t->queries, from - diagonal, cols);
    struct tl_shard x = tl_reshape(tl, tl_part(tl, scores, 1, from - t->first, cols), t->queries, pe->group, cols);
    tl_where(tl, x, tl_reshape(tl, sees, t->queries, 1, cols), x, tl_number(-__builtin_inf()));
}

/* O = O * factor + weights V. The last column of O, the sum of the weights, is accumulated in the same way. */
static inline void accumulate_values(struct attention_pe *pe, const struct key_tile *t, struct tl_shard weights,
                                     struct tl_shard factor)
{
    struct tl *tl = pe->tl;
    uint64_t rows = t->rows, head_dim = pe->a->head_dim;
    struct tl_shard o = tl_part(tl, pe->o, 0, 0, rows), to = t->number ? tl_part(tl, pe->part, 0, 0, rows) : o;
    transfers_wait(tl, &pe->o_stores);                  /* they read the buffer of pe->part */
    transfers_wait(tl, &pe->v_loads);
    tl_dot(tl, tl_part(tl, to, 1, 0, head_dim), weights, tl_part(tl, pe->v, 0, 0, t->count));
    tl_cast(tl, tl_part(tl, to, 1, head_dim, 1), tl_part(tl, pe->sum, 0, 0, rows));
    if (t->number == 0)
        return;
    tl_mul(tl, o, o, factor);
    tl_add(tl, o, o, to);
}

/* The column of the maxima before a tile, or of those after it. The two swap sides of the scores with every tile. So
 * the ops that turn scores into weights also turn the old maxima, beside them, into the factor that rescales O. */
static inline struct tl_shard maxima_of(const struct attention_pe *pe, const struct key_tile *t, bool before)
{
    bool on_left = (t->number % 2 == 0) == before;
    return submatrix(pe->tl, pe->s, 0, t->rows, on_left ? 0 : pe->s.shape[1] - 1, 1);
}

/* Computes a tile while the next one, if any, is loaded. */
static inline void compute_tile(struct attention_pe *pe, const struct key_tile *t, const struct key_tile *next)
{
    struct tl *tl = pe->tl;
    uint64_t on_left = t->number % 2 == 0, from = on_left ? 1 : pe->s.shape[1] - 1 - t->count, old = t->number > 0;
    struct tl_shard scores = submatrix(tl, pe->s, 0, t->rows, from, t->count);
    struct tl_shard all = submatrix(tl, pe->s, 0, t->rows, from - (old && on_left), t->count + old);
    struct tl_shard before = maxima_of(pe, t, true), most = maxima_of(pe, t, false);
    struct tl_shard q = tl_part(tl, pe->q, 0, 0, t->rows), k = tl_part(tl, pe->k, 0, 0, t->count);
    transfers_wait(tl, &pe->q_loads);
    if (t->number == 0)
        tl_scale(tl, q, q, tl_number(1 / __builtin_sqrt((double)pe->a->head_dim)));
    transfers_wait(tl, &pe->k_loads);
    tl_dot(tl, scores, q, tl_transposed(tl, k, 0, 1));
    if (next)
        load_keys(pe, next);
    mask_scores(pe, t, scores);
    tl_reduce_max(tl, most, all, 1);
    tl_sub(tl, all, all, most);
    tl_exp(tl, all, all);
    tl_sum(tl, tl_part(tl, pe->sum, 0, 0, t->rows), scores, 1);
    accumulate_values(pe, t, scores, before);
    if (next)
        load_values(pe, next);
}

/* Divides each row of O by its sum of weights and starts to store it. */
static inline void finish_block(struct attention_pe *pe, const struct key_tile *t)
{
    struct tl *tl = pe->tl;
    uint64_t head_dim = pe->a->head_dim;
    struct tl_shard sums = submatrix(tl, pe->o, 0, t->rows, head_dim, 1);
    struct tl_shard out = {.addr = pe->part.addr, .dtype = pe->a->dtype, .rank = 2, .shape = {t->rows, head_dim}};
    out = tl_view(tl, out);
    transfers_wait(tl, &pe->o_stores);
    tl_recip(tl, sums, sums);
    tl_mul(tl, out, submatrix(tl, pe->o, 0, t->rows, 0, head_dim), sums);
    rect_store(tl, &pe->o_stores, block_rect(pe, pe->a->o, t), block_rows(pe, out, t));
}

/* ---- a PE's share */

/* Allocates the buffers. */
static inline struct attention_pe attention_open(struct tl *tl, const struct attention *a, struct attention_share share)
{
    struct attention_pe pe = {.tl = tl, .a = a, .share = share, .group = attention_group(a)};
    uint64_t rows = a->block * pe.group;
    pe.q = tl_alloc(tl, a->dtype, rows, a->head_dim);
    pe.k = tl_alloc(tl, a->dtype, a->tile, a->head_dim);
    pe.v = tl_alloc(tl, a->dtype, a->tile, a->head_dim);
    pe.s = tl_alloc(tl, a->dtype, rows, a->tile + 2);
    pe.o = tl_alloc(tl, KB_f32, rows, a->head_dim + 1);
    pe.part = tl_alloc(tl, KB_f32, rows, a->head_dim + 1);
    pe.sum = tl_alloc(tl, a->dtype, rows, 1);
    if (a->causal)
        pe.mask = tl_alloc(tl, KB_u8, a->block, a->block);
    return pe;
}

/* Waits for the stores and frees the buffers. */
static inline void attention_close(struct attention_pe *pe)
{
    struct tl_shard buffers[] = {pe->q, pe->k, pe->v, pe->s, pe->o, pe->part, pe->sum, pe->mask};
    transfers_wait(pe->tl, &pe->o_stores);
    for (uint32_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i].rank)
            tl_free(pe->tl, buffers[i]);
}

/* Computes a share of O and returns when it is stored. The TCM must have the room that attention_plan was given. */
static inline void attention(struct tl *tl, const struct attention *a, struct attention_share share)
{
    struct attention_pe pe = attention_open(tl, a, share);
    struct key_tile t, next;
    bool more = share.head < share.end && key_tile_begin(&pe, &t, share.head, 0);
    if (more) {
        load_keys(&pe, &t);
        load_values(&pe, &t);
        if (a->causal)
            causal_mask(tl, pe.mask);
    }
    for (; more; t = next) {
        next = t;
        more = key_tile_next(&pe, &next);
        compute_tile(&pe, &t, more ? &next : NULL);
        if (key_tile_is_last(&t))
            finish_block(&pe, &t);
    }
    attention_close(&pe);
}

#endif
