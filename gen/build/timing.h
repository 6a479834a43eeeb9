/* timing.h: how long each step takes, for --verbose. */
#ifndef GEN_TIMING_H
#define GEN_TIMING_H

#include <stdbool.h>

double now_ms(void);

/* Starts the clock; prints timings on standard error if `wanted`. */
void timing_begin(bool wanted);

/* Prints how long a step took that ran elsewhere, such as in a child process. */
void timing(const char *what, double ms);

/* Prints how long a pass took, from the end of the pass before it until now. */
void timing_pass(const char *what);

#endif
