/* column_numbers.h: a row of the numbers of its columns, which a PE makes for itself. */
#ifndef COLUMN_NUMBERS_H
#define COLUMN_NUMBERS_H

#include <kb/arith.h>
#include <kb/tl.h>

/* Begins to set a row of 1 x n elements of the TCM to 0, 1, 2 and so on, by doubling: those from m on are those from 0 on, plus
 * m. The first one is 0 because nothing is below -inf, which a comparison says in `none`, of 1 x 1 u8. The dtype is a float that
 * holds all whole numbers below n. Returns the last command, for which those that use the row or `none` have to wait. */
static inline tl_handle column_numbers(struct tl *tl, struct tl_shard row, struct tl_shard none)
{
    struct tl_shard zero = tl_part(tl, row, 1, 0, 1);
    tl_handle done = tl_cmp_async(tl, none, zero, TL_LT, tl_number(-__builtin_inf()));
    tl_after(tl, done);
    done = tl_cast_async(tl, zero, none);
    for (uint64_t known = 1, n = row.shape[1]; known < n; known *= 2) {
        uint64_t more = kb_min(known, n - known);
        tl_after(tl, done);
        done = tl_add_async(tl, tl_part(tl, row, 1, known, more), tl_part(tl, row, 1, 0, more), tl_number((double)known));
    }
    return done;
}

#endif
