/* sgemm.c: sgemm SIZE: seconds of one cblas_sgemm of square matrices, on one thread, after a small one. */
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
    int size = count == 2 ? atoi(words[1]) : 0;
    if (size < 64)
        return 2;
    float *all = malloc(3 * sizeof *all * (size_t)size * (size_t)size);
    if (!all)
        return 3;
    float *a = all, *b = a + (size_t)size * (size_t)size, *c = b + (size_t)size * (size_t)size;
    for (float *x = all; x < c + (size_t)size * (size_t)size; x++)
        *x = (float)((x - all) % 251) / 251;
    openblas_set_num_threads(1);
    cblas_sgemm(101, 111, 111, 64, 64, 64, 1, a, size, b, size, 0, c, size);
    double began = seconds();
    cblas_sgemm(101, 111, 111, size, size, size, 1, a, size, b, size, 0, c, size);
    printf("%.6f\n", seconds() - began);
}
