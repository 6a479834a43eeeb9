/* web_run.h: the runs of a session of `SIM web`. Each run is a separate process, one at a time; its result stays in
 * memory. All functions are for one thread at a time. */
#ifndef KB_WEB_RUN_H
#define KB_WEB_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A run that has ended. */
struct web_run {
    uint32_t number;                                    /* from 1 on */
    char *result;                                       /* as a page has it (page.h); NULL: it left none */
    char *said;                                         /* the end of what it wrote to standard error */
};

/* Prepares the folder of results, which is removed when the program ends. */
void web_runs_begin(void);

/* Starts `SIM run ARGUMENTS`. Returns its number; 0: another one is under way. */
uint32_t web_run_start(char *const *arguments, size_t count);

/* Takes what the run has written, and its result if it has ended. Call it a few times a second. */
void web_run_attend(void);

/* The number of the run that is under way; 0: none. And the last line that it wrote. */
uint32_t web_run_current(void);
const char *web_run_line(void);

/* Asks the run that is under way to end: it reports what it has. */
void web_run_stop(void);

/* Returns the run of this number, which has ended. Returns NULL if no run has the number, or if its result was dropped to
 * make room for later ones. */
const struct web_run *web_run_find(uint32_t number);

/* Ends the run that is under way at once. */
void web_runs_end(void);

#endif
