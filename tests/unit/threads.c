/* threads.c: work that is shared among threads is done once each, by as many threads as there are to be. */
#define _GNU_SOURCE                                     /* sched_getaffinity */
#include <sched.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "base/threads.h"
#include "tap.h"

enum { WORK = 1000 };

static unsigned done[WORK], highest;

static void work(uint64_t i, unsigned thread, void *arg)
{
    __atomic_fetch_add(&done[i], *(unsigned *)arg, __ATOMIC_RELAXED);
    for (unsigned seen = highest; thread > seen && !__atomic_compare_exchange_n(&highest, &seen, thread, true,
                                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);)
        ;
}

/* Whether each part is done once by threads with numbers below thread_count, twice in a row. */
static bool shared(uint64_t count)
{
    bool good = true;
    for (unsigned round = 0; round < 2; round++) {
        unsigned once = 1;
        memset(done, 0, sizeof done);
        highest = 0;
        threads_run(count, work, &once);
        for (uint64_t i = 0; i < WORK; i++)
            good &= done[i] == (i < count);
        good &= highest < thread_count;
    }
    return good;
}

/* The caller's thread leaves in the middle of its first part, while others are in theirs. */
static jmp_buf out;
static unsigned begun, ended;

static void leaves(uint64_t i, unsigned thread, void *arg)
{
    (void)i, (void)arg;
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
    usleep(thread ? 2000 : 1000);
    if (thread == 0) {
        threads_leave();
        longjmp(out, 1);
    }
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

static bool left(void)
{
    if (!setjmp(out))
        threads_run(WORK, leaves, NULL);
    unsigned then = begun;
    bool good = !threads_at_work && ended == then - 1 && then < WORK;
    usleep(10000);
    return good && begun == then;
}

int main(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    threads_prepare();
    int processors = CPU_COUNT(&set) < THREADS_MOST ? CPU_COUNT(&set) : THREADS_MOST;
    expect((int)thread_count == processors, "by default there are as many threads as processors");
    threads_option("threads", "5");
    threads_prepare();
    expect(thread_count == 5, "an option says how many threads there are");
    expect(shared(WORK), "five threads do each part once");
    expect(shared(1) && shared(0), "one part, or none, needs no thread");
    thread_count = 2;
    expect(shared(WORK), "with fewer threads than before, the others do nothing");
    thread_count = 7;
    expect(shared(WORK), "with more threads than before, each part is done once");
    expect(left(), "a caller that leaves waits for parts that others have begun, and no other part begins");
    expect(shared(WORK), "after that, parts are shared as before");
    return tests_end();
}
