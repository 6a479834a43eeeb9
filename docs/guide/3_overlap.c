/* 3_overlap.c: z = x + y with double buffering: while one chunk is added and stored, the next one is loaded. */
#include <kb/measure.h>

struct add_args { kb_tensor x, y, z; uint64_t chunk; };

struct slot {
    struct tl_shard a, b, z;                            /* a chunk of x, a chunk of y, the part of z for their sum */
    tl_handle a_loaded, b_loaded, stored;
};

/* Starts to load `count` elements of x and y, from `first` on, into the front of the slot's two buffers. */
static void load(struct tl *tl, struct slot *slot, const struct tl_shard buffer[2], const struct add_args *arg,
                 uint64_t first, uint64_t count)
{
    if (slot->stored)
        tl_wait(tl, slot->stored);                      /* the chunk before last is stored */
    slot->a = tl_part(tl, buffer[0], 0, 0, count);
    slot->b = tl_part(tl, buffer[1], 0, 0, count);
    slot->z = tl_part(tl, tl_my_shard(tl, arg->z), 0, first, count);
    slot->a_loaded = tl_load_async(tl, slot->a, tl_part(tl, tl_my_shard(tl, arg->x), 0, first, count));
    slot->b_loaded = tl_load_async(tl, slot->b, tl_part(tl, tl_my_shard(tl, arg->y), 0, first, count));
}

static void add_and_store(struct tl *tl, struct slot *slot)
{
    tl_wait(tl, slot->a_loaded);
    tl_wait(tl, slot->b_loaded);
    tl_add(tl, slot->a, slot->a, slot->b);
    slot->stored = tl_store_async(tl, slot->z, slot->a);
}

KB_KERNEL(add_overlap, struct add_args)
{
    uint64_t n = tl_my_shard(tl, arg->x).shape[0], size = arg->chunk, chunks = (n + size - 1) / size;
    struct tl_shard buffer[2][2];
    struct slot slot[2] = {0};
    for (int i = 0; i < 4; i++)
        buffer[i / 2][i % 2] = tl_alloc(tl, KB_f16, size);
    for (uint64_t i = 0; i <= chunks; i++) {            /* chunk i is loaded while chunk i - 1 is added */
        if (i < chunks)
            load(tl, &slot[i % 2], buffer[i % 2], arg, i * size, i + 1 < chunks ? size : n - i * size);
        if (i > 0)
            add_and_store(tl, &slot[(i - 1) % 2]);
    }
}

KB_BENCH(add_overlap, "z = x + y on all PEs, the next chunk is loaded while one is added",
         KB_INT(n, 2097152, 1, 1 << 30, "elements"), KB_INT(chunk, 8192, 1, 262144, "elements per load"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(kb_int(n)), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_1d(kb_int(n)), kb_rows(KB_HBM, all));
    kb_tensor z = kb_tensor_new("z", KB_f16, kb_1d(kb_int(n)), kb_rows(KB_HBM, all));
    kb_fill_uniform(x, -1, 1);
    kb_fill_uniform(y, -1, 1);

    kb_future launch = kb_launch(add_overlap, all, &(struct add_args){ x, y, z, kb_int(chunk) });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = KB_f16, .math = kb_int(n), .reads = {x, y}, .writes = {z} }, NULL);
    kb_expect_close(z, kb_ref_binary("add", x, y));
}
