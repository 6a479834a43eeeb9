/* toolchain.h: the identity of the compiler, and the libraries that it links. */
#ifndef GEN_TOOLCHAIN_H
#define GEN_TOOLCHAIN_H

#include <stdbool.h>

#include "../words.h"

struct toolchain {
    const char *identity;                               /* a hash: equal for equal compilers, wherever they are installed */
    struct words libraries;                             /* linker arguments of a simulator */
    struct words archives;                              /* those of an image, which loads no library but the C library */
    const char *name, *memo;                            /* name and content of the cache entry; memo NULL: it is there already */
};

/* Identifies a compiler, given with its arguments: from the cache if its answers still hold, else, if `ask`, by asking
 * it. Returns whether it is identified. Dies if the program is no compiler. */
bool toolchain_find(struct toolchain *tools, const struct words *compiler, bool ask);

#endif
