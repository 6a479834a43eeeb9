/* watchdog.h: what watches a run from outside: limits, signals of people, kernels that do not come back, progress.
 *
 * A timer ticks ten times a second. Its handler compares host time and memory with their limits, and asks the loop
 * (sim/loop.h) to attend. A kernel or bench that does not return to the loop is left where it is: the handler diverts it
 * (trap.h), and it never goes on. So a run ends in order, and what was asked for is written up to there. */
#ifndef KB_WATCHDOG_H
#define KB_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct watchdog_limits {
    double seconds;                                     /* of the host, for one run; 0: no limit */
    uint64_t bytes;                                     /* resident memory of the process; 0: no limit */
    uint64_t ps;                                        /* simulated; 0: no limit */
};

struct tl;

/* What is known of the run besides its launches; each may be NULL. */
struct watchdog_run {
    const char *(*bench_call)(void);                    /* where the bench is that acts */
    /* For the progress: how many commands a kernel submits in all; and the part of the first launch that is done, 0 to 1,
     * negative if that is not known. */
    uint64_t (*commands)(const struct tl *tl);
    double (*part_done)(void);
};

/* Starts to watch a run, which is about to begin. Until watchdog_stop, SIGINT and SIGTERM end it, and SIGUSR1 prints
 * where it is. */
void watchdog_start(const struct watchdog_limits *limits, const struct watchdog_run *run);
void watchdog_stop(void);

/* A place where the run can be ended, outside of the loop: calls sim_abandon if it is to end, and returns whether it is
 * and nothing runs. */
bool watchdog_ends_here(void);

/* What has ended the run: "SIGINT", "SIGTERM", "--time-limit", "--mem-limit", "--sim-limit"; NULL: nothing has. And the
 * exit status that follows. */
const char *watchdog_ended(void);
int watchdog_status(void);

/* Prints where the kernels are that have not ended. */
void watchdog_print_kernels(void);

/* Of a sweep: what messages say first, such as "point 3 of 20: ". */
extern const char *watchdog_prefix;

#endif
