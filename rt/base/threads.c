/* threads.c: the threads of the data pass and of references. They wait for work, to the end of the program. */
#define _GNU_SOURCE                                     /* sched_getaffinity */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

unsigned pool_threads;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begins = PTHREAD_COND_INITIALIZER, ends = PTHREAD_COND_INITIALIZER;
static unsigned started = 1, working;                   /* the caller's thread is there; how many others work */
static uint64_t rounds, rounds_before;                  /* that have begun; when threads were started last */

/* Of this round. */
static void (*work)(uint64_t i, unsigned thread, void *arg);
static void *work_arg;
static uint64_t work_count, taken;

static void take(unsigned thread)
{
    for (uint64_t i; (i = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED)) < work_count;)
        work(i, thread, work_arg);
}

static void *worker(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    pthread_mutex_lock(&mutex);
    for (uint64_t round = rounds_before;; round = rounds) {
        while (round == rounds)
            pthread_cond_wait(&begins, &mutex);
        pthread_mutex_unlock(&mutex);
        if (thread < pool_threads)
            take(thread);
        pthread_mutex_lock(&mutex);
        if (--working == 0)
            pthread_cond_signal(&ends);
    }
    return NULL;
}

void pool_option(const char *text)
{
    unsigned long threads = strtoul(text, NULL, 10);
    if (!*text || strspn(text, "0123456789") != strlen(text) || threads < 1 || threads > POOL_MOST_THREADS)
        usage_error("--threads %s: a whole number from 1 to %d is needed", text, POOL_MOST_THREADS);
    pool_threads = (unsigned)threads;
}

void pool_prepare(void)
{
    cpu_set_t set;
    if (pool_threads > 0)
        return;
    int processors = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    pool_threads = processors < POOL_MOST_THREADS ? (unsigned)processors : POOL_MOST_THREADS;
}

/* Signals are for the thread that simulates. */
static void start(void)
{
    sigset_t all, before;
    pthread_t thread;
    rounds_before = rounds;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < pool_threads) {
        if (pthread_create(&thread, NULL, worker, (void *)(uintptr_t)started))
            die("cannot start thread %u of the data pass (--threads):", started + 1);
        pthread_detach(thread);
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pool_run(uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg)
{
    pool_prepare();
    work = f, work_arg = arg, work_count = count, taken = 0;
    if (pool_threads == 1 || count <= 1) {
        take(0);
        return;
    }
    start();
    pthread_mutex_lock(&mutex);
    working = started - 1;
    rounds++;
    pthread_cond_broadcast(&begins);
    pthread_mutex_unlock(&mutex);
    take(0);
    pthread_mutex_lock(&mutex);
    while (working > 0)
        pthread_cond_wait(&ends, &mutex);
    pthread_mutex_unlock(&mutex);
}
