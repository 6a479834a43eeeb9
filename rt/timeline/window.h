/* window.h: which part of a run a timeline and waves show. */
#ifndef KB_WINDOW_H
#define KB_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_SLICES = 2000000 };

extern struct window {
    uint64_t from_ps, to_ps;                            /* both are in it; at most INT64_MAX, which the formats bound */
    const char *pes;                                    /* a pattern of names of PEs; NULL: all */
    uint64_t slices;                                    /* of a timeline, at most */
} window;

/* Whether something from begin_ps to end_ps is in the window, at least in part. */
static inline bool window_has(uint64_t begin_ps, uint64_t end_ps)
{
    return begin_ps <= window.to_ps && end_ps >= window.from_ps;
}

/* Whether a PE is shown. */
bool window_has_pe(uint32_t pe);

#endif
