/* columns.h: means of an integer over equal spans of time, its columns. There are at most COLUMNS_MOST: a change that
 * is later than the last one makes all of them wider. */
#ifndef KB_COLUMNS_H
#define KB_COLUMNS_H

#include <stdint.h>

enum { COLUMNS_MOST = 1 << 14, COLUMN_BITS = 6 };       /* a column has 2^6 ps first, later another power of two */

struct column {
    int64_t delta;                                      /* of the changes in it, */
    __int128 area;                                      /* and each one times what is left of the column then */
} __attribute__((packed, aligned(8)));

struct columns {
    uint64_t from_ps;
    unsigned bits;                                      /* of their width */
    uint64_t used;                                      /* columns behind these have had no change yet */
    struct column *at;
};

/* The integer is 0 at from_ps. */
struct columns columns_make(uint64_t from_ps);

/* Adds to the integer from begin_ps, which is from_ps or later, to end_ps. */
void columns_add(struct columns *columns, uint64_t begin_ps, uint64_t end_ps, int64_t amount);

/* Tells of the mean of each column that begins at last_ps at the latest, rounded up, if it is another one than that before. */
void columns_tell(const struct columns *columns, uint64_t last_ps, uint32_t number,
                  void (*tell)(uint32_t number, uint64_t t_ps, int64_t mean));

#endif
