/* open_rows.h: whether a period's requests find the same rows of HBM open as they did before.
 *
 * Addresses go on from period to period, so the rows are what a period cannot take for granted: each request is asked
 * for again, in the same order, with the address of the tile that many periods on. */
#ifndef KB_STEADY_ROWS_H
#define KB_STEADY_ROWS_H

#include "machine/dma.h"

/* Watches while requests are noted. */
extern struct observer open_rows_observer;

/* Notes the requests from now on. */
void rows_begin(void);

/* How many periods like the one noted come at least, up to `most`: each takes PE number p on by steps[p] tiles. Leaves
 * the rows open as they are after these. The tiles are of equal size, and lie within their memories. */
uint64_t rows_repeat(const uint64_t *steps, uint64_t most);

#endif
