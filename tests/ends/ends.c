/* ends.c: kernels and benches that end the process, leave their stack or do not end; `what` says how. */
#define _GNU_SOURCE
#include <kb/host.h>
#include <kb/tl.h>

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *what;
static struct tl *first_tl;
static jmp_buf in_kernel, in_bench;
static volatile uintptr_t nowhere = 16;
static volatile uint64_t turns;

struct ends_args { kb_tensor a; };

static bool is(const char *name)
{
    return !strcmp(what, name);
}

__attribute__((noinline)) static int deep(int depth)
{
    volatile char frame[4000];
    frame[0] = (char)depth;
    return (nowhere ? deep(depth + 1) : 0) + frame[0];
}

/* ---- ends that kernels and benches share; `free` gives the kernel's argument */

static void end(void *arg)
{
    if (is("abort")) abort();
    if (is("assert")) assert(!nowhere);
    if (is("raise")) raise(SIGSEGV);
    if (is("raise_abort")) raise(SIGABRT);
    if (is("free")) free(arg);
    if (is("segv")) *(volatile int *)nowhere = 1;
    if (is("overflow")) turns = (uint64_t)deep(0);
    if (is("exit")) exit(0);
    if (is("_exit")) _exit(0);
    if (is("_Exit")) _Exit(0);
    if (is("quick_exit")) quick_exit(0);
    if (is("exit_7")) exit(7);
    if (is("pthread_exit")) pthread_exit(NULL);
}

/* ---- kernels */

static void children(struct tl *tl)
{
    pid_t child = fork();
    if (child == 0 && is("fork_exit"))
        exit(0);
    if (child == 0 && is("fork_abort"))
        abort();
    if (child == 0 && is("fork_exec"))
        execl("/bin/true", "true", NULL);
    if (child > 0 && !is("fork"))
        waitpid(child, NULL, 0);
    tl_delay(tl, 1000);
}

static void strays(struct tl *tl, struct tl_shard a)
{
    if (tl_pe(tl) == 0) {
        first_tl = tl;
        if (is("jump_kernel") && setjmp(in_kernel))
            tl_delay(tl, 1000);
        tl_delay(tl, 10000000);
        return;
    }
    tl_delay(tl, 1000);
    if (tl_pe(tl) > 1)
        return;
    if (is("tl_load")) tl_load(first_tl, a);
    if (is("tl_delay")) tl_delay(first_tl, 1000);
    if (is("tl_fail")) tl_fail(first_tl, 1, "of another");
    if (is("tl_alloc")) tl_alloc(first_tl, KB_i8, 64);
    if (is("jump_kernel")) longjmp(in_kernel, 1);
    if (is("jump_bench") || is("jump_wait")) longjmp(in_bench, 1);
}

static void endless(struct tl *tl, struct tl_shard a)
{
    struct tl_shard buffer = tl_alloc(tl, KB_f16, 1, 8);
    if (is("loop") && tl_pe(tl) == 1)
        for (;;)
            turns++;
    if (is("loops")) {                                  /* on each PE, from one instant on */
        tl_delay(tl, 100000000 - tl_now(tl));
        for (;;)
            turns++;
    }
    if (is("sleep") && tl_pe(tl) == 1) {                /* as loop, but the processor is free for the first 11 s */
        for (time_t begin = time(NULL); time(NULL) - begin < 11;)
            usleep(20000);
        for (;;)
            turns++;
    }
    while (is("loop_calls"))
        tl_free(tl, tl_alloc(tl, KB_i8, 64));
    while (is("loop_heap"))
        free(malloc(64 + turns++ % 64));
    while (is("delay"))
        tl_delay(tl, 1000000);
    while (is("slow_delay")) {                          /* as delay, but the processor is free */
        usleep(20000);
        tl_delay(tl, 2000000);
    }
    while (is("delay_0"))
        tl_delay(tl, 0);
    while (is("loads"))
        tl_load_async(tl, buffer, a);
    while (is("heap"))
        memset(malloc(1 << 20), 1, 1 << 20);
}

KB_KERNEL(ends, struct ends_args)
{
    struct tl_shard a = tl_part(tl, tl_my_shard(tl, arg->a), 0, 0, 1);
    tl_load(tl, a);
    strays(tl, a);
    endless(tl, a);
    if (!strncmp(what, "fork", 4))
        children(tl);
    if (tl_pe(tl) == 1)
        end((void *)arg);
}

KB_KERNEL(fails, struct ends_args)
{
    (void)arg;
    tl_delay(tl, 1000 * tl_pe(tl));
    if (tl_pe(tl) % 2)
        tl_fail(tl, 1, "on number %u", tl_pe(tl));
    tl_fail(tl, 2, "on number %u", tl_pe(tl));
}

/* Ten places, at which PEs stay. */
KB_KERNEL(scattered, struct ends_args)
{
    (void)arg;
    switch (tl_pe(tl) % 10) {
    case 0: tl_delay(tl, 1000000000); break;
    case 1: tl_delay(tl, 1000000000); break;
    case 2: tl_delay(tl, 1000000000); break;
    case 3: tl_delay(tl, 1000000000); break;
    case 4: tl_delay(tl, 1000000000); break;
    case 5: tl_delay(tl, 1000000000); break;
    case 6: tl_delay(tl, 1000000000); break;
    case 7: tl_delay(tl, 1000000000); break;
    case 8: tl_delay(tl, 1000000000); break;
    case 9: tl_delay(tl, 1000000000); break;
    }
}

#define WORDS                                                                                                          \
    "none abort assert raise raise_abort free segv overflow exit _exit _Exit quick_exit exit_7 pthread_exit fork "    \
    "fork_exit fork_abort fork_exec tl_load tl_delay tl_fail tl_alloc jump_kernel jump_bench jump_wait loop loop_calls "  \
    "loop_heap loops sleep delay slow_delay delay_0 loads heap fill fills"

static kb_tensor tensor(struct kb_pes pes)
{
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(8 * pes.count, 8), kb_rows(KB_HBM, pes));
    kb_fill(a, 1);
    return a;
}

KB_BENCH(ends, "how a kernel ends", KB_WORD(what, WORDS, "how"))
{
    what = kb_word(what);
    struct kb_pes all = kb_pes("*");
    kb_tensor a = tensor(all);
    kb_tensor large = is("fills") ? kb_tensor_new("large", KB_f16, kb_2d(1024, 1024), kb_rows(KB_HBM, all)) : NULL;
    while (large)
        kb_fill_normal(large, 0, 1);
    if (setjmp(in_bench) && is("jump_bench"))
        return;                                         /* jump_wait: waits again */
    kb_wait(kb_launch(ends, all, &(struct ends_args){a}));
}

KB_BENCH(bench_ends, "how a bench ends after a launch", KB_WORD(what, WORDS, "how"))
{
    what = "none";
    struct kb_pes all = kb_pes("*");
    kb_tensor a = tensor(all);
    kb_wait(kb_launch(ends, all, &(struct ends_args){a}));
    what = kb_word(what);
    end(a);
    while (is("tl_delay"))
        tl_delay(first_tl, 1);
    while (is("loop"))
        turns++;
}

KB_BENCH(scattered, "PEs at ten places", KB_WORD(what, WORDS, "nothing"))
{
    struct kb_pes all = kb_pes("*");
    kb_wait(kb_launch(scattered, all, &(struct ends_args){tensor(all)}));
}

enum { ROWS = 400 };

/* Reads rows one after the other: half of them, PE 0 without pauses, or all of them. */
KB_KERNEL(reads, struct ends_args)
{
    struct tl_shard mine = tl_my_shard(tl, arg->a);
    for (unsigned row = 0; row < (is("half") ? ROWS / 2 : ROWS); row++) {
        struct tl_shard loaded = tl_load(tl, tl_part(tl, mine, 0, row, 1));
        if (is("all") || tl_pe(tl)) {
            usleep(5000);
            tl_delay(tl, 100000);
        }
        tl_free(tl, loaded);
    }
}

KB_BENCH(reads, "kernels of which each has a known length", KB_WORD(what, "half all", "of the rows"))
{
    what = kb_word(what);
    struct kb_pes all = kb_pes("*");
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(ROWS * all.count, 64), kb_rows(KB_HBM, all));
    kb_fill(a, 1);
    kb_wait(kb_launch(reads, all, &(struct ends_args){a}));
}

KB_BENCH(fails, "two mistakes on every PE", KB_WORD(what, WORDS, "nothing"))
{
    struct kb_pes all = kb_pes("*");
    kb_wait(kb_launch(fails, all, &(struct ends_args){tensor(all)}));
}
