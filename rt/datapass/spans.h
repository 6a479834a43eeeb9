/* spans.h: the highest level of the operations that read or wrote a byte, for all bytes of one memory.
 *
 * A tree over addresses: each node parts its range in 64, down to pages, each of which is a sorted list of the ranges
 * that differ. Whole nodes are marked as wholes, so that time and room grow with the number of ranges that were marked,
 * not with their lengths. */
#ifndef KB_SPANS_H
#define KB_SPANS_H

#include <stdbool.h>
#include <stdint.h>

/* Levels are from 1 on; 0: nobody. What is written counts as accessed, too. */
struct levels {
    uint16_t written, accessed;
};

/* The highest ones of bytes [first, end) of a memory. */
struct levels spans_ask(uint32_t memory, uint64_t first, uint64_t end);

/* Raises those of bytes [first, end) of a memory to at least these. */
void spans_raise(uint32_t memory, uint64_t first, uint64_t end, struct levels levels);

/* Forgets all of it. */
void spans_clear(void);

/* The room that all of it takes. */
uint64_t spans_bytes(void);

#endif
