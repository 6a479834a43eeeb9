/* square.c: y = x * x, the kernel of the device: each PE works on its rows, at virtual addresses. */
#include "square.h"

KB_KERNEL(square, struct square_args)
{
    struct tl_shard x = tl_load(tl, tl_virtual(tl_my_shard(tl, arg->x), X_VA));
    tl_mul(tl, x, x, x);
    tl_store(tl, tl_virtual(tl_my_shard(tl, arg->y), Y_VA), x);
}
