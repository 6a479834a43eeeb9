/* sgemm.c: sgemm SIZE [COUNT]: seconds of one cblas_sgemm of square matrices, or of COUNT of them, each of matrices of its
 * own, whose results go where nothing has been written, on one thread, after a small one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void openblas_set_num_threads(int threads);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc);

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int count, char **words)
{
    int size = count > 1 ? atoi(words[1]) : 0, products = count > 2 ? atoi(words[2]) : 1;
    if (size < 64 || products < 1)
        return 2;
    size_t elements = (size_t)size * (size_t)size, each = elements * (size_t)products;
    float *all = malloc(3 * sizeof *all * each);
    if (!all)
        return 3;
    float *a = all, *b = a + each, *c = b + each;
    for (float *x = all; x < (products > 1 ? c : c + each); x++)
        *x = (float)((x - all) % 251) / 251;
    openblas_set_num_threads(1);
    cblas_sgemm(101, 111, 111, 64, 64, 64, 1, a, size, b, size, 0, c, size);
    double began = seconds();
    for (size_t at = 0; at < each; at += elements)
        cblas_sgemm(101, 111, 111, size, size, size, 1, a + at, size, b + at, size, 0, c + at, size);
    printf("%.6f\n", seconds() - began);
}
