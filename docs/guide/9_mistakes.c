/* 9_mistakes.c: the most common mistakes, one per word: run mistakes what=pending. */
#include <kb/host.h>

enum what { FULL, PENDING, EARLY, RACE, DEADLOCK, WRONG };

struct mistakes_args { kb_tensor x, y; enum what what; };

/* The second load overwrites what is still being stored. */
static void race(struct tl *tl, struct tl_shard x, struct tl_shard y)
{
    struct tl_shard t = tl_load(tl, x);
    tl_handle stored = tl_store_async(tl, y, t);
    tl_load_into(tl, t, x);
    tl_wait(tl, stored);
}

KB_KERNEL(mistakes, struct mistakes_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y), t;
    switch (arg->what) {
    case FULL:
        tl_alloc(tl, KB_f16, 1 << 19);
        tl_alloc(tl, KB_f16, 1 << 20);                  /* 1 MiB is left, this takes 2 */
        break;
    case PENDING:
        t = tl_load(tl, x);
        tl_exp(tl, t, t);
        tl_log(tl, "%x", *(const uint16_t *)tl_data(tl, t));        /* it has not been computed yet */
        break;
    case EARLY:
        t = tl_alloc(tl, KB_f16, x.shape[0]);
        tl_load_async(tl, t, x);
        tl_data(tl, t);                                 /* tl_wait is missing */
        break;
    case RACE:
        race(tl, x, y);
        break;
    case DEADLOCK:
        t = tl_load(tl, x);
        tl_recv(tl, tl_pe(tl) ^ 1, t);                  /* both PEs wait, and none sends */
        break;
    case WRONG:
        t = tl_load(tl, x);
        tl_exp(tl, t, t);
        tl_store(tl, y, t);                             /* the reference is exp(-x) */
        break;
    }
}

KB_BENCH(mistakes, "the most common mistakes", KB_WORD(what, "full pending early race deadlock wrong", "the mistake"))
{
    static const char *const words[] = { "full", "pending", "early", "race", "deadlock", "wrong" };
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(4096), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_1d(4096), kb_rows(KB_HBM, all));
    enum what what = 0;
    while (__builtin_strcmp(words[what], kb_word(what)))
        what++;
    kb_fill_uniform(x, -1, 1);

    kb_wait(kb_launch(mistakes, all, &(struct mistakes_args){ x, y, what }));

    if (what == WRONG)
        kb_expect_close(y, kb_ref_unary("exp", kb_ref_unary("neg", x)));
}
