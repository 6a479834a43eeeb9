/* process.h: runs other programs, without a shell. */
#ifndef GEN_PROCESS_H
#define GEN_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "../words.h"

struct process {
    struct words words;                                 /* program and arguments */
    const char *what;                                   /* for -v */
    const char *input;                                  /* its standard input; NULL: nothing */
    double ms;                                          /* how long it took */
    int status;                                         /* of waitpid, when it has ended */
    pid_t pid;
    int (*run)(struct process *job);                        /* instead of a program: returns the exit status */
    void (*ended)(struct process *job);                     /* called when it has ended; NULL: nothing */
    size_t number;                                      /* for these two, as they like it */
    int errors;                                         /* with `run`: a file, closed by `ended`, of what it says */
};

/* Runs jobs, up to `most` at a time, all of them whether others fail or not. Dies when a program cannot be started.
 * Returns the first in the list that failed, or NULL. */
struct process *processes_run(struct process *jobs, size_t count, size_t most);

/* Ends what runs, and waits for it. A signal handler may call it. */
void processes_stop(void);

/* Runs a job alone and returns what it writes to standard output; the status is in the job. */
const char *process_output(struct process *job, size_t *length);

/* The same of what it writes to standard error. */
const char *process_errors(struct process *job, size_t *length);

#endif
