/* selection.h: which constants to fit. */
#ifndef KB_SELECTION_H
#define KB_SELECTION_H

#include "fit.h"

/* Chooses constants, fits them, and names those that would explain the times as well. `now` are the events there. */
void select_constants(struct fit *fit, int64_t *now);

#endif
