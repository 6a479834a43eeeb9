/* clocks.h: vector clocks: how far the work of each PE is known to somebody. Shared by those that know the same. */
#ifndef KB_CLOCKS_H
#define KB_CLOCKS_H

#include <stdint.h>

struct clocks {
    uint32_t holders;
    struct clocks *next;                                /* of those that are free */
    uint32_t at[];                                      /* by PE over the machine; 0: nothing is known */
};

/* A set of which nothing is known, for one holder. */
struct clocks *clocks_new(void);

/* One holder more, which it gives; or less. NULL: nothing. */
struct clocks *clocks_hold(struct clocks *clocks);
void clocks_drop(struct clocks *clocks);

/* What the holder knows, and what the other one knows; NULL: nothing. */
void clocks_learn(struct clocks **own, const struct clocks *other);

/* The same of one PE. */
void clocks_learn_of(struct clocks **own, uint32_t pe, uint32_t at);

/* There are none. */
void clocks_reset(void);

#endif
