/* blas.c: OpenBLAS by dlopen: a run for timing alone neither needs nor loads it. */
#include "blas.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "common/arena.h"
#include "common/diag.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSITION = 111, TRANSPOSITION = 112 };       /* of cblas.h */

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                      const double *b, int ldb, double beta, double *c, int ldc);

static sgemm_fn *sgemm;
static dgemm_fn *dgemm;

static void *library_open(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    die("cannot load OpenBLAS, which the data pass computes with (%s): install libopenblas0-pthread, or use --data off",
        dlerror());
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        die("the OpenBLAS of this system has no %s", name);
    return found;
}

void blas_open(void)
{
    if (sgemm)
        return;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);             /* else it starts a thread per processor as it is loaded */
    void *library = library_open();
    void (*set_threads)(int) = (void (*)(int))symbol(library, "openblas_set_num_threads");
    set_threads(1);
    dgemm = (dgemm_fn *)symbol(library, "cblas_dgemm");
    sgemm = (sgemm_fn *)symbol(library, "cblas_sgemm");
}

void blas_sgemm(uint64_t m, uint64_t n, uint64_t k, const float *a, uint64_t lda, const float *b, uint64_t ldb,
                float beta, float *c, uint64_t ldc)
{
    sgemm(ROW_MAJOR, NO_TRANSPOSITION, NO_TRANSPOSITION, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, beta, c,
          (int)ldc);
}

void blas_dgemm(uint64_t m, uint64_t n, uint64_t k, const double *a, uint64_t lda, const double *b, uint64_t ldb,
                double beta, double *c, uint64_t ldc)
{
    dgemm(ROW_MAJOR, NO_TRANSPOSITION, NO_TRANSPOSITION, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, beta, c,
          (int)ldc);
}

void blas_dgemm_transposed(uint64_t m, uint64_t n, uint64_t k, const double *a, uint64_t lda, const double *b,
                           uint64_t ldb, double *c, uint64_t ldc)
{
    dgemm(ROW_MAJOR, NO_TRANSPOSITION, TRANSPOSITION, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, 0, c,
          (int)ldc);
}
