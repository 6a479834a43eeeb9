/* state.h: the state of PEs and of the parts that they use, for fast-forward: fingerprint and comparison, copy to other
 * PEs, shift in time, list of counters. What is done with each field follows from machine/state.def.
 *
 * These functions are for PEs on which nothing is under way but tiles of one composite with physical addresses. */
#ifndef KB_FASTFORWARD_STATE_H
#define KB_FASTFORWARD_STATE_H

#include "common/array.h"
#include "machine/pe.h"

/* ---- fingerprints: a state as words, in which times are relative to now, and numbers of tiles, services and messages
 * to the newest. A fingerprint is written once; then other states are compared with it, each word as it is made. */

struct fingerprint {
    struct ARRAY(uint64_t) words;
    bool compares, differs;
    size_t at;                                          /* words compared */
    size_t events;                                      /* that wait in the state written or compared last */
    const uint32_t *labels;                             /* by rank: what is written for a node; NULL: its rank */
    const struct pe *pe;                                /* for state.c: the PE, and the newest number of the */
    uint64_t newest;                                    /* field kind NUMBER, as of the words that follow */
};

/* Begins to write, or to compare with what was written last. */
void fingerprint_write(struct fingerprint *print);
void fingerprint_compare(struct fingerprint *print);

void fingerprint_add(struct fingerprint *print, uint64_t word);

/* Whether the state could be written, or was equal. */
static inline bool fingerprint_holds(const struct fingerprint *print)
{
    return !print->differs && (!print->compares || print->at == print->words.count);
}

/* PEs, and the nodes, by rank, and the links, by number, that their composites use. */
struct group {
    struct pe *const *pe;
    const uint32_t *node, *link;
    uint32_t pes, nodes, links;
};

/* Adds the state of a group. print->labels must be set. */
void fingerprint_group(struct fingerprint *print, const struct group *group);

/* Adds the state of the whole machine, in which these PEs feed composites. The state can neither be written nor be equal
 * to another one if events wait that are not of their tiles or of kernels. */
void fingerprint_machine(struct fingerprint *print, struct pe *const *pes, uint32_t count);

/* ---- copies, from one group to another, isomorphic one (symmetry.c) */

struct group_pair {
    const struct group *from, *to;
    const uint32_t *labels;                             /* of nodes, by rank: their position in either group */
};

/* Frees the tiles that are under way on a PE. No events of them wait any more, and their busy time is counted. */
void state_drop_tiles(struct pe *pe);

/* Puts the PE at a position in `to`, which has no tiles, into the state of the PE at that position in `from`. The latter
 * feeds `composite`; NULL: it feeds none, and the composites of both PEs are complete. */
void state_copy_pe(const struct group_pair *pair, uint32_t position, const struct command *composite);

/* The same for a node with its memory, and for a link. */
void state_copy_node(const struct group_pair *pair, uint32_t position);
void state_copy_link(const struct group_pair *pair, uint32_t position);

/* ---- shifts */

/* The lowest number of a tile of the PE's composite that is under way; without one, of the next tile to be fed. */
uint64_t state_oldest_tile(const struct pe *pe);

/* Moves the machine on by d_ps, in which PE number i of `pes` feeds tiles[i] more tiles, to the same state. */
void state_shift(struct pe *const *pes, const uint64_t *tiles, uint32_t count, uint64_t d_ps);

/* ---- counters */

/* Adds the time for which engines of a PE have been busy to their counters, up to now. */
void state_count_busy(struct pe *pe);

/* Lists the counters of a group, in the same order for isomorphic groups. Returns how many there are; `counters` may be
 * NULL. */
size_t state_group_counters(const struct group *group, uint64_t **counters);

/* The same for the whole machine, except statistics (machine/stats.h). */
size_t state_machine_counters(uint64_t **counters);

#endif
