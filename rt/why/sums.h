/* sums.h: the way back from an item as sums: what each reason has of it. */
#ifndef KB_SUMS_H
#define KB_SUMS_H

#include "items.h"

/* Adds to the time of each reason what it has of the way back from the end of an item to from_ps. */
void sums_add(struct ref end, uint64_t from_ps, uint64_t reason_ps[REASONS]);

/* Before a run, and after a collection. */
void sums_begin(void);
void sums_collected(void);

#endif
