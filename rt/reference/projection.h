/* projection.h: Freivalds' check of a matrix product: C r = A (B r) for random vectors r, in f64.
 *
 * The columns of C are taken in blocks, so that the rounding errors of a block do not hide an error in it. With normal r,
 * d r is normal with the deviation |d|, where d is the difference of a block of a row. If it is right, |d| is within the
 * norm of its bounds, and |d r| within six times that; if |d r| is more, the elements are compared one by one. A block
 * that is off by |d| passes one vector with a probability of at most sqrt(2 / pi) times the limit over |d|. */
#ifndef KB_PROJECTION_H
#define KB_PROJECTION_H

#include "product.h"

enum { PROJECTION_COLUMNS = 64, PROJECTION_VECTORS = 3 };

struct projection;

/* NULL unless the reference is a large product of floats, without relu, whose operands are exact. */
struct projection *projection_new(const struct reference *ref, enum dtype dtype);
void projection_free(struct projection *projection);

/* What a panel that passes shows: sums of squares; and the limit of each block of each row, over the root of its
 * columns, as a callback. */
struct projected {
    double error_squares, squares;
};

/* Whether a panel passes: rows x columns elements of C as they are. Several threads may call. */
bool projection_passes(const struct projection *projection, struct row_panel panel, const double *got,
                       struct projected *found, void (*limit)(double limit, uint64_t columns, void *arg), void *arg);

#endif
