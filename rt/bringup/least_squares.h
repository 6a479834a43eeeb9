/* least_squares.h: linear least squares, row by row: a QR decomposition by Givens rotations, which keeps the triangle alone
 * (Golub, Van Loan, Matrix Computations, 5.2). */
#ifndef KB_LEAST_SQUARES_H
#define KB_LEAST_SQUARES_H

#include <stdbool.h>

enum { UNKNOWNS_MOST = 24 };

struct least_squares {
    unsigned unknowns;
    double r[UNKNOWNS_MOST + 1][UNKNOWNS_MOST + 1];     /* upper triangle; the last column is that of the values */
};

/* Begins without a row. */
void least_squares_begin(struct least_squares *squares, unsigned unknowns);

/* Adds the row sum(coefficients[i] * x[i]) = value. */
void least_squares_add(struct least_squares *squares, const double *coefficients, double value);

/* Solves for the x that minimises the sum of squared residuals. Unknowns that the rows do not determine are 0. */
void least_squares_solve(const struct least_squares *squares, double *x);

/* Returns the minimum: the sum of squared residuals. */
double least_squares_residual_sum(const struct least_squares *squares);

/* The variance of each x if that of each value is 1; HUGE_VAL if the rows do not determine it. */
void least_squares_variances(const struct least_squares *squares, double *variances);

/* The square of the length of the column of an unknown. */
double least_squares_column(const struct least_squares *squares, unsigned unknown);

/* The cosine of the angle between the columns of two unknowns; 0 if one of them is 0. */
double least_squares_cosine(const struct least_squares *squares, unsigned a, unsigned b);

#endif
