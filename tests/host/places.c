/* places.c: how tensors of every rank lie: each PE shows its shard, the host the addresses. */
#include <kb/host.h>
#include <kb/tl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct show_args { kb_tensor tensor; };

KB_KERNEL(show, struct show_args)
{
    struct tl_shard mine = tl_my_shard(tl, arg->tensor);
    uint64_t count = 1;
    tl_delay(tl, 1000000 * tl_pe(tl));                  /* one after the other */
    printf("%u:", tl_pe(tl));
    for (uint32_t axis = 0; axis < mine.rank; axis++) {
        printf(" %" PRIu64 "+%" PRIu64, mine.first[axis], mine.shape[axis]);
        count *= mine.shape[axis];
    }
    printf(" |");
    const int32_t *data = count ? tl_data(tl, tl_load(tl, mine)) : NULL;
    for (uint64_t i = 0; i < count; i++)
        printf(" %d", data[i]);
    printf("\n");
}

static struct kb_dims dims_of(const char *text)
{
    uint64_t size[KB_RANK] = {0};
    uint32_t rank = 0;
    for (char *end; *text; text = *end ? end + 1 : end)
        size[rank++] = strtoull(text, &end, 10);
    return rank == 1 ? kb_1d(size[0]) : rank == 2 ? kb_2d(size[0], size[1])
           : rank == 3 ? kb_3d(size[0], size[1], size[2]) : kb_4d(size[0], size[1], size[2], size[3]);
}

static enum kb_space space_of(const char *word)
{
    return word[0] == 'h' ? KB_HBM : word[0] == 't' ? KB_TCM : KB_SRAM;
}

/* How many of the elements from 1 on are not as written. */
static uint64_t peeked_wrong(kb_tensor tensor, struct kb_dims dims)
{
    uint64_t count = 1, wrong = 0;
    for (uint32_t axis = 0; axis < dims.rank; axis++)
        count *= dims.size[axis];
    double *values = kb_array(double, count);
    kb_peek_many(tensor, 1, count - 1, values);
    for (uint64_t i = 1; i < count; i++)
        wrong += values[i - 1] != (double)i || kb_peek(tensor, i) != (double)i;
    return wrong + (values[count - 1] != 0);
}

KB_BENCH(shards, "what each PE has of a tensor of 0, 1, 2 ...", KB_TEXT(shape, "5x7", "its shape"),
         KB_WORD(split, "rows cols blocks copies on", "how"), KB_WORD(space, "hbm tcm sram", "where"))
{
    static int32_t count[10000];
    struct kb_pes all = kb_pes("*");
    enum kb_space space = space_of(kb_word(space));
    const char *split = kb_word(split);
    if (!strcmp(split, "on"))
        all.count = 1;
    struct kb_place place = split[0] == 'r' ? kb_rows(space, all) : split[0] == 'b' ? kb_blocks(space, all, 2, 2)
                            : split[0] == 'o' ? kb_on(space, all) : split[1] == 'o' && split[2] == 'l'
                                                                        ? kb_cols(space, all) : kb_copies(space, all);
    for (int32_t i = 0; i < 10000; i++)
        count[i] = i;
    kb_tensor tensor = kb_tensor_new("t", KB_i32, dims_of(kb_text(shape)), place);
    kb_write(tensor, count);
    kb_wait(kb_launch(show, all, &(struct show_args){tensor}));
    printf("wrong %" PRIu64 "\n", peeked_wrong(tensor, dims_of(kb_text(shape))));
}

struct address_args { kb_tensor tensor[4]; };

KB_KERNEL(addresses, struct address_args)
{
    for (uint32_t i = 0; i < 4; i++)
        printf(" %" PRIx64, tl_my_shard(tl, arg->tensor[i]).addr & 0xffffff);
    printf("\n");
}

KB_BENCH(addresses, "tensors one after the other", KB_WORD(space, "hbm tcm sram", "where"))
{
    struct kb_pes one = kb_pes("sip0.cube1.pe1");
    struct address_args args;
    for (uint32_t i = 0; i < 4; i++)
        args.tensor[i] = kb_tensor_new("t", KB_i8, kb_1d(1 + 63 * i), kb_on(space_of(kb_word(space)), one));
    kb_wait(kb_launch(addresses, one, &args));
}

KB_BENCH(unplaced, "what cannot be", KB_WORD(what, "far space split dtype name full blocks", "which"))
{
    const char *what = kb_word(what);
    uint32_t far[] = {1, 99};
    struct kb_pes all = kb_pes("*"), one = kb_pes("sip0.cube0.pe0");
    struct kb_place place = kb_rows(KB_HBM, all);
    if (!strcmp(what, "far")) kb_tensor_new("t", KB_f16, kb_1d(8), kb_rows(KB_HBM, ((struct kb_pes){far, 2})));
    if (!strcmp(what, "space")) place.space = 3;
    if (!strcmp(what, "split")) place.split = 9;
    if (!strcmp(what, "dtype")) kb_tensor_new("t", (enum kb_dtype)70, kb_1d(8), place);
    if (!strcmp(what, "name")) kb_tensor_new(NULL, KB_f16, kb_1d(8), place);
    if (!strcmp(what, "full")) kb_tensor_new("t", KB_f16, kb_3d(1 << 20, 3, 1), kb_on(KB_TCM, one));
    if (!strcmp(what, "blocks")) kb_tensor_new("t", KB_f16, kb_1d(8), kb_blocks(KB_HBM, all, 2, 2));
    kb_tensor_new("t", KB_f16, kb_1d(8), place);
}
