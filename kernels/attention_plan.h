/* attention_plan.h: what attention is asked for, who does what of it, and how much of it at a time (attention.h).
 *
 * All of it is known to host and device alike. */
#ifndef ATTENTION_PLAN_H
#define ATTENTION_PLAN_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/measure.h>
#include <kb/tl.h>

/* The queries of the heads that share a kv head lie side by side: columns of a matrix, head_dim for each. The rows of
 * such a group follow those of the one before it, or groups, too, are side by side; K and V likewise by kv heads. If
 * causal, the last query sees all keys, and each one before it one fewer. */
struct attention {
    kb_tensor q, k, v, o;
    uint64_t heads, kv_heads, queries, keys, head_dim;
    enum kb_dtype dtype;
    bool causal, side_by_side;
    uint64_t block, tile;                               /* queries of a block, keys of a tile: attention_plan */
};

static inline uint64_t attention_group(const struct attention *a)
{
    return a->heads / a->kv_heads;
}

/* Keys that the last one of some queries sees. */
static inline uint64_t attention_sees(const struct attention *a, uint64_t first, uint64_t count)
{
    return a->causal ? a->keys - a->queries + first + count : a->keys;
}

/* ---- who does what */

/* Kv heads [head, end), shared by so many PEs, of which this one is `member`. They take the blocks of queries in turn,
 * forth and back, so that with a causal mask each has early ones and late ones. */
struct attention_share {
    uint64_t head, end, member, members;
};

/* PE `pe` of so many: kv heads and PEs in as many teams as there are of the fewer ones, neighbours together. */
static inline struct attention_share attention_share(const struct attention *a, uint64_t pe, uint64_t pes)
{
    uint64_t teams = kb_min(pes, a->kv_heads), team = pe * teams / pes;
    uint64_t first = kb_ceil_div(team * pes, teams), end = kb_ceil_div((team + 1) * pes, teams);
    return (struct attention_share){.head = team * a->kv_heads / teams, .end = (team + 1) * a->kv_heads / teams,
                                    .member = pe - first, .members = end - first};
}

/* The blocks of a kv head, and the i-th one of a member; as many as there are, or more: there is none. */
static inline uint64_t attention_blocks(const struct attention *a)
{
    return kb_ceil_div(a->queries, a->block);
}

static inline uint64_t attention_turn(uint64_t i, uint64_t member, uint64_t members)
{
    return i * members + (i % 2 ? members - 1 - member : member);
}

/* ---- block and tile, from the machine's attributes */

/* The longest tile beside a block, in so many bytes; full columns of the array, if there are any. 0: none fits. */
static inline uint64_t attention_fit(const struct attention *a, uint64_t block, uint64_t room_bytes)
{
    uint64_t rows = block * attention_group(a), size = kb_dtype_bytes(a->dtype), cols = kb_attrs.pe_gemm_cols;
    uint64_t mask = a->causal ? block * (block + 4) : 0, buffers = 9;
    uint64_t fixed = rows * (a->head_dim * size + 2 * (a->head_dim + 1) * 4 + 3 * size) + mask + buffers * 64;
    if (fixed >= room_bytes)
        return 0;
    uint64_t tile = kb_min((room_bytes - fixed) / (size * (rows + 2 * a->head_dim)), a->keys);
    return tile > cols && tile < a->keys ? tile / cols * cols : tile;
}

/* Ops of cost 1 for each score. */
static inline uint64_t attention_ops(void)
{
    return kb_op_cost("max") + kb_op_cost("sub") + kb_op_cost("exp") + kb_op_cost("sum");
}

/* About how long a block takes: its scores, and what each tile takes besides; or the DMA, if that is longer. */
static inline uint64_t attention_block_ps(const struct attention *a, uint64_t i, uint64_t tile)
{
    uint64_t count = kb_min(a->block, a->queries - i * a->block), keys = attention_sees(a, i * a->block, count);
    uint64_t rows = count * attention_group(a), scores = rows * keys, tiles = (keys + tile - 1) / tile;
    uint64_t tile_ps = 10 * kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz) +
                       kb_math_ps(KB_f32, 2 * rows * a->head_dim);
    uint64_t dma_ps = kb_memory_ps(KB_HBM, 2 * keys * a->head_dim * kb_dtype_bytes(a->dtype), 0);
    uint64_t compute_ps = kb_gemm_ps(a->dtype, 2 * a->head_dim * scores) + tiles * tile_ps +
                          kb_math_ps(a->dtype, attention_ops() * scores);
    return kb_max(compute_ps, 3 * dma_ps);              /* loads wait for their first bytes, and for other PEs' */
}

/* The longest time of a member. */
static inline uint64_t attention_guess_ps(const struct attention *a, uint64_t tile, uint64_t members)
{
    uint64_t longest_ps = 0, blocks = attention_blocks(a);
    for (uint64_t member = 0; member < members; member++) {
        uint64_t ps = 0;
        for (uint64_t i = 0; i * members < blocks; i++) {
            uint64_t block = attention_turn(i, member, members);
            ps += block < blocks ? attention_block_ps(a, block, tile) : 0;
        }
        longest_ps = kb_max(longest_ps, ps);
    }
    return longest_ps;
}

/* Sets block and tile, those that are 0, for so many PEs and bytes of TCM for each of them. False: there is no room for
 * one query of each head of a group and one key. */
static inline bool attention_plan(struct attention *a, uint64_t pes, uint64_t room_bytes)
{
    a->block = kb_min(a->block, a->queries);
    struct attention trial = *a;
    uint64_t members = kb_ceil_div(pes, kb_min(pes, a->kv_heads));
    uint64_t best_ps = UINT64_MAX, from = a->block ? a->block : 1, to = a->block ? a->block : a->queries;
    for (trial.block = from; trial.block <= to; trial.block++) {
        uint64_t tile = attention_fit(a, trial.block, room_bytes);
        if (tile == 0)
            break;
        tile = a->tile ? kb_min(a->tile, tile) : tile;
        uint64_t guess_ps = attention_guess_ps(&trial, tile, members);
        if (guess_ps < best_ps) {
            best_ps = guess_ps;
            a->block = trial.block;
        }
    }
    uint64_t tile = best_ps < UINT64_MAX ? attention_fit(a, a->block, room_bytes) : 0;
    a->tile = a->tile ? kb_min(a->tile, tile) : tile;
    return a->tile > 0;
}

#endif
