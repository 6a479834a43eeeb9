/* open_rows.h: whether the requests of a period find the same rows of HBM open in the periods to come.
 *
 * Addresses move on from period to period, so open rows are the one part of the state that does not repeat by itself. The
 * requests of one period are recorded; then they are replayed on the open rows alone, in the same order, each with the
 * address that its tile has some periods later. */
#ifndef KB_OPEN_ROWS_H
#define KB_OPEN_ROWS_H

#include <stdint.h>

/* Watches while requests are recorded. */
extern struct observer open_rows_observer;

/* Records the requests from now on, in place of those recorded before. */
void open_rows_record(void);

/* Returns how many periods like the recorded one are sure to follow it, at most `most`, and leaves the rows open as they
 * are after these. In each period PE number p feeds steps[p] more tiles. Up to `most` periods later, the tiles must have
 * equal sizes and lie within their memories. */
uint64_t open_rows_replay(const uint64_t *steps, uint64_t most);

#endif
