/* product.h: references of gemms. A large one is deferred: kept as its operands. */
#ifndef KB_PRODUCT_H
#define KB_PRODUCT_H

#include "deferred.h"

/* The patches of images, one in each row of a matrix: those of the output's positions, row by row of the image. A position
 * outside the image is 0. */
struct patches {
    uint64_t height, width, channels;                   /* of an image; 0: the matrix is not one of patches */
    uint64_t out_height, out_width;
    uint64_t kernel_h, kernel_w, stride, pad;
};

/* An operand: a batch of matrices. A second one has values, or singles if both operands are narrower than f32. */
struct matrix {
    enum dtype dtype;
    bool computed;                                      /* a reference that is not exact */
    uint64_t elements;
    uint8_t *raw;                                       /* elements of a tensor; NULL: values in f64, with errors */
    double *value;
    float *error;                                       /* NULL: 0 */
    float *single;                                      /* of a second one: values in f32, instead of raw and value */
    struct patches patches;                             /* of the images that raw has */
};

/* Powers of the values or errors of an operand, over the largest of them, so that f32 holds them and their products. */
struct powers {
    float *of;
    double unit;
};

/* A row that is added to each row, with the powers of its errors. */
struct bias {
    double *value, *power;                              /* NULL: none */
};

struct product {
    struct matrix a, b;
    uint64_t rows, depth, columns;                      /* of one matrix of a batch */
    double *b_terms;                                    /* of each column: the root of the sum of squares of powers */
    struct powers b_powers, b_error_powers;             /* where they are needed */
    struct bias bias;
    bool relu;
};

/* The rows that are computed at once: a panel of C. */
enum { PRODUCT_ROWS = 256 };

/* Copies elements of an operand out, one after another. */
void matrix_values(const struct matrix *m, uint64_t first, uint64_t count, double *to);

/* Copies the panel's rows of the first operand out. */
void product_rows(const struct product *product, struct row_panel panel, double *to);

#endif
