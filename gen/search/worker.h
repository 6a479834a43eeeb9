/* worker.h: simulators that run point after point, each a process of its own.
 *
 * A worker runs one bench on one structure. It is told several lines ahead, so that it never waits for the next one. It
 * ends with kbgen, whatever ends kbgen. */
#ifndef GEN_SEARCH_WORKER_H
#define GEN_SEARCH_WORKER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The metrics of a run, in the order of rt/report/metrics.def. */
enum metric {
#define METRIC(name, unit, what, expression) METRIC_##name,
#include "../../rt/report/metrics.def"
#undef METRIC
    METRICS
};

extern const char *const metric_names[METRICS];

/* A run of one point. */
struct run {
    const char *line;                                   /* for --points, without a newline; of the caller */
    void *owner;                                        /* of the caller */
    unsigned crashes;                                   /* simulators that have ended instead of answering it */
    struct run *next;                                   /* in the list of a worker, or of the caller */
    /* Once it is answered: */
    char *status;                                       /* a word of status.def; malloc, as `why` */
    char *why;                                          /* NULL if it is "ok" */
    char *used;                                         /* "tile_m=64,tile_n=32,": what the bench has used instead of the
                                                           parameters given; NULL: these themselves; malloc */
    int exit;                                           /* status of the run; -1: the simulator did not say */
    int64_t metrics[METRICS];                           /* of one that is "ok" */
    double max_err;                                     /* the largest error of verified data; NAN: none were */
    uint64_t host_us;
};

struct run_list {
    struct run *first, **end;
    size_t count;
};

void run_list_add(struct run_list *list, struct run *run);
void run_list_add_first(struct run_list *list, struct run *run);
struct run *run_list_take(struct run_list *list);

struct worker;

/* Starts a simulator with these words, the first of which is its program. */
struct worker *worker_start(char *const *words);

/* Gives it a run. */
void worker_give(struct worker *worker, struct run *run);

/* How many runs it has, and how many more it should have not to wait. */
size_t worker_load(const struct worker *worker);
size_t worker_room(const struct worker *worker);

/* What to poll for: three descriptors. */
enum { WORKER_POLLS = 3 };
void worker_polls(const struct worker *worker, struct pollfd *polls);

/* Reads and writes what poll says is possible. Moves the runs that are answered to `answered`, in order. Returns false
 * if the process has ended: then all its runs are there, answered or not (status NULL), and worker_end is due. */
bool worker_work(struct worker *worker, const struct pollfd *polls, struct run_list *answered);

/* Whether its first run has taken longer than `seconds`. */
bool worker_is_late(const struct worker *worker, double seconds);

/* Kills the process. worker_work then gives its runs back. */
void worker_kill(struct worker *worker);

/* Ends a worker without runs, or one that has been killed: waits for its process. */
void worker_end(struct worker *worker);

/* What is known of the end of the process: "ended by signal 11: last line on standard error", in the arena. After
 * worker_work has returned false. */
const char *worker_epitaph(struct worker *worker);

/* Forks a child that ends with this process; its standard error goes to a new file in memory. As fork(). */
pid_t child_fork(int *errors);

/* What such a child has written, without the last newline, and closes the file; a text as the reason of a row has it. Both
 * are in the arena. */
const char *child_said(int errors);
const char *on_one_line(const char *text);

#endif
