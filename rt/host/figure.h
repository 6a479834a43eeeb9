/* figure.h: figures: the measurements that a bench reports with kb_figure, for the summary and the result. */
#ifndef KB_FIGURE_H
#define KB_FIGURE_H

#include <stdio.h>

#include "common/json.h"

/* Prints a line for each. */
void figures_print(FILE *out);

/* Writes them into an open object, as "figures"; nothing if there are none. */
void figures_write(struct json *json);

/* Forgets them (host_reset). */
void figures_reset(void);

#endif
