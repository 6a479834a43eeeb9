/* threads.h: the threads of the data pass and of references. */
#ifndef KB_THREADS_H
#define KB_THREADS_H

#include <stdint.h>

/* How many threads there are, the caller's among them; 0, before the first use: the processors that this process may
 * run on. */
extern unsigned thread_count;
enum { THREADS_MOST = 256 };

/* Sets it to what `--threads` says; a wrong number is a usage error. */
void threads_option(const char *text);

/* Sets thread_count if it is 0. */
void threads_prepare(void);

/* Calls f(i, thread, arg) for i = 0 ... count - 1, on all threads, each taking the lowest i that is left; returns when
 * all have returned. `thread` is below thread_count, 0 the caller's. */
void threads_run(uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg);

#endif
