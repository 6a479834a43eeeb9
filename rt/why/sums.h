/* sums.h: the way back from an item as sums: what each reason has of it. */
#ifndef KB_SUMS_H
#define KB_SUMS_H

#include "items.h"

/* Adds to the time of each reason what it has of the way back from the end of an item to from_ps. */
void sums_add(struct ref end, uint64_t from_ps, uint64_t reason_ps[REASONS]);

/* The same at the next sums_settle, or sooner: to reasons_of(number). */
typedef uint64_t *sums_reasons(uint32_t number);

void sums_ask(struct ref end, uint64_t from_ps, sums_reasons *reasons_of, uint32_t number);

/* Does what has been asked. Before a collection, and before somebody reads the sums. */
void sums_settle(void);

/* Before a run, and after a collection. */
void sums_begin(void);
void sums_collected(void);

#endif
