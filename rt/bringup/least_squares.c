/* least_squares.c: the triangle of a QR decomposition, and what follows from it. */
#include "least_squares.h"

#include <math.h>
#include <string.h>

void least_squares_begin(struct least_squares *squares, unsigned unknowns)
{
    memset(squares, 0, sizeof *squares);
    squares->unknowns = unknowns;
}

void least_squares_add(struct least_squares *squares, const double *coefficients, double value)
{
    double row[UNKNOWNS_MOST + 1];
    unsigned n = squares->unknowns;
    memcpy(row, coefficients, n * sizeof *row);
    row[n] = value;
    for (unsigned i = 0; i <= n; i++) {
        double *pivot = squares->r[i], length = row[i] == 0 ? 0 : hypot(pivot[i], row[i]);
        if (length == 0)
            continue;
        double cosine = pivot[i] / length, sine = row[i] / length;
        for (unsigned j = i; j <= n; j++) {
            double rotated = cosine * pivot[j] + sine * row[j];
            row[j] = cosine * row[j] - sine * pivot[j];
            pivot[j] = rotated;
        }
    }
}

/* Whether a pivot is more than the rounding of its column. */
static bool is_pivot(const struct least_squares *squares, unsigned i)
{
    return fabs(squares->r[i][i]) > 1e-10 * sqrt(least_squares_column(squares, i));
}

void least_squares_solve(const struct least_squares *squares, double *x)
{
    unsigned n = squares->unknowns;
    for (unsigned i = n; i-- > 0;) {
        double value = squares->r[i][n];
        for (unsigned j = i + 1; j < n; j++)
            value -= squares->r[i][j] * x[j];
        x[i] = is_pivot(squares, i) ? value / squares->r[i][i] : 0;
    }
}

double least_squares_residual_sum(const struct least_squares *squares)
{
    double root = squares->r[squares->unknowns][squares->unknowns];
    return root * root;
}

void least_squares_variances(const struct least_squares *squares, double *variances)
{
    unsigned n = squares->unknowns;
    double inverse[UNKNOWNS_MOST][UNKNOWNS_MOST] = {{0}};
    bool determined = true;
    for (unsigned i = 0; i < n; i++)
        determined &= is_pivot(squares, i);
    for (unsigned column = 0; determined && column < n; column++)
        for (unsigned i = column + 1; i-- > 0;) {
            double value = i == column;
            for (unsigned j = i + 1; j <= column; j++)
                value -= squares->r[i][j] * inverse[j][column];
            inverse[i][column] = value / squares->r[i][i];
        }
    for (unsigned i = 0; i < n; i++) {
        variances[i] = determined ? 0 : HUGE_VAL;
        for (unsigned j = i; determined && j < n; j++)
            variances[i] += inverse[i][j] * inverse[i][j];
    }
}

double least_squares_column(const struct least_squares *squares, unsigned unknown)
{
    double sum = 0;
    for (unsigned i = 0; i <= unknown; i++)
        sum += squares->r[i][unknown] * squares->r[i][unknown];
    return sum;
}

double least_squares_cosine(const struct least_squares *squares, unsigned a, unsigned b)
{
    double sum = 0, lengths = sqrt(least_squares_column(squares, a) * least_squares_column(squares, b));
    for (unsigned i = 0; i <= (a < b ? a : b); i++)
        sum += squares->r[i][a] * squares->r[i][b];
    return lengths > 0 ? sum / lengths : 0;
}
