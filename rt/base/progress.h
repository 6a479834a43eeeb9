/* progress.h: a line on a terminal that tells how far long work of the host is, after its first second. */
#ifndef KB_PROGRESS_H
#define KB_PROGRESS_H

#include <stdint.h>

/* Shows "WHAT 42 %", at most ten times a second. From one thread. */
void progress(const char *what, uint64_t done, uint64_t all);

/* The work is done: clears the line, if there is one. */
void progress_end(void);

#endif
