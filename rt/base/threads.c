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

unsigned thread_count;

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
        if (thread < thread_count)
            take(thread);
        pthread_mutex_lock(&mutex);
        if (--working == 0)
            pthread_cond_signal(&ends);
    }
    return NULL;
}

void threads_option(const char *text)
{
    unsigned long threads = strtoul(text, NULL, 10);
    if (!*text || strspn(text, "0123456789") != strlen(text) || threads < 1 || threads > THREADS_MOST)
        usage_error("--threads %s: a whole number from 1 to %d is needed", text, THREADS_MOST);
    thread_count = (unsigned)threads;
}

void threads_prepare(void)
{
    cpu_set_t set;
    if (thread_count > 0)
        return;
    int processors = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    thread_count = processors < THREADS_MOST ? (unsigned)processors : THREADS_MOST;
}

/* Signals are for the thread that simulates. */
static void start(void)
{
    sigset_t all, before;
    pthread_t thread;
    rounds_before = rounds;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < thread_count) {
        if (pthread_create(&thread, NULL, worker, (void *)(uintptr_t)started))
            die("cannot start thread %u of the data pass (--threads):", started + 1);
        pthread_detach(thread);
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void threads_run(uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg)
{
    threads_prepare();
    work = f, work_arg = arg, work_count = count, taken = 0;
    if (thread_count == 1 || count <= 1) {
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
