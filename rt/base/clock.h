/* clock.h: the host's own time, for reports; nothing simulated depends on it. */
#ifndef KB_CLOCK_H
#define KB_CLOCK_H

#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
