/* glob.h: patterns of names. */
#ifndef KB_GLOB_H
#define KB_GLOB_H

#include <stdbool.h>

/* `*` stands for any run of characters, `?` for any one. Takes at most length times length steps. */
bool glob_matches(const char *glob, const char *text);

#endif
