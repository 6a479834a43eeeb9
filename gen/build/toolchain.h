/* toolchain.h: which compiler it is, and what it links with. */
#ifndef GEN_TOOLCHAIN_H
#define GEN_TOOLCHAIN_H

#include <stdbool.h>

#include "../words.h"

struct toolchain {
    const char *identity;                               /* tells two compilers apart, wherever they are installed */
    struct words libraries;                             /* arguments for the linker */
    const char *name, *memo;                            /* what to keep for the next call; memo NULL: it is kept */
};

/* Finds out about a compiler, given with its arguments; `ask`: by asking it, unless what it said is still true. Returns
 * whether it is known. Dies when it is asked and is no compiler. */
bool toolchain_find(struct toolchain *tools, const struct words *compiler, bool ask);

#endif
