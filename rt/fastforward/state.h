/* state.h: the state of PEs and of what they use, as fast-forward handles it: fingerprint and comparison, copy to other
 * PEs, shift in time, growth of what is only counted. What is done with each field follows from machine/state.def.
 *
 * Only PEs on which nothing but tiles of one composite is under way, at physical addresses, have a state here. */
#ifndef KB_FASTFORWARD_STATE_H
#define KB_FASTFORWARD_STATE_H

#include "machine/pe.h"

/* ---- fingerprints: states as words, relative to now and to the newest tile, service and message */

/* Writes words, or compares words with those that another fingerprint wrote. */
struct fingerprint {
    uint64_t *words;                                    /* of malloc */
    size_t at, count, capacity;                         /* count: of words to compare with */
    bool compares, differs;
    size_t events;                                      /* that the words stand for */
    const uint32_t *labels;                             /* of nodes, by rank, in the place of ranks: SYMMETRY; or NULL */
    const struct pe *pe;                                /* for state.c: the PE, */
    uint64_t newest;                                    /* and the newest NUMBER, in relation to which words are written */
};

/* Begins to write, or to compare with what was written last. */
void fingerprint_write(struct fingerprint *print);
void fingerprint_compare(struct fingerprint *print);

void fingerprint_add(struct fingerprint *print, uint64_t word);

/* Whether all words were written or were equal. */
static inline bool fingerprint_holds(const struct fingerprint *print)
{
    return !print->differs && (!print->compares || print->at == print->count);
}

/* PEs with the nodes, by rank, and the links, by number, that their composites use. */
struct group {
    struct pe *const *pe;
    const uint32_t *node, *link;
    uint32_t pes, nodes, links;
};

/* Adds the state of a group; print->labels are set. */
void fingerprint_group(struct fingerprint *print, const struct group *group);

/* Adds the state of these PEs, of all that PEs share, and of all TCMs. It differs from any other state if events of
 * something else wait. */
void fingerprint_machine(struct fingerprint *print, struct pe *const *pes, uint32_t count);

/* ---- copies */

/* From one group to another of like build; what corresponds has the same label, and so the same position. */
struct copying {
    const struct group *from, *to;
    const uint32_t *labels;
};

/* Frees the tiles that are under way on a PE, whose events wait no longer and whose time is counted. */
void state_drop_tiles(struct pe *pe);

/* Puts the PE at a position in `to` into the state of the one in `from`, and a node or a link likewise. The PE feeds the
 * composite that corresponds to `composite`; NULL: all composites of both PEs are complete. */
void state_copy_pe(const struct copying *copying, uint32_t position, const struct command *composite);
void state_copy_node(const struct copying *copying, uint32_t position);
void state_copy_link(const struct copying *copying, uint32_t position);

/* ---- shifts */

/* The lowest tile of a PE's composite that is under way; the next one to be fed, if none is. */
uint64_t state_oldest_tile(const struct pe *pe);

/* The machine goes on by d_ps, in which PE number i of `pes` feeds tiles[i] more tiles, to the same state. */
void state_shift(struct pe *const *pes, const uint64_t *tiles, uint32_t count, uint64_t d_ps);

/* ---- what is only counted */

/* Counts the time that engines of a PE are busy up to now: since then there is nothing. */
void state_settle(struct pe *pe);

/* Lists the fields of a group that are COUNTED, in an order that is the same for groups of the same build. Returns how
 * many there are; fields may be NULL. */
size_t state_group_counts(const struct group *group, uint64_t **fields);

/* Lists those of the whole machine, statistics (stats.h) apart. */
size_t state_machine_counts(uint64_t **fields);

#endif
