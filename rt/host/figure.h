/* figure.h: figures that a bench has of its own. */
#ifndef KB_FIGURE_H
#define KB_FIGURE_H

#include <stdio.h>

#include "base/json.h"

/* A line each; nothing if there are none. */
void figures_print(FILE *out);

/* "figures" of an open object, if there are any. */
void figures_write(struct json *json);

/* There are none. */
void figures_reset(void);

#endif
