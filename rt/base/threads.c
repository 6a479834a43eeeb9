/* threads.c: the threads of the data pass and of references, which wait for work until the program ends. */
#include "threads.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "common/command_line.h"
#include "common/fail.h"
#include "common/processors.h"

unsigned thread_count;
volatile sig_atomic_t threads_at_work;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t begins, ends;
    unsigned started, working;                          /* started: with the caller's; working: of the others */
    uint64_t rounds, rounds_before;                     /* that have begun; that had when threads were started last */
    void (*f)(uint64_t i, unsigned thread, void *arg);  /* of this round */
    void *arg;
    uint64_t count, taken;
    bool ends_now;                                      /* all threads but the caller's */
    pthread_t id[THREADS_MOST];                         /* of those that were started, */
    jmp_buf *out[THREADS_MOST];                         /* and where to leave what they do */
    int failed;                                         /* the status of the first that has given up; 0: none has */
    char said[1024];                                    /* what it has said */
} threads = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, .started = 1};

static void take(unsigned thread)
{
    for (uint64_t i; (i = __atomic_fetch_add(&threads.taken, 1, __ATOMIC_RELAXED)) < threads.count;)
        threads.f(i, thread, threads.arg);
}

static void take_no_more(void)
{
    __atomic_store_n(&threads.taken, threads.count, __ATOMIC_RELAXED);
}

static void *worker(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    jmp_buf out;
    threads.out[thread] = &out;
    pthread_mutex_lock(&threads.mutex);
    for (uint64_t round = threads.rounds_before;; round = threads.rounds) {
        while (round == threads.rounds && !threads.ends_now)
            pthread_cond_wait(&threads.begins, &threads.mutex);
        if (threads.ends_now)
            break;
        pthread_mutex_unlock(&threads.mutex);
        if (thread < thread_count && !setjmp(out))
            take(thread);
        pthread_mutex_lock(&threads.mutex);
        if (--threads.working == 0)
            pthread_cond_signal(&threads.ends);
    }
    pthread_mutex_unlock(&threads.mutex);
    return NULL;
}

/* The number of the thread that calls; 0: the caller's, or none of these. */
static unsigned own_number(void)
{
    unsigned thread = threads_at_work ? threads.started - 1 : 0;
    while (thread && !pthread_equal(threads.id[thread], pthread_self()))
        thread--;
    return thread;
}

bool threads_take_message(const char *text)
{
    if (!own_number())
        return false;
    pthread_mutex_lock(&threads.mutex);
    size_t length = strlen(threads.said);
    snprintf(threads.said + length, sizeof threads.said - length, "%s", threads.failed ? "" : text);
    pthread_mutex_unlock(&threads.mutex);
    return true;
}

void threads_give_up(int status)
{
    unsigned thread = own_number();
    if (!thread)
        return;
    pthread_mutex_lock(&threads.mutex);
    if (!threads.failed)
        threads.failed = status;
    pthread_mutex_unlock(&threads.mutex);
    take_no_more();
    longjmp(*threads.out[thread], 1);
}

void threads_option(const char *option, const char *text)
{
    thread_count = (unsigned)option_whole(option, text, 1, THREADS_MOST);
}

void threads_prepare(void)
{
    if (thread_count > 0)
        return;
    unsigned processors = processor_count();
    thread_count = processors < THREADS_MOST ? processors : THREADS_MOST;
}

/* Signals are left to the thread that simulates. */
static void start(void)
{
    sigset_t all, before;
    threads.rounds_before = threads.rounds;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (threads.started < thread_count) {
        if (pthread_create(&threads.id[threads.started], NULL, worker, (void *)(uintptr_t)threads.started))
            die("cannot start thread %u of the data pass (--threads):", threads.started + 1);
        threads.started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Waits until the other threads have nothing left to do. */
static void await_others(void)
{
    pthread_mutex_lock(&threads.mutex);
    while (threads.working > 0)
        pthread_cond_wait(&threads.ends, &threads.mutex);
    pthread_mutex_unlock(&threads.mutex);
    threads_at_work = false;
}

void threads_leave(void)
{
    if (!threads_at_work)
        return;
    take_no_more();
    await_others();
}

void threads_run(uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg)
{
    threads_prepare();
    threads.f = f, threads.arg = arg, threads.count = count, threads.taken = 0;
    if (thread_count == 1 || count <= 1) {
        take(0);
        return;
    }
    start();
    threads_at_work = true;
    pthread_mutex_lock(&threads.mutex);
    threads.working = threads.started - 1;
    threads.rounds++;
    pthread_cond_broadcast(&threads.begins);
    pthread_mutex_unlock(&threads.mutex);
    take(0);
    await_others();
    if (!threads.failed)
        return;
    int status = threads.failed;
    threads.failed = 0;
    if (*threads.said)
        message("%s", threads.said);
    *threads.said = '\0';
    fail_exit(status);
}

void threads_end(void)
{
    if (threads.started == 1)
        return;
    pthread_mutex_lock(&threads.mutex);
    threads.ends_now = true;
    pthread_cond_broadcast(&threads.begins);
    pthread_mutex_unlock(&threads.mutex);
    for (; threads.started > 1; threads.started--)
        pthread_join(threads.id[threads.started - 1], NULL);
    threads.ends_now = false;
}

void threads_forked(void)
{
    pthread_mutex_init(&threads.mutex, NULL);
    pthread_cond_init(&threads.begins, NULL);
    pthread_cond_init(&threads.ends, NULL);
    threads.started = 1;
    threads.working = 0;
    threads_at_work = false;
}
