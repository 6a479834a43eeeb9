/* attention.c: O = softmax(Q K^T / sqrt(head_dim)) V of many heads: flash attention (attention.h).
 *
 * Neighbouring PEs share a kv head, or a PE has several, and the rows of those heads lie in the HBM of those PEs. A
 * score takes 2 head_dim multiply-adds of pe_gemm, and a comparison, a subtraction, an exponential and an addition of
 * pe_math: the sum of both times bounds the kernel. */
#include <kb/host.h>
#include <kb/measure.h>

#include "attention.h"
#include "params.h"

KB_KERNEL(attention_heads, struct attention)
{
    attention(tl, arg, attention_share(arg, tl_pe(tl), tl_num_pes(tl)));
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
        return kb_cols(KB_HBM, pes);
    if (pes.count % a->kv_heads)
        return kb_rows(KB_HBM, pes);
    while (members % cols)
        cols--;
    return kb_blocks(KB_HBM, pes, pes.count / (uint32_t)cols, (uint32_t)cols);
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
    struct kb_pes pes = kb_pes("*");
    uint64_t width = attention_group(&a) * a.head_dim;
    a.q = heads_tensor("q", &a, a.queries, width, kb_rows(KB_HBM, pes));
    a.k = heads_tensor("k", &a, a.keys, a.head_dim, keys_place(&a, pes));
    a.v = heads_tensor("v", &a, a.keys, a.head_dim, keys_place(&a, pes));
    a.o = heads_tensor("o", &a, a.queries, width, kb_rows(KB_HBM, pes));
    attention_fill(&a);
    kb_ref expected = kb_ref_attention(a.q, a.k, a.v, a.heads, a.kv_heads, a.causal, a.side_by_side);
    attention_plan(&a, pes.count, kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes);
    param_used("block", kb_int(block), a.block, "the queries of a head or what fits into the TCM");
    param_used("tile", kb_int(tile), a.tile, "the keys of a head or what fits into the TCM");
    kb_future launch = kb_launch(attention_heads, pes, &a);
    kb_wait(launch);

    uint64_t hidden = a.causal ? a.queries * (a.queries - 1) / 2 : 0;
    uint64_t scores = a.heads * (a.queries * a.keys - hidden);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = a.dtype, .math_dtype = a.dtype, .macs = 2 * a.head_dim * scores, .math = attention_ops() * scores,
        .reads = {a.q, a.k, a.v}, .writes = {a.o} }, NULL);
    kb_expect_close(a.o, expected);
}
