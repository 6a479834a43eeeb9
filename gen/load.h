/* load.h: a topology's file, the files it includes and the --set options, merged into one tree. */
#ifndef GEN_LOAD_H
#define GEN_LOAD_H

#include <stdbool.h>

#include "../rt/common/node.h"

/* Returns the mapping at the top with all layers merged; reports errors. *whole becomes false if an error left
 * something out. A file that cannot be read is a usage_error. */
struct node *load_topology(const char *path, char *const *sets, size_t set_count, bool *whole);

#endif
