/* square.h: what the driver and its kernel agree on. */
#ifndef SQUARE_H
#define SQUARE_H

#include <kb/tl.h>

/* Where the driver maps each PE's rows of a tensor. */
#define X_VA UINT64_C(0x10000000)
#define Y_VA UINT64_C(0x20000000)

struct square_args {
    kb_tensor x, y;
};

#endif
