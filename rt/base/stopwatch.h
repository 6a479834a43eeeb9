/* stopwatch.h: the host's own time. Nothing simulated depends on it.
 *
 * The stopwatch sums it up by laps: each instant belongs to the lap that was entered last. Phases are laps; kinds of
 * events are more of them, which profile.c numbers from PHASES on. While the stopwatch is off, entering a phase costs an
 * inlined test. */
#ifndef KB_STOPWATCH_H
#define KB_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum phase {
#define PHASE(name, what) PHASE_##name,
#include "phases.def"
#undef PHASE
    PHASES
};

enum { LAPS = PHASES + 64 };

extern bool stopwatch_on;
extern struct lap {
    uint64_t count, ticks;
} laps[LAPS];

/* Ticks of the processor's counter where there is one, since it costs least; otherwise ns. */
uint64_t stopwatch_ticks(void);

/* Starts in PHASE_rest. */
void stopwatch_start(void);

/* Enters a lap, and returns the one before, to which stopwatch_back goes back without counting it. */
unsigned stopwatch_enter(unsigned lap);
void stopwatch_back(unsigned lap);

static inline unsigned phase_enter(enum phase phase)
{
    return __builtin_expect(stopwatch_on, 0) ? stopwatch_enter(phase) : 0;
}

static inline void phase_leave(unsigned before)
{
    if (__builtin_expect(stopwatch_on, 0))
        stopwatch_back(before);
}

#endif
