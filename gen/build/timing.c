/* timing.c: how long each step takes, for --verbose. */
#include "timing.h"

#include <stdio.h>
#include <time.h>

static struct {
    bool wanted;
    double since_ms;
} timings;

double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void timing_begin(bool wanted)
{
    timings.wanted = wanted;
    timings.since_ms = now_ms();
}

void timing(const char *what, double ms)
{
    if (timings.wanted)
        fprintf(stderr, "%8.1f ms  %s\n", ms, what);
}

void timing_pass(const char *what)
{
    double end_ms = now_ms();
    timing(what, end_ms - timings.since_ms);
    timings.since_ms = end_ms;
}
