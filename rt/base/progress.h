/* progress.h: how far long work of the host is: on a terminal, from its second second on. */
#ifndef KB_PROGRESS_H
#define KB_PROGRESS_H

#include <stdint.h>

/* Shows "WHAT 42 %", now and then; call it as often as you like, from one thread. */
void progress(const char *what, uint64_t done, uint64_t all);

/* The work is done: takes the line away, if there is one. */
void progress_end(void);

#endif
