/* moves.h: commands under way that are waited for together. */
#ifndef MOVES_H
#define MOVES_H

#include <kb/tl.h>

/* Beyond so many, the oldest one is waited for. */
enum { MOST_MOVES = 64 };

struct moves {
    tl_handle handle[MOST_MOVES];
    uint32_t begun, ended;
};

static inline void moves_wait(struct tl *tl, struct moves *moves)
{
    while (moves->ended < moves->begun)
        tl_wait(tl, moves->handle[moves->ended++ % MOST_MOVES]);
}

static inline void moves_add(struct tl *tl, struct moves *moves, tl_handle handle)
{
    if (moves->begun - moves->ended == MOST_MOVES)
        tl_wait(tl, moves->handle[moves->ended++ % MOST_MOVES]);
    moves->handle[moves->begun++ % MOST_MOVES] = handle;
}

#endif
