/* timing.h: what took how long, for --verbose. */
#ifndef GEN_TIMING_H
#define GEN_TIMING_H

#include <stdbool.h>

double now_ms(void);

/* From here on timings are said, on standard error, if wanted. */
void timing_begin(bool wanted);

/* Says how long something took, in its own process maybe. */
void timing(const char *what, double ms);

/* Says how long a pass took, which ends now and began with the end of the one before it. */
void timing_pass(const char *what);

#endif
