/* process.h: runs other programs, without a shell. */
#ifndef GEN_PROCESS_H
#define GEN_PROCESS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "../words.h"

struct process {
    struct words words;                                 /* program and arguments */
    const char *what;                                   /* for -v */
    const char *needs;                                  /* what to do if there is no such program; NULL: it is a compiler */
    const char *input;                                  /* its standard input; NULL: nothing */
    double ms;                                          /* run time */
    int status;                                         /* of waitpid, once it has ended */
    pid_t pid;
    int (*run)(struct process *job);                        /* runs in a child process instead of a program; returns the exit status */
    void (*ended)(struct process *job);                     /* called once it has ended; may be NULL */
    size_t number;                                      /* for the use of `run` and `ended` */
    int errors;                                         /* with `run`: a file with its standard error, which `ended` closes */
};

/* Runs processes, at most `most` at a time, all of them even if some fail. Dies if a program cannot be started. Returns
 * the first in the list that failed, or NULL. */
struct process *processes_run(struct process *jobs, size_t count, size_t most);

/* Ends the running processes, with all that they have started, and waits for them. Async-signal-safe. */
void processes_stop(void);

/* Blocks all signals while the handler would find half a change. Returns the mask to restore. */
sigset_t signals_hold(void);

/* Runs one process and returns its standard output; its status is in the struct. */
const char *process_output(struct process *job, size_t *length);

/* Runs one process and returns its standard error. */
const char *process_errors(struct process *job, size_t *length);

#endif
