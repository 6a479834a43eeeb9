/* threads.h: the threads of the data pass and of references. */
#ifndef KB_THREADS_H
#define KB_THREADS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of threads, the caller's included. 0, before the first use: one for each processor that this process may
 * run on. */
extern unsigned thread_count;
enum { THREADS_MOST = 256 };

/* Sets it by an option, such as "threads"; a wrong number is a usage error. */
void threads_option(const char *option, const char *text);

/* Sets thread_count if it is 0. */
void threads_prepare(void);

/* Calls f(i, thread, arg) for i = 0 ... count - 1 on all threads, each of which takes the lowest i that is left, and
 * returns when all calls have returned. `thread` is below thread_count; the caller's is 0. */
void threads_run(uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg);

/* For the caller's thread, out of an f from which it will not return: gives up the calls that have not begun, and returns
 * when the other threads have ended theirs. Does nothing if no other thread is at work. */
void threads_leave(void);

/* For a guest in another program, whose threads end with the call that has started them (threads_end), and fail as its
 * caller does: an `f` that cannot go on calls threads_give_up, which returns only on the caller's thread. On any other one it
 * ends that thread's part; threads_run then calls fail_exit(status) on the caller's, with the first such text as a message. */
void threads_give_up(int status);
bool threads_take_message(const char *text);            /* of another thread than the caller's: keeps it, and returns true */
void threads_end(void);

/* In a forked process: the other threads have to be started again. */
void threads_forked(void);

/* Whether other threads work for the caller of threads_run, who must not be left where it is: a signal handler may ask. */
extern volatile sig_atomic_t threads_at_work;

#endif
