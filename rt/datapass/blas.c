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

static void *library;

void blas_prepare(void)
{
    static const char variable[] = "OPENBLAS_NUM_THREADS";
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    for (unsigned i = 0; i < COUNT_OF(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library)
        return;                                         /* another instance or the program itself has loaded it */
    const char *given = getenv(variable);
    char *before = given ? arena_printf("%s", given) : NULL;
    setenv(variable, "1", 1);                           /* else it starts a thread per processor as it is loaded */
    for (unsigned i = 0; i < COUNT_OF(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (before)
        setenv(variable, before, 1);
    else
        unsetenv(variable);
}

static void *library_open(void)
{
    if (!library)
        blas_prepare();
    if (library)
        return library;
    die("cannot load OpenBLAS, which the data pass computes with (%s): install libopenblas0-pthread, or use --data off",
        dlerror());
}

static void *symbol(void *blas, const char *name)
{
    void *found = dlsym(blas, name);
    if (!found)
        die("the OpenBLAS of this system has no %s", name);
    return found;
}

void blas_open(void)
{
    if (sgemm)
        return;
    void *blas = library_open();
    void (*set_threads)(int) = (void (*)(int))symbol(blas, "openblas_set_num_threads");
    set_threads(1);
    dgemm = (dgemm_fn *)symbol(blas, "cblas_dgemm");
    sgemm = (sgemm_fn *)symbol(blas, "cblas_sgemm");
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
