/* slices.c: products in f64 by slices of sgemm, some columns at a time, whose sums stay in a cache. */
#include "slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "datapass/blas.h"
#include "reference.h"

/* Adds rows of f32 to rows of f64, which are `pitch` apart. */
VECTOR_BODY void add_rows_body(const float *restrict from, uint64_t rows, uint64_t columns, double *restrict to, uint64_t pitch)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            to[i * pitch + j] += (double)from[i * columns + j];
}
VECTOR_FUNCTION(add_rows, (const float *from, uint64_t rows, uint64_t columns, double *to, uint64_t pitch),
                (from, rows, columns, to, pitch))

VECTOR_BODY void all_finite_body(const double *value, uint64_t count, bool *finite)
{
    int64_t others = 0;
    for (uint64_t i = 0; i < count; i++)
        others |= !(value[i] - value[i] == 0);
    *finite = !others;
}
VECTOR_FUNCTION(all_finite, (const double *value, uint64_t count, bool *finite), (value, count, finite))

bool slices_multiply(uint64_t m, uint64_t n, uint64_t k, uint64_t slice, const float *a, uint64_t lda, const float *b, uint64_t ldb,
                     bool transposed, double *c)
{
    enum { COLUMNS = 512 };
    bool finite;
    float *sums = reference_scratch(m * kb_min(n, COLUMNS), sizeof *sums);
    memset(c, 0, m * n * sizeof *c);
    for (uint64_t column = 0; column < n; column += COLUMNS) {
        uint64_t columns = kb_min(COLUMNS, n - column);
        for (uint64_t from = 0; from < k; from += slice) {
            const float *part = transposed ? b + column * ldb + from : b + from * ldb + column;
            (transposed ? blas_sgemm_transposed : blas_sgemm)(m, columns, kb_min(slice, k - from), a + from, lda, part, ldb, 0, sums,
                                                              columns);
            add_rows(sums, m, columns, c + column, n);
        }
    }
    free(sums);
    all_finite(c, m * n, &finite);
    return finite;
}
