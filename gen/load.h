/* load.h: a topology's file, the files it includes and the --set options -> one tree of nodes. */
#ifndef GEN_LOAD_H
#define GEN_LOAD_H

#include <stdbool.h>

#include "../rt/common/node.h"

/* The mapping at the top, with all keys laid over one another; errors are reported. *whole: no error has left anything
 * out. A file that cannot be read is a usage_error. */
struct node *load_topology(const char *path, char *const *sets, size_t set_count, bool *whole);

#endif
