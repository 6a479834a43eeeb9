/* stopwatch.h: on what the host spends its time, by laps: each instant of it belongs to the lap that was entered last.
 *
 * Phases are laps; kinds of events are more of them, numbered from PHASES on by whoever tells them apart (profile.c).
 * While it is off, entering a phase is a test in place. */
#ifndef KB_STOPWATCH_H
#define KB_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>

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

/* The host's clock, in ticks: of the processor's counter where there is one, for it costs least. */
uint64_t stopwatch_ticks(void);

/* Begins with PHASE_rest. */
void stopwatch_start(void);

/* Enters a lap, and returns the one before; stopwatch_back goes back to that one without counting. */
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
