/* state.h: how the machine stands at the end of an instant, apart from when that is and from how far the
 * composites are. */
#ifndef KB_STEADY_STATE_H
#define KB_STEADY_STATE_H

#include "machine/pe.h"

/* The state of some PEs that feed composites, and of all that PEs share, as numbers: times from now on, tiles back from
 * the next one to be fed. Open rows of HBM are left out. */
struct state {
    uint64_t *words;
    size_t count, room;
};

/* Takes the state of these PEs. False: it cannot come again, because something else is under way. */
bool state_take(struct state *state, struct pe *const *pes, uint32_t count);

/* Whether these PEs, and all that PEs share, stand as they did when the state was taken. */
bool state_is(const struct state *state, struct pe *const *pes, uint32_t count);

/* The lowest tile of a PE's composite that is under way; the next one to be fed, if none is. */
uint64_t state_oldest_tile(const struct pe *pe);

/* Goes on by d_ps, in which each PE feeds tiles[i] more tiles, to the same state. */
void state_move(struct pe *const *pes, const uint64_t *tiles, uint32_t count, uint64_t d_ps);

#endif
