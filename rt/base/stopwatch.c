/* stopwatch.c: laps of the host's time. */
#include "stopwatch.h"

bool stopwatch_on;
struct lap laps[LAPS];

static unsigned current;
static uint64_t since;                                  /* in ticks */

uint64_t stopwatch_ticks(void)
{
#if defined __x86_64__
    return __builtin_ia32_rdtsc();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
#endif
}

void stopwatch_start(void)
{
    stopwatch_on = true;
    current = PHASE_rest;
    since = stopwatch_ticks();
}

void stopwatch_back(unsigned lap)
{
    uint64_t now = stopwatch_ticks();
    laps[current].ticks += now - since;
    since = now;
    current = lap;
}

unsigned stopwatch_enter(unsigned lap)
{
    unsigned before = current;
    stopwatch_back(lap);
    laps[lap].count++;
    return before;
}
