/* slow.c: kernels that take longer than they need, each for one reason, which --why shall name. */
#include <kb/host.h>
#include <kb/tl.h>

struct slow_args { kb_tensor x; uint64_t piece; };

enum { ROWS = 256, COLS = 512 };

/* Loads columns of a tensor that lies row by row: many short runs of bytes. The next load is under way. */
KB_KERNEL(strided, struct slow_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), buffer[2];
    tl_handle loaded[2] = {NULL, NULL};
    for (unsigned i = 0; i < 2; i++)
        buffer[i] = tl_alloc(tl, x.dtype, x.shape[0], arg->piece);
    for (uint64_t i = 0; i < x.shape[1] / arg->piece; i++) {
        if (loaded[i % 2])
            tl_wait(tl, loaded[i % 2]);
        loaded[i % 2] = tl_load_async(tl, buffer[i % 2], tl_part(tl, x, 1, i * arg->piece, arg->piece));
    }
}

/* Waits for each load before it does anything else. */
KB_KERNEL(waiting, struct slow_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), buffer = tl_alloc(tl, x.dtype, arg->piece, x.shape[1]);
    for (uint64_t i = 0; i < x.shape[0] / arg->piece; i++) {
        tl_load_into(tl, buffer, tl_part(tl, x, 0, i * arg->piece, arg->piece));
        tl_exp(tl, buffer, buffer);
    }
}

static kb_tensor filled(struct kb_pes pes)
{
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(ROWS * pes.count, COLS), kb_rows(KB_HBM, pes));
    kb_fill(x, 1);
    return x;
}

KB_BENCH(strided, "loads of columns", KB_INT(piece, 8, 1, COLS, "columns of a load"), KB_TEXT(pes, "*", "PEs"))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    kb_wait(kb_launch(strided, pes, &(struct slow_args){filled(pes), kb_int(piece)}));
}

KB_BENCH(waiting, "a load, then work on it", KB_INT(piece, 2, 1, ROWS, "rows of a load"), KB_TEXT(pes, "*", "PEs"))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    kb_wait(kb_launch(waiting, pes, &(struct slow_args){filled(pes), kb_int(piece)}));
}
