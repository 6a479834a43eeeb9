/* blas.c: OpenBLAS by dlopen: a run for timing alone neither needs nor loads it. */
#include "blas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

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

static void *load(int mode)
{
    void *loaded = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | mode);
    return loaded ? loaded : dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL | mode);
}

static void *symbol(void *blas, const char *name)
{
    void *found = dlsym(blas, name);
    if (!found)
        die("the OpenBLAS of this system has no %s", name);
    return found;
}

const char *blas_kernels(void)
{
    return library ? ((const char *(*)(void))symbol(library, "openblas_get_corename"))() : NULL;
}

/* OpenBLAS takes a processor that is newer than itself for a Prescott of 2004, which leaves four fifths of its speed unused.
 * Returns the kernels to ask for instead; NULL: it knows the processor, or this is not x86. */
static const char *better_kernels(void)
{
#if defined(__x86_64__)
    if (!strcmp(blas_kernels(), "Prescott") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") ? "SkylakeX" : "Haswell";
#endif
    return NULL;
}

void blas_prepare(void)
{
    static const char threads[] = "OPENBLAS_NUM_THREADS", kernels[] = "OPENBLAS_CORETYPE";
    library = load(RTLD_NOLOAD);
    if (library)
        return;                                         /* another instance or the program itself has loaded it */
    const char *given = getenv(threads);
    char *before = given ? arena_printf("%s", given) : NULL;
    setenv(threads, "1", 1);                            /* else it starts a thread per processor as it is loaded */
    library = load(0);
    const char *better = library && !getenv(kernels) ? better_kernels() : NULL;
    if (better) {
        setenv(kernels, better, 1);
        dlclose(library);
        library = load(0);
        unsetenv(kernels);
    }
    if (before)
        setenv(threads, before, 1);
    else
        unsetenv(threads);
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

void blas_sgemm_transposed(uint64_t m, uint64_t n, uint64_t k, const float *a, uint64_t lda, const float *b, uint64_t ldb,
                           float beta, float *c, uint64_t ldc)
{
    sgemm(ROW_MAJOR, NO_TRANSPOSITION, TRANSPOSITION, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
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
