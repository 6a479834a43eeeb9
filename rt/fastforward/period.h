/* period.h: finds periods of the steady state, and skips them.
 *
 * When the whole machine is at the end of an instant in the same state as at the end of an earlier one, apart from the
 * time and from how far its composites are, what lies in between will happen again, until something breaks the period: a
 * tile of another size, a row of HBM that is open when it was closed, a timeout, the end of a composite. So time moves on
 * by as many whole periods as are sure, and every count grows by as much as in each of them. */
#ifndef KB_PERIOD_H
#define KB_PERIOD_H

#include "machine/pe.h"

/* At the start of each run. */
void period_init(void);

/* Forgets the reference state: something other than tiles has happened. */
void period_forget(void);

/* At the end of an instant: compares the state with the reference state, and skips periods if they are equal. pes are
 * those that are simulated and feed composites, by rank; the same ones until period_forget. */
void period_compare(struct pe *const *pes, uint32_t count);

/* Stage services in skipped periods. */
uint64_t period_services(void);

void period_reset(void);

#endif
