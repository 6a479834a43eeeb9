/* places.h: arrays of numbers that are written once and seldom read: in memory, and long ones in a file once all together
 * take much. */
#ifndef KB_PLACES_H
#define KB_PLACES_H

#include <stdint.h>

/* The most numbers of an array; the fewest of one that may go to the file. */
enum { PLACES_MOST = 1 << 12, PLACES_LONG = 1 << 9 };

/* What arrays take in memory before long ones go to a file. UINT64_MAX: never. */
extern uint64_t places_memory_bytes;

struct places {
    uint32_t *at;                                       /* NULL: they are in the file */
    uint32_t count, slot;                               /* slot: which part of the file */
};

/* An array, whose numbers are to be set before places_keep. Dies if there is no memory. */
struct places places_new(uint64_t count);

/* Its numbers do not change from now on. If a file cannot be made or written, they stay in memory. */
void places_keep(struct places *places);

void places_drop(struct places *places);

/* `count` numbers from `first` on: where they are in memory, or `to` if they are read from the file. Dies if they cannot be. */
const uint32_t *places_read(const struct places *places, uint64_t first, uint64_t count, uint32_t *to);

/* Closes the file; all arrays have been dropped. */
void places_reset(void);

#endif
