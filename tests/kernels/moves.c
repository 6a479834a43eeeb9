/* moves.c: what is loaded, branched on, stored, split and peeked at: prints what it sees. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>

struct moves_args { kb_tensor from, to; };

/* Moves the shard to the PE's right, if its first element is even, else waits. */
KB_KERNEL(moves, struct moves_args)
{
    struct tl_shard mine = tl_my_shard(tl, arg->from);
    struct tl_shard buffer = tl_load(tl, mine);
    const int32_t *data = tl_data(tl, buffer);
    if (data[0] % 2)
        tl_delay(tl, 1000000);
    else
        tl_store(tl, tl_shard(tl, arg->to, (tl_pe(tl) + 1) % tl_num_pes(tl)), buffer);
}

static void print(kb_tensor tensor, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        printf("%s%g", i ? " " : "", kb_peek(tensor, i));
    printf("\n");
}

static void moved(enum kb_space space)
{
    struct kb_pes pes = kb_pes("*");
    kb_tensor from = kb_tensor_new("from", KB_i32, kb_2d(2 * pes.count, 3), kb_rows(space, pes));
    kb_tensor to = kb_tensor_new("to", KB_i32, kb_2d(2 * pes.count, 3), kb_rows(space, pes));
    kb_tensor other = kb_tensor_new("other", KB_i32, kb_2d(2, 3), kb_on(space, kb_pes("sip0.cube0.pe0")));
    kb_fill_uniform(from, 0, 100);
    kb_fill(to, -1);
    kb_fill(other, 5);
    print(from, 6 * pes.count);
    kb_wait(kb_launch(moves, pes, &(struct moves_args){from, to}));
    print(to, 6 * pes.count);
    print(other, 6);
}

KB_BENCH(moves, "loads, stores and what they see", KB_WORD(space, "hbm tcm sram", "where tensors lie"))
{
    moved(kb_word(space)[0] == 'h' ? KB_HBM : kb_word(space)[0] == 't' ? KB_TCM : KB_SRAM);
}

struct where_args { kb_tensor tensor; };

KB_KERNEL(where, struct where_args)
{
    struct tl_shard mine = tl_my_shard(tl, arg->tensor);
    tl_delay(tl, 1000 * tl_pe(tl));
    printf("%u of %u: %lu x %lu from [%lu, %lu]\n", tl_pe(tl), tl_num_pes(tl), mine.shape[0], mine.shape[1],
           mine.first[0], mine.first[1]);
}

KB_BENCH(places, "how tensors are split", KB_INT(rows, 5, 1, 100, ""), KB_INT(columns, 7, 1, 100, ""),
         KB_WORD(split, "rows cols blocks copies", "how"))
{
    struct kb_pes pes = kb_pes("sip0.cube?.pe*");
    const char how = kb_word(split)[1];
    struct kb_place place = how == 'o' && kb_word(split)[0] == 'r' ? kb_rows(KB_HBM, pes)
                            : how == 'o' && kb_word(split)[2] == 'l' ? kb_cols(KB_HBM, pes)
                            : how == 'l' ? kb_blocks(KB_HBM, pes, 2, pes.count / 2) : kb_copies(KB_HBM, pes);
    kb_tensor tensor = kb_tensor_new("t", KB_f16, kb_2d(kb_int(rows), kb_int(columns)), place);
    kb_fill_uniform(tensor, 0, 1);
    kb_wait(kb_launch(where, pes, &(struct where_args){tensor}));
    print(tensor, kb_int(rows) * kb_int(columns));
}
