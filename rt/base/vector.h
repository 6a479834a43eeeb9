/* vector.h: loops that are compiled for x86 processors with AVX2, and once more, for size, for those without. Neither has
 * fused multiplications, so the bits are the same. */
#ifndef KB_VECTOR_H
#define KB_VECTOR_H

#include <stdbool.h>

/* Of the body of a loop: the compiler puts it into both. */
#define VECTOR_BODY static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define VECTOR_AVX2 __attribute__((target("avx2")))
#define VECTOR_SMALL __attribute__((cold, noinline))

/* AVX2 implies F16C, which clang cannot ask for. */
static inline bool vector_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

/* Defines a function that does what NAME_body does, in the way that this processor does it best. */
#define VECTOR_FUNCTION(name, parameters, arguments)                                                                   \
    VECTOR_AVX2 static void name##_avx2 parameters                                                                     \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }                                                                                                                  \
    VECTOR_SMALL static void name##_sse2 parameters                                                                    \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }                                                                                                                  \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        if (vector_has_avx2())                                                                                         \
            name##_avx2 arguments;                                                                                     \
        else                                                                                                           \
            name##_sse2 arguments;                                                                                     \
    }
#else
#define VECTOR_AVX2
#define VECTOR_SMALL __attribute__((cold, noinline))

static inline bool vector_has_avx2(void)
{
    return true;                                        /* there is one kind of processor */
}

#define VECTOR_FUNCTION(name, parameters, arguments)                                                                   \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }
#endif

#endif
