/* sgemm.c: sgemm M K N: seconds of one cblas_sgemm of M x K by K x N, on one thread, after a small one. */
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

static int size_of(const char *word)
{
    int size = atoi(word);
    if (size < 64)
        exit(2);
    return size;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    int m = size_of(words[1]), k = size_of(words[2]), n = size_of(words[3]);
    size_t a_size = (size_t)m * (size_t)k, b_size = (size_t)k * (size_t)n;
    size_t all_size = a_size + b_size + (size_t)m * (size_t)n;
    float *all = malloc(sizeof *all * all_size);
    if (!all)
        return 3;
    float *a = all, *b = a + a_size, *c = b + b_size;
    for (size_t i = 0; i < all_size; i++)
        all[i] = (float)(i % 251) / 251;
    openblas_set_num_threads(1);
    cblas_sgemm(101, 111, 111, 64, 64, 64, 1, a, k, b, n, 0, c, n);
    double began = seconds();
    cblas_sgemm(101, 111, 111, m, n, k, 1, a, k, b, n, 0, c, n);
    printf("%.6f\n", seconds() - began);
}
