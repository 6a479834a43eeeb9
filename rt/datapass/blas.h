/* blas.h: matrix products on the host, by OpenBLAS, which is loaded at the first use.
 *
 * One thread per call; several threads may call at once. All matrices are row-major; c = a b + beta c. Sizes and
 * leading dimensions are below 2^31. */
#ifndef KB_BLAS_H
#define KB_BLAS_H

#include <stdint.h>

/* Loads the library ahead of its use, if there is one. Not for several threads. */
void blas_prepare(void);

/* Loads the library; ends the program with status 3 and what to install if there is none. Not for several threads. */
void blas_open(void);

/* OpenBLAS's name of the processors that the loaded library computes for; NULL: none is loaded. OPENBLAS_CORETYPE asks for
 * others. */
const char *blas_kernels(void);

void blas_sgemm(uint64_t m, uint64_t n, uint64_t k, const float *a, uint64_t lda, const float *b, uint64_t ldb,
                float beta, float *c, uint64_t ldc);
void blas_dgemm(uint64_t m, uint64_t n, uint64_t k, const double *a, uint64_t lda, const double *b, uint64_t ldb,
                double beta, double *c, uint64_t ldc);

/* With b^T for b: b is n x k. */
void blas_sgemm_transposed(uint64_t m, uint64_t n, uint64_t k, const float *a, uint64_t lda, const float *b, uint64_t ldb,
                           float beta, float *c, uint64_t ldc);
void blas_dgemm_transposed(uint64_t m, uint64_t n, uint64_t k, const double *a, uint64_t lda, const double *b,
                           uint64_t ldb, double *c, uint64_t ldc);

#endif
