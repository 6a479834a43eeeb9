/* attention.h: O = softmax(Q K^T / sqrt(head_dim)) V on a PE, head by head: flash attention.
 *
 * The scores of a block of queries are computed for one tile of keys at a time and never leave the TCM. Each row keeps
 * the largest score so far, and O and its sum of weights relative to that; when a tile raises it, they are scaled
 * (online softmax). The heads that share a kv head are rows of the same tile, so that K and V are read once for all of
 * them. A unit of work is an early block of queries and a late one, at equal distances from both ends: with a causal
 * mask all units take the same time. Tiles beyond the diagonal are left out, those on it are masked.
 *
 * K has one buffer and V another: K's is free as soon as the scores are there, V's is not needed until their softmax
 * is, so the next tile's K and V come while pe_gemm and pe_math work on this one. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/measure.h>
#include <kb/tl.h>

#include "rect.h"

/* Matrices of head_dim columns for each head, in which a head's rows follow those of the one before it, or, side by
 * side, its columns do. If causal, the last query sees all keys, and each one before it one fewer. */
struct attention {
    kb_tensor q, k, v, o;
    uint64_t heads, kv_heads, queries, keys, head_dim;
    enum kb_dtype dtype;
    bool causal, side_by_side;
    uint64_t block, tile;                               /* queries of a block, keys of a tile: attention_plan */
};

static inline uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- units of work */

static inline uint64_t attention_blocks(const struct attention *a)
{
    return (a->queries + a->block - 1) / a->block;
}

/* Units of one kv head; those of all follow one another. */
static inline uint64_t attention_units(const struct attention *a)
{
    return (attention_blocks(a) + 1) / 2;
}

/* ---- block and tile, from the machine's attributes */

static inline uint64_t attention_group(const struct attention *a)
{
    return a->heads / a->kv_heads;
}

/* The longest tile beside a block, in so many bytes; full columns of the array, if there are any. 0: none fits. */
static inline uint64_t attention_fit(const struct attention *a, uint64_t block, uint64_t room_bytes)
{
    uint64_t rows = 2 * block * attention_group(a), size = kb_dtype_bytes(a->dtype), cols = kb_attrs.pe_gemm_cols;
    uint64_t mask = a->causal ? block * (block + 4) : 0, buffers = 8;
    uint64_t fixed = rows * (a->head_dim * size + 2 * (a->head_dim + 1) * 4 + 3 * size) + mask + buffers * 64;
    if (fixed >= room_bytes)
        return 0;
    uint64_t tile = at_most((room_bytes - fixed) / (size * (rows + 2 * a->head_dim)), a->keys);
    return tile > cols && tile < a->keys ? tile / cols * cols : tile;
}

/* About how long the PE with most units is busy: with scores, and with what each tile takes besides. */
static inline uint64_t attention_guess_ps(const struct attention *a, uint64_t tile, uint64_t pes)
{
    uint64_t units = (attention_units(a) * a->kv_heads + pes - 1) / pes, rows = 2 * a->block * attention_group(a);
    uint64_t scores = rows * a->keys / (a->causal ? 2 : 1), tiles = 1 + a->keys / tile;
    uint64_t tile_ps = 10 * kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz) +
                       kb_math_ps(KB_f32, 2 * rows * a->head_dim);
    return units * (kb_gemm_ps(a->dtype, 2 * a->head_dim * scores) + kb_math_ps(a->dtype, 7 * scores) +
                    tiles * tile_ps);
}

/* Sets block and tile, those that are 0, for so many PEs and bytes of TCM each. False: not one query and key fit. */
static inline bool attention_plan(struct attention *a, uint64_t pes, uint64_t room_bytes)
{
    struct attention trial = *a;
    uint64_t best_ps = UINT64_MAX, from = a->block ? a->block : 1, to = a->block ? a->block : a->queries;
    for (trial.block = from; trial.block <= to; trial.block++) {
        uint64_t tile = attention_fit(a, trial.block, room_bytes);
        if (tile == 0)
            break;
        tile = a->tile ? at_most(a->tile, tile) : tile;
        uint64_t guess_ps = attention_guess_ps(&trial, tile, pes);
        if (guess_ps < best_ps) {
            best_ps = guess_ps;
            a->block = trial.block;
        }
    }
    uint64_t tile = best_ps < UINT64_MAX ? attention_fit(a, a->block, room_bytes) : 0;
    a->tile = a->tile ? at_most(a->tile, tile) : tile;
    return a->tile > 0;
}

/* ---- on a PE */

/* Queries that follow one another. They are rows of the buffers: the first head's, then the next one's, and so on. */
struct query_block {
    uint64_t first, count, row;                         /* the first query, how many, the row of the first one */
    uint64_t keys;                                      /* as many as its last query sees */
};

/* A tile of keys, for the first `blocks` ones of its unit's blocks of queries: the late one, the early one. */
struct key_tile {
    uint64_t unit, first, count, number;                /* number: in its unit */
    struct query_block block[2];
    uint32_t blocks, all;                               /* all: of the unit */
};

struct attention_pe {
    struct tl *tl;
    const struct attention *a;
    uint64_t group, units;                              /* heads of a kv head, and its units */
    struct tl_shard q, k, v, o, part, sum, mask;
    struct tl_shard s;                                  /* scores, then weights, between two columns of maxima */
    struct moves q_moves, k_moves, v_moves, o_moves;
};

static inline struct tl_shard submatrix(struct tl *tl, struct tl_shard x, uint64_t row, uint64_t rows, uint64_t col,
                                       uint64_t cols)
{
    return tl_part(tl, tl_part(tl, x, 0, row, rows), 1, col, cols);
}

static inline struct rect of_head(const struct attention *a, kb_tensor tensor, uint64_t head, uint64_t length,
                                  uint64_t first)
{
    return a->side_by_side ? (struct rect){tensor, first, head * a->head_dim}
                           : (struct rect){tensor, head * length + first, 0};
}

/* ---- tiles, in order */

static inline struct query_block query_block(const struct attention *a, uint64_t i, uint64_t row)
{
    uint64_t first = i * a->block, count = at_most(a->block, a->queries - first);
    return (struct query_block){first, count, row, a->causal ? a->keys - a->queries + first + count : a->keys};
}

/* The tile from its first key on; tiles of a unit that are for the same blocks are of about one length. */
static inline void tile_cut(const struct attention *a, struct key_tile *t)
{
    uint64_t left = t->block[t->blocks - 1].keys - t->first, tiles = (left + a->tile - 1) / a->tile;
    uint64_t cols = kb_attrs.pe_gemm_cols, even = (left + tiles - 1) / tiles;
    t->count = at_most(at_most((even + cols - 1) / cols * cols, a->tile), left);
}

static inline void unit_begin(const struct attention_pe *pe, struct key_tile *t, uint64_t unit)
{
    uint64_t early = unit % pe->units, late = attention_blocks(pe->a) - 1 - early;
    *t = (struct key_tile){.unit = unit, .all = early < late ? 2 : 1};
    t->blocks = t->all;
    t->block[0] = query_block(pe->a, late, 0);
    t->block[1] = query_block(pe->a, early, pe->group * t->block[0].count);
    tile_cut(pe->a, t);
}

static inline bool unit_ends(const struct key_tile *t)
{
    return t->first + t->count == t->block[0].keys;
}

static inline struct key_tile tile_after(const struct attention_pe *pe, struct key_tile t)
{
    if (unit_ends(&t)) {
        unit_begin(pe, &t, t.unit + 1);
        return t;
    }
    t.first += t.count;
    t.number++;
    if (t.first == t.block[t.blocks - 1].keys)          /* the early block is done */
        t.blocks = 1;
    tile_cut(pe->a, &t);
    return t;
}

static inline uint64_t rows_of(const struct attention_pe *pe, const struct key_tile *t, uint32_t blocks)
{
    return t->block[blocks - 1].row + pe->group * t->block[blocks - 1].count;
}

/* ---- what moves */

/* Begins to load, or to store, the queries' rows of all heads of a unit. */
static inline void move_queries(struct attention_pe *pe, const struct key_tile *t, struct moves *moves,
                                kb_tensor tensor, struct tl_shard buffer, bool is_store)
{
    const struct attention *a = pe->a;
    for (uint32_t i = 0; i < t->all; i++)
        for (uint64_t head = 0; head < pe->group; head++) {
            const struct query_block *block = &t->block[i];
            struct tl_shard rows = tl_part(pe->tl, buffer, 0, block->row + head * block->count, block->count);
            uint64_t at = t->unit / pe->units * pe->group + head;
            rect_move(pe->tl, moves, rows, of_head(a, tensor, at, a->queries, block->first), is_store);
        }
}

static inline void load_keys(struct attention_pe *pe, const struct key_tile *t)
{
    struct tl_shard k = tl_part(pe->tl, pe->k, 0, 0, t->count);
    if (t->number == 0)
        move_queries(pe, t, &pe->q_moves, pe->a->q, pe->q, false);
    rect_load(pe->tl, &pe->k_moves, k, of_head(pe->a, pe->a->k, t->unit / pe->units, pe->a->keys, t->first));
}

static inline void load_values(struct attention_pe *pe, const struct key_tile *t)
{
    struct tl_shard v = tl_part(pe->tl, pe->v, 0, 0, t->count);
    rect_load(pe->tl, &pe->v_moves, v, of_head(pe->a, pe->a->v, t->unit / pe->units, pe->a->keys, t->first));
}

/* ---- what is computed */

/* Element (i, j) is 1 for j <= i. Nothing is below -inf, which makes a 0; positions follow by doubling: those from n on
 * are those from 0 on, and n. */
static inline struct tl_shard causal_mask(struct tl *tl, uint64_t n)
{
    struct tl_shard mask = tl_alloc(tl, KB_u8, n, n), at = tl_alloc(tl, KB_f32, 1, n);
    struct tl_shard zero = tl_part(tl, at, 1, 0, 1), none = submatrix(tl, mask, 0, 1, 0, 1);
    tl_cmp(tl, none, zero, TL_LT, tl_number(-__builtin_inf()));
    tl_cast(tl, zero, none);
    for (uint64_t known = 1; known < n; known *= 2) {
        uint64_t more = at_most(known, n - known);
        tl_add(tl, tl_part(tl, at, 1, known, more), tl_part(tl, at, 1, 0, more), tl_number((double)known));
    }
    tl_cmp(tl, mask, at, TL_LE, tl_transposed(tl, at, 0, 1));
    tl_free(tl, at);
    return mask;
}

/* No weight for keys behind the diagonal of a block. */
static inline void hide_later_keys(struct attention_pe *pe, const struct key_tile *t, const struct query_block *block,
                                   struct tl_shard scores)
{
    uint64_t diagonal = block->keys - block->count;     /* the last key that the block's first query sees */
    uint64_t from = t->first > diagonal ? t->first : diagonal, to = at_most(t->first + t->count, block->keys);
    if (!pe->a->causal || to <= from)
        return;
    struct tl_shard x = submatrix(pe->tl, scores, block->row, pe->group * block->count, from - t->first, to - from);
    x = tl_reshape(pe->tl, x, pe->group, block->count, to - from);
    struct tl_shard sees = submatrix(pe->tl, pe->mask, 0, block->count, from - diagonal, to - from);
    tl_where(pe->tl, x, sees, x, tl_number(-__builtin_inf()));
}

/* O and its sums of weights, which are its last column, of a tile are added to what was there, times a factor. */
static inline void add_values(struct attention_pe *pe, const struct key_tile *t, struct tl_shard weights,
                              struct tl_shard factor)
{
    struct tl *tl = pe->tl;
    uint64_t rows = weights.shape[0], head_dim = pe->a->head_dim;
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
static inline void tile_work(struct attention_pe *pe, const struct key_tile *t, const struct key_tile *next)
{
    struct tl *tl = pe->tl;
    uint64_t rows = rows_of(pe, t, t->blocks), last = pe->s.shape[1] - 1, old = t->number > 0;
    bool old_on_left = t->number % 2 == 0;
    uint64_t from = old_on_left ? 1 : last - t->count;
    struct tl_shard scores = submatrix(tl, pe->s, 0, rows, from, t->count);
    struct tl_shard all = submatrix(tl, pe->s, 0, rows, old_on_left ? from - old : from, t->count + old);
    struct tl_shard before = submatrix(tl, pe->s, 0, rows, old_on_left ? 0 : last, 1);
    struct tl_shard most = submatrix(tl, pe->s, 0, rows, old_on_left ? last : 0, 1);
    struct tl_shard q = tl_part(tl, pe->q, 0, 0, rows), k = tl_part(tl, pe->k, 0, 0, t->count);
    moves_wait(tl, &pe->q_moves);
    moves_wait(tl, &pe->k_moves);
    if (t->number == 0)
        tl_scale(tl, q, q, tl_number(1 / __builtin_sqrt((double)pe->a->head_dim)));
    tl_dot(tl, scores, q, tl_transposed(tl, k, 0, 1));
    if (next)
        load_keys(pe, next);
    for (uint32_t i = 0; i < t->blocks; i++)
        hide_later_keys(pe, t, &t->block[i], scores);
    tl_reduce_max(tl, most, all, 1);
    tl_sub(tl, all, all, most);
    tl_exp(tl, all, all);
    tl_sum(tl, tl_part(tl, pe->sum, 0, 0, rows), scores, 1);
    add_values(pe, t, scores, before);
    if (next)
        load_values(pe, next);
}

/* Each row of O by its sum of weights, and into memory, while the next unit begins. */
static inline void unit_finish(struct attention_pe *pe, const struct key_tile *t)
{
    struct tl *tl = pe->tl;
    uint64_t rows = rows_of(pe, t, t->all), head_dim = pe->a->head_dim;
    struct tl_shard sums = submatrix(tl, pe->o, 0, rows, head_dim, 1);
    struct tl_shard out = {.addr = pe->part.addr, .dtype = pe->a->dtype, .rank = 2, .shape = {rows, head_dim}};
    out = tl_view(tl, out);
    tl_recip(tl, sums, sums);
    tl_mul(tl, out, submatrix(tl, pe->o, 0, rows, 0, head_dim), sums);
    move_queries(pe, t, &pe->o_moves, pe->a->o, out, true);
}

static inline struct attention_pe attention_open(struct tl *tl, const struct attention *a)
{
    struct attention_pe pe = {.tl = tl, .a = a, .group = attention_group(a), .units = attention_units(a)};
    uint64_t rows = 2 * a->block * pe.group, head_dim = a->head_dim;
    if (a->causal)
        pe.mask = causal_mask(tl, a->block);
    pe.q = tl_alloc(tl, a->dtype, rows, head_dim);
    pe.k = tl_alloc(tl, a->dtype, a->tile, head_dim);
    pe.v = tl_alloc(tl, a->dtype, a->tile, head_dim);
    pe.s = tl_alloc(tl, a->dtype, rows, a->tile + 2);
    pe.o = tl_alloc(tl, KB_f32, rows, head_dim + 1);
    pe.part = tl_alloc(tl, KB_f32, rows, head_dim + 1);
    pe.sum = tl_alloc(tl, a->dtype, rows, 1);
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

/* Units [first, end) of all, kv head by kv head, on the PE that calls; returns when O is stored. */
static inline void attention(struct tl *tl, const struct attention *a, uint64_t first, uint64_t end)
{
    if (a->tile == 0)
        tl_fail(tl, 1, "the TCM has no room for a query of each head of a group, and a key");
    if (first == end)
        return;
    struct attention_pe pe = attention_open(tl, a);
    struct key_tile t, next;
    unit_begin(&pe, &t, first);
    load_keys(&pe, &t);
    load_values(&pe, &t);
    for (bool is_last = false; !is_last; t = next) {
        is_last = unit_ends(&t) && t.unit + 1 == end;
        next = is_last ? t : tile_after(&pe, t);
        tile_work(&pe, &t, is_last ? NULL : &next);
        if (unit_ends(&t))
            unit_finish(&pe, &t);
    }
    attention_close(&pe);
}

#endif
