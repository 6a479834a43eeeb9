/* roofline.h: the two bounds of a launch, of its problem and of its algorithm, for the summary and the result. */
#ifndef KB_ROOFLINE_H
#define KB_ROOFLINE_H

#include <stdio.h>

#include "common/json.h"

/* Prints two lines for each launch that has bounds. */
void rooflines_print(FILE *out);

/* Writes them into an open object, as "bounds"; nothing if there are none. */
void rooflines_write(struct json *json);

/* Forgets them (host_reset). */
void rooflines_reset(void);

#endif
