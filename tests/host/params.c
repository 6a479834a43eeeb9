/* params.c: benches with parameters of every type, and launches that overlap. */
#include <kb/host.h>
#include <kb/tl.h>

#include <inttypes.h>
#include <stdio.h>

KB_BENCH(params, "shows what it is given", KB_INT(count, 3, 1, 9, "a count"),
         KB_SIZE(room, 65536, 64, 1 << 30, "a size"), KB_REAL(rate, 0.25, -1, 1e3, "a rate"),
         KB_BOOL(flag, true, "a flag"), KB_WORD(word, "one two", "a word"), KB_TEXT(text, "some text", "a text"))
{
    printf("%" PRIu64 " %" PRIu64 " %g %d %s '%s'\n", kb_int(count), kb_size(room), kb_real(rate), kb_bool(flag),
           kb_word(word), kb_text(text));
}

KB_BENCH(outside, "its default is none", KB_REAL(rate, 2, 0, 1, "a rate")) {}

KB_BENCH(double_one, "one name twice", KB_INT(n, 1, 0, 1, "first"), KB_BOOL(n, true, "second")) {}

/* ---- launches in flight */

struct multiply_args { kb_tensor x, y; };

KB_KERNEL(multiply_by, struct multiply_args)
{
    struct tl_shard x = tl_load(tl, tl_my_shard(tl, arg->x)), y = tl_load(tl, tl_my_shard(tl, arg->y));
    tl_mul(tl, x, x, y);
    tl_store(tl, tl_my_shard(tl, arg->x), x);
}

struct wait_args { uint64_t ps; };

KB_KERNEL(waits, struct wait_args)
{
    tl_delay(tl, arg->ps);
}

static kb_tensor vector(const char *name, struct kb_pes pes, double low, double high)
{
    kb_tensor made = kb_tensor_new(name, KB_f32, kb_1d(11), kb_rows(KB_HBM, pes));
    kb_fill_uniform(made, low, high);
    return made;
}

/* Two kernels at once on two halves, then each half again as soon as it is free. */
KB_BENCH(overlap, "launches in flight on disjoint PEs")
{
    struct kb_pes all = kb_pes("*"), left = {all.pe, 2}, right = {all.pe + 2, all.count - 2};
    kb_tensor x = vector("x", left, -1, 1), y = vector("y", left, 1, 2), z = vector("z", right, -2, 2);
    kb_ref once = kb_ref_binary("mul", x, y), squared = kb_ref_binary("mul", z, z);
    kb_future long_one = kb_launch(waits, right, &(struct wait_args){50 * 1000 * 1000});
    kb_future short_one = kb_launch(multiply_by, left, &(struct multiply_args){x, y});
    kb_wait(short_one);
    kb_expect_close(x, once);
    kb_future again = kb_launch(multiply_by, left, &(struct multiply_args){x, y});
    kb_wait(long_one);
    kb_wait(kb_launch(multiply_by, right, &(struct multiply_args){z, z}));
    kb_wait(again);
    kb_wait(short_one);                                 /* is over: no time */
    kb_expect_close(x, kb_ref_binary("mul", once, y));
    kb_expect_close(z, squared);
}

/* Three writes and a read beside a kernel, then launches that the m_cpus start. */
KB_BENCH(transfers, "memory requests in flight, and launches without io_cpu")
{
    struct kb_pes all = kb_pes("*"), first = {all.pe, 1}, cube = {all.pe, 2};
    kb_tensor x = vector("x", first, -1, 1), y = vector("y", first, 1, 2);
    kb_tensor big = kb_tensor_new("big", KB_f32, kb_1d(4096), kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")));
    float back[11];
    kb_ref product = kb_ref_binary("mul", x, y);
    kb_future launch = kb_launch(waits, cube, &(struct wait_args){1000 * 1000});
    kb_request writes[] = {kb_write_async(big, NULL), kb_write_async(big, NULL)}, read = kb_read_async(x, back);
    kb_wait(writes[1]);
    kb_wait(writes[0]);                                 /* is complete: no time */
    kb_wait(launch);
    kb_wait(kb_launch_with(multiply_by, first, kb_options(.start = KB_START_CUBE), &(struct multiply_args){x, y}));
    kb_wait(kb_launch_with(waits, cube, kb_options(.start = KB_START_FREE), &(struct wait_args){1000}));
    kb_wait(read);
    kb_expect_close(x, product);
    kb_read_async(x, NULL);                             /* the end of the bench waits for it */
}

KB_BENCH(refused, "a PE that still runs an earlier launch")
{
    struct kb_pes all = kb_pes("*"), left = {all.pe, 2}, right = {all.pe + 1, 2};
    kb_launch(waits, left, &(struct wait_args){1000});
    kb_launch_parts(kb_options(0), kb_part(waits, right, &(struct wait_args){1000}));
}
