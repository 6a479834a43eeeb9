/* glob.h: patterns of names. */
#ifndef KB_GLOB_H
#define KB_GLOB_H

#include <stdbool.h>

/* Returns whether a text matches: `*` is any run of characters, `?` any single one. Takes time in the product of the
 * lengths. */
bool glob_matches(const char *glob, const char *text);

#endif
