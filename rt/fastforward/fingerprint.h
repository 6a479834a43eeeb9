/* fingerprint.h: how PEs stand, written down as numbers or compared with what was written.
 *
 * Times count from now on, tiles back from the next one to be fed. All that decides what happens next is written; what
 * is left out is open rows of HBM, and what only counts. */
#ifndef KB_STEADY_PRINT_H
#define KB_STEADY_PRINT_H

#include "machine/pe.h"

struct print {
    uint64_t *words;
    size_t at, count, room;
    bool compares, differs;                             /* against the first `count` words */
    size_t events;                                      /* that wait for what was printed */
    const uint32_t *labels;                             /* of nodes, by rank: they stand for nodes and commands are
                                                         * told by what they ask; or NULL */
};

void put(struct print *print, uint64_t word);

/* When a channel is free again: it is, or it will be. */
void put_free(struct print *print, uint64_t free_ps);

/* A PE; it differs from any other if not just tiles of one composite, at physical addresses, are under way on it. */
void put_pe(struct print *print, const struct pe *pe);

/* Calls act(token, arg) for each token of a PE but those of simple commands. */
void each_token(const struct pe *pe, void (*act)(struct token *, void *), void *arg);

#endif
