/* attention.c: O = softmax(Q K^T / sqrt(head_dim)) V, of many heads: flash attention (attention.h).
 *
 * The rows of a head follow those of the one before it, and all rows are spread over all PEs. Each PE takes an equal
 * share of the units, those of one kv head on neighbours, where its keys and values lie. A score takes 2 head_dim
 * multiply-adds of pe_gemm, and pe_math compares, subtracts, exponentiates and adds it: the time of both bounds it. */
#include <kb/host.h>
#include <kb/measure.h>

#include "attention.h"

KB_KERNEL(attention_heads, struct attention)
{
    uint64_t units = attention_units(arg) * arg->kv_heads, pes = tl_num_pes(tl), pe = tl_pe(tl);
    attention(tl, arg, units * pe / pes, units * (pe + 1) / pes);
}

static kb_tensor heads_of(const char *name, const struct attention *a, uint64_t heads, uint64_t length,
                          struct kb_pes pes)
{
    struct kb_dims dims = a->side_by_side ? kb_2d(length, heads * a->head_dim) : kb_2d(heads * length, a->head_dim);
    return kb_tensor_new(name, a->dtype, dims, kb_rows(KB_HBM, pes));
}

KB_BENCH(attention, "softmax(Q K^T / sqrt(head_dim)) V of many heads, with K and V in tiles",
         KB_INT(heads, 32, 1, 1 << 16, "of Q, of all sequences"),
         KB_INT(kv_heads, 8, 1, 1 << 16, "of K and V, each for as many of Q's"),
         KB_INT(queries, 2048, 1, 1 << 20, "rows of a head of Q and O"),
         KB_INT(keys, 0, 0, 1 << 20, "rows of a head of K and V; 0: as many as queries"),
         KB_INT(head_dim, 128, 1, 1024, "columns of a head"),
         KB_WORD(dtype, "f16 bf16 f32", "of all tensors"),
         KB_BOOL(causal, true, "a query sees no keys behind it"),
         KB_BOOL(side_by_side, false, "a row has all heads"),
         KB_INT(block, 0, 0, 1 << 16, "queries of a block; 0: by the machine's attributes"),
         KB_INT(tile, 0, 0, 1 << 16, "keys of a tile; 0: by the machine's attributes"))
{
    struct attention a = {
        .heads = kb_int(heads), .kv_heads = kb_int(kv_heads), .queries = kb_int(queries),
        .keys = kb_int(keys) ? kb_int(keys) : kb_int(queries), .head_dim = kb_int(head_dim),
        .dtype = kb_dtype(kb_word(dtype)), .causal = kb_bool(causal), .side_by_side = kb_bool(side_by_side),
        .block = kb_int(block), .tile = kb_int(tile),
    };
    struct kb_pes pes = kb_pes("*");
    a.q = heads_of("q", &a, a.heads, a.queries, pes);
    a.k = heads_of("k", &a, a.kv_heads, a.keys, pes);
    a.v = heads_of("v", &a, a.kv_heads, a.keys, pes);
    a.o = heads_of("o", &a, a.heads, a.queries, pes);
    kb_fill_normal(a.q, 0, 1);
    kb_fill_normal(a.k, 0, 1);
    kb_fill_uniform(a.v, -1, 1);
    kb_ref expected = kb_ref_attention(a.q, a.k, a.v, a.heads, a.kv_heads, a.causal, a.side_by_side);
    attention_plan(&a, pes.count, kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes);
    kb_future launch = kb_launch(attention_heads, pes, &a);
    kb_wait(launch);

    uint64_t hidden = a.causal ? a.queries * (a.queries - 1) / 2 : 0;
    uint64_t scores = a.heads * (a.queries * a.keys - hidden), size = kb_dtype_bytes(a.dtype);
    kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){
        .gemm_dtype = a.dtype, .math_dtype = a.dtype, .macs = 2 * a.head_dim * scores, .math = 7 * scores,
        .hbm_read = (a.heads * a.queries + 2 * a.kv_heads * a.keys) * a.head_dim * size,
        .hbm_written = a.heads * a.queries * a.head_dim * size });
    kb_expect_close(a.o, expected);
}
