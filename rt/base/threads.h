/* threads.h: the threads of the data pass and of references. */
#ifndef KB_THREADS_H
#define KB_THREADS_H

#include <stdint.h>

/* How many threads there are, the caller's among them; 0, before the first use: the processors that this process may
 * run on. */
extern unsigned pool_threads;
enum { POOL_MOST_THREADS = 256 };

/* Sets it to what `--threads` says; a wrong number is a usage error. */
void pool_option(const char *text);

/* Sets pool_threads if it is 0. */
void pool_prepare(void);

/* Calls f(i, thread, arg) for i = 0 ... count - 1, on all threads, each taking the lowest i that is left; returns when
 * all have returned. `thread` is below pool_threads, 0 the caller's. */
void pool_run(uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg);

#endif
