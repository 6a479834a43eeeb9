/* attention.h: O = softmax(Q K^T / sqrt(head_dim)) V on a PE: flash attention.
 *
 * The scores of a block of queries are computed for one tile of keys at a time and never leave the TCM. Each row keeps
 * the largest score so far, and O and its sum of weights relative to that; when a tile raises it, they are scaled
 * (online softmax). The heads that share a kv head are rows of the same block, so that K and V are read once for all
 * of them. Tiles beyond the diagonal of a causal mask are left out, those on it are masked.
 *
 * K has one buffer and V another: K's is free as soon as the scores are there, V's is not needed until their softmax
 * is, so the next tile's K and V come while pe_gemm and pe_math work on this one. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include <kb/tl.h>

#include "attention_plan.h"
#include "rect.h"

struct attention_pe {
    struct tl *tl;
    const struct attention *a;
    struct attention_share share;
    uint64_t group;                                     /* heads that share a kv head */
    struct tl_shard q, k, v, o, part, sum, mask;        /* a row for each query and head of the group */
    struct tl_shard s;                                  /* scores, then weights, between two columns of maxima */
    struct moves q_moves, k_moves, v_moves, o_moves;
};

/* A tile of keys for a block of queries. */
struct key_tile {
    uint64_t head, next_turn;                           /* whose block it is, and how many this PE has taken of it */
    uint64_t query, queries, rows, sees;                /* the first one, how many, rows, keys that the last one sees */
    uint64_t first, count, number;                      /* keys; number: of the tile among the block's */
};

/* ---- tiles, in order */

/* The tile from its first key on. Those of a block are of about one length, in full columns of the array; but nothing
 * hides the loads of a PE's very first tile, which is half as long as those behind it. */
static inline void tile_cut(const struct attention_pe *pe, struct key_tile *t)
{
    uint64_t left = t->sees - t->first, most = pe->a->tile, tiles = kb_ceil_div(left, most);
    bool is_first = t->head == pe->share.head && t->next_turn == 1 && t->first == 0;
    uint64_t count = kb_ceil_div(left, is_first ? 2 * tiles - 1 : tiles), cols = kb_attrs.pe_gemm_cols;
    count = kb_min(kb_min(kb_ceil_div(count, cols) * cols, most), left);
    t->count = kb_max(count, left - kb_min(left, (tiles - 1) * most));
}

/* The first tile of this PE's next block, from a turn on; the last turn, whose blocks see most keys, comes first.
 * False: there is none left. */
static inline bool block_begin(const struct attention_pe *pe, struct key_tile *t, uint64_t head, uint64_t turn)
{
    const struct attention *a = pe->a;
    uint64_t blocks = attention_blocks(a), block = blocks, members = pe->share.members;
    uint64_t turns = kb_ceil_div(blocks, members);
    for (; turn < turns && block >= blocks; turn++)
        block = attention_turn(turns - 1 - turn, pe->share.member, members);
    if (block >= blocks)
        return head + 1 < pe->share.end && block_begin(pe, t, head + 1, 0);
    uint64_t query = block * a->block, queries = kb_min(a->block, a->queries - query);
    *t = (struct key_tile){.head = head, .next_turn = turn, .query = query, .queries = queries,
                           .rows = queries * pe->group, .sees = attention_sees(a, query, queries)};
    tile_cut(pe, t);
    return true;
}

static inline bool block_ends(const struct key_tile *t)
{
    return t->first + t->count == t->sees;
}

static inline bool tile_after(const struct attention_pe *pe, struct key_tile *t)
{
    if (block_ends(t))
        return block_begin(pe, t, t->head, t->next_turn);
    t->first += t->count;
    t->number++;
    tile_cut(pe, t);
    return true;
}

/* ---- what moves */

/* Rows of a kv head in a tensor, from one of `length` on; `cols` of each. */
static inline struct rect of_head(const struct attention *a, kb_tensor tensor, uint64_t head, uint64_t length,
                                  uint64_t first, uint64_t cols)
{
    return a->side_by_side ? (struct rect){tensor, first, head * cols}
                           : (struct rect){tensor, head * length + first, 0};
}

static inline struct rect queries_of(const struct attention_pe *pe, kb_tensor tensor, const struct key_tile *t)
{
    return of_head(pe->a, tensor, t->head, pe->a->queries, t->query, pe->group * pe->a->head_dim);
}

/* Rows of the buffers as they lie in memory: a row for each query. */
static inline struct tl_shard by_query(const struct attention_pe *pe, struct tl_shard rows, const struct key_tile *t)
{
    return tl_reshape(pe->tl, tl_part(pe->tl, rows, 0, 0, t->rows), t->queries, pe->group * pe->a->head_dim);
}

static inline void load_keys(struct attention_pe *pe, const struct key_tile *t)
{
    const struct attention *a = pe->a;
    if (t->number == 0)
        rect_load(pe->tl, &pe->q_moves, by_query(pe, pe->q, t), queries_of(pe, a->q, t));
    rect_load(pe->tl, &pe->k_moves, tl_part(pe->tl, pe->k, 0, 0, t->count),
              of_head(a, a->k, t->head, a->keys, t->first, a->head_dim));
}

static inline void load_values(struct attention_pe *pe, const struct key_tile *t)
{
    const struct attention *a = pe->a;
    rect_load(pe->tl, &pe->v_moves, tl_part(pe->tl, pe->v, 0, 0, t->count),
              of_head(a, a->v, t->head, a->keys, t->first, a->head_dim));
}

/* ---- what is computed */

/* Element (i, j) is 1 for j <= i. Nothing is below -inf, which makes a 0; positions follow by doubling: those from n on
 * are those from 0 on, and n. */
static inline void causal_mask(struct tl *tl, struct tl_shard mask)
{
    uint64_t n = mask.shape[0];
    struct tl_shard at = tl_alloc(tl, KB_f32, 1, n);
    struct tl_shard zero = tl_part(tl, at, 1, 0, 1), none = submatrix(tl, mask, 0, 1, 0, 1);
    tl_cmp(tl, none, zero, TL_LT, tl_number(-__builtin_inf()));
    tl_cast(tl, zero, none);
    for (uint64_t known = 1; known < n; known *= 2) {
        uint64_t more = kb_min(known, n - known);
        tl_add(tl, tl_part(tl, at, 1, known, more), tl_part(tl, at, 1, 0, more), tl_number((double)known));
    }
    tl_cmp(tl, mask, at, TL_LE, tl_transposed(tl, at, 0, 1));
    tl_free(tl, at);
}

/* No weight for the keys behind a query. */
static inline void hide_later_keys(struct attention_pe *pe, const struct key_tile *t, struct tl_shard scores)
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

/* O and its sums of weights, which are its last column, of a tile are added to what was there, times a factor. */
static inline void add_values(struct attention_pe *pe, const struct key_tile *t, struct tl_shard weights,
                              struct tl_shard factor)
{
    struct tl *tl = pe->tl;
    uint64_t rows = t->rows, head_dim = pe->a->head_dim;
    struct tl_shard o = tl_part(tl, pe->o, 0, 0, rows), to = t->number ? tl_part(tl, pe->part, 0, 0, rows) : o;
    moves_wait(tl, &pe->o_moves);                       /* what is stored lies where pe->part does */
    moves_wait(tl, &pe->v_moves);
    tl_dot(tl, tl_part(tl, to, 1, 0, head_dim), weights, tl_part(tl, pe->v, 0, 0, t->count));
    tl_cast(tl, tl_part(tl, to, 1, head_dim, 1), tl_part(tl, pe->sum, 0, 0, rows));
    if (t->number == 0)
        return;
    tl_mul(tl, o, o, factor);
    tl_add(tl, o, o, to);
}

/* In turn the maxima before lie to the left of the scores and the new ones to the right, and the other way round: so
 * what makes the scores weights makes the maxima before the factor of what was added up. */
static inline struct tl_shard maxima_of(const struct attention_pe *pe, const struct key_tile *t, bool before)
{
    bool on_left = (t->number % 2 == 0) == before;
    return submatrix(pe->tl, pe->s, 0, t->rows, on_left ? 0 : pe->s.shape[1] - 1, 1);
}

static inline void tile_work(struct attention_pe *pe, const struct key_tile *t, const struct key_tile *next)
{
    struct tl *tl = pe->tl;
    uint64_t on_left = t->number % 2 == 0, from = on_left ? 1 : pe->s.shape[1] - 1 - t->count, old = t->number > 0;
    struct tl_shard scores = submatrix(tl, pe->s, 0, t->rows, from, t->count);
    struct tl_shard all = submatrix(tl, pe->s, 0, t->rows, from - (old && on_left), t->count + old);
    struct tl_shard before = maxima_of(pe, t, true), most = maxima_of(pe, t, false);
    struct tl_shard q = tl_part(tl, pe->q, 0, 0, t->rows), k = tl_part(tl, pe->k, 0, 0, t->count);
    moves_wait(tl, &pe->q_moves);
    if (t->number == 0)
        tl_scale(tl, q, q, tl_number(1 / __builtin_sqrt((double)pe->a->head_dim)));
    moves_wait(tl, &pe->k_moves);
    tl_dot(tl, scores, q, tl_transposed(tl, k, 0, 1));
    if (next)
        load_keys(pe, next);
    hide_later_keys(pe, t, scores);
    tl_reduce_max(tl, most, all, 1);
    tl_sub(tl, all, all, most);
    tl_exp(tl, all, all);
    tl_sum(tl, tl_part(tl, pe->sum, 0, 0, t->rows), scores, 1);
    add_values(pe, t, scores, before);
    if (next)
        load_values(pe, next);
}

/* Each row of O by its sum of weights, and into memory, while the next block begins. */
static inline void block_finish(struct attention_pe *pe, const struct key_tile *t)
{
    struct tl *tl = pe->tl;
    uint64_t head_dim = pe->a->head_dim;
    struct tl_shard sums = submatrix(tl, pe->o, 0, t->rows, head_dim, 1);
    struct tl_shard out = {.addr = pe->part.addr, .dtype = pe->a->dtype, .rank = 2, .shape = {t->rows, head_dim}};
    out = tl_view(tl, out);
    moves_wait(tl, &pe->o_moves);
    tl_recip(tl, sums, sums);
    tl_mul(tl, out, submatrix(tl, pe->o, 0, t->rows, 0, head_dim), sums);
    rect_store(tl, &pe->o_moves, queries_of(pe, pe->a->o, t), by_query(pe, out, t));
}

/* KERNEL_ERROR: attention_plan found no room. */
static inline struct attention_pe attention_open(struct tl *tl, const struct attention *a, struct attention_share share)
{
    struct attention_pe pe = {.tl = tl, .a = a, .share = share, .group = attention_group(a)};
    uint64_t rows = a->block * pe.group;
    if (a->tile == 0)
        tl_fail(tl, 1, "the TCM has no room for a query of each head of a group, and a key");
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

static inline void attention_close(struct attention_pe *pe)
{
    struct tl_shard buffers[] = {pe->q, pe->k, pe->v, pe->s, pe->o, pe->part, pe->sum, pe->mask};
    moves_wait(pe->tl, &pe->o_moves);
    for (uint32_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i].rank)
            tl_free(pe->tl, buffers[i]);
}

/* A share of O; returns when it is stored. The TCM has to have the room that attention_plan was told. */
static inline void attention(struct tl *tl, const struct attention *a, struct attention_share share)
{
    struct attention_pe pe = attention_open(tl, a, share);
    struct key_tile t, next;
    bool more = share.head < share.end && block_begin(&pe, &t, share.head, 0);
    if (more) {
        load_keys(&pe, &t);
        load_values(&pe, &t);
        if (a->causal)
            causal_mask(tl, pe.mask);
    }
    for (; more; t = next) {
        next = t;
        more = tile_after(&pe, &next);
        tile_work(&pe, &t, more ? &next : NULL);
        if (block_ends(&t))
            block_finish(&pe, &t);
    }
    attention_close(&pe);
}

#endif
