/* compact.h: many pieces become few; and the lists that some become. */
#ifndef KB_COMPACT_H
#define KB_COMPACT_H

#include <stdbool.h>
#include <stdint.h>

#include "piece.h"

/* Makes fewer pieces of many. Those of one length, or a few times it, that lie directly one behind the other and are from one
 * source, wherever in it each one is, become lists: rows of a table. A few are left as they are. If
 * joins_results, patches of results become results, and all results that lie side by side one, whichever call has made them. */
void pieces_compact(struct interval_map *map, bool joins_results);

/* ---- lists */

void listed_hold(struct listed *listed);
void listed_drop(struct listed *listed);

/* Reads bytes from an offset on. */
void listed_read(const struct listed *listed, uint64_t offset, uint64_t bytes, uint8_t *to);

/* Frees what lists have left; no piece names one. */
void lists_reset(void);

#endif
