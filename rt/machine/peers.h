/* peers.h: the PEs that a send goes to: one, or a list. Each list that a run names has a number. */
#ifndef KB_PEERS_H
#define KB_PEERS_H

#include "command.h"

struct pe_list {
    const uint32_t *pe;                                 /* numbers over the machine, upwards */
    uint32_t count;
};

/* Sets where a send goes to: to at least one PE, in any order. One that is named twice is kept. Sorts `pes`. */
void peers_set(struct request *ask, uint32_t *pes, uint32_t count);

/* The list of a number, which is not 0. */
struct pe_list peers_listed(uint32_t number);

/* The peers of a send or receive. */
static inline struct pe_list peers_of(const struct request *ask)
{
    return ask->peers ? peers_listed(ask->peers) : (struct pe_list){&ask->peer, 1};
}

/* Forgets all lists. */
void peers_reset(void);

#endif
