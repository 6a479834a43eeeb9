/* progress.h: what a run tells of itself while it runs, on standard error: a line on a terminal that is rewritten, after
 * the first two seconds of a phase; without a terminal a line every ten seconds, if asked for. */
#ifndef KB_PROGRESS_H
#define KB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Lines also without a terminal. */
extern bool progress_lines;

/* Called by progress(), which long work of the host calls again and again: a place where the run can be ended. */
extern void (*progress_attend)(void);

/* Work of a phase: shows "WHAT 42 %, about 3 s left". From one thread. */
void progress(const char *what, uint64_t done, uint64_t all);

/* The same in two steps, for other texts: whether it is time for one, and the text. */
bool progress_is_due(void);
void progress_show(const char *text);

/* The same for set-up, which does not come by here: a signal handler calls progress_setup again and again, with the seconds
 * that the bench's program has run. progress_part says how far a part of it is, for that line; a NULL name ends the part. */
void progress_setup(const char *prefix, double seconds);
void progress_part(const char *name, uint64_t done, uint64_t all);

/* The phase is over: clears the line, if there is one. */
void progress_end(void);

/* Clears the line; the next one is shown as before. For other text on standard error. */
void progress_clear(void);

#endif
