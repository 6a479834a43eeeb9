/* causes.h: the observer that finds, for each happening, the item whose end made it due.
 *
 * Who runs now has a cause: an event that fires has that with which it was made due; a start in Issue has the condition
 * that became true last; a host program has what woke it. What it makes due follows that cause: over the reservations
 * that were made for it, each of which begins when it was asked for, after the cause of whoever asked, or when the one
 * that held the resource ends. */
#ifndef KB_CAUSES_H
#define KB_CAUSES_H

#include <stddef.h>

#include "items.h"
#include "sim/observer.h"

/* What ended the run: the cause of the last host program that acted in its last instant, or else of the last event that
 * fired. */
struct ref causes_of_end(void);

/* The run ends now, as its host says, whatever still happens; later calls replace earlier ones. */
void causes_mark_end(void);

/* What ended each launch for the host, in that order. */
struct launch_end {
    const struct launch *launch;
    struct ref ref;
};

const struct launch_end *causes_of_launches(size_t *count);

void causes_begin(void);
void causes_end(void);

extern struct observer why_observer;

#endif
