/* reference.h: what tensors should hold, and whether they do. */
#ifndef KB_REFERENCE_H
#define KB_REFERENCE_H

#include <stdbool.h>

#include "tensor.h"

/* Values in one of three types, row-major: f32 of f16 and bf16 inputs, f64 of f32 ones, i32 of i8 ones. */
struct reference {
    uint64_t rows, columns;
    double scale;                                       /* s of the tolerance */
    bool exact;                                         /* no tolerance at all */
    float *f32;
    double *f64;
    int32_t *i32;
    struct reference *older;                            /* made before it */
};

/* One without values yet; those that it gets are of malloc. */
struct reference *reference_new(uint64_t rows, uint64_t columns);

/* Frees all of them; they have taken no time. */
void references_reset(void);

double reference_value(const struct reference *ref, uint64_t position);

enum verdict { VERDICT_OK, VERDICT_WRONG, VERDICT_SKIPPED };

/* What an expectation gave. */
struct verification {
    const struct tensor *tensor;
    enum verdict verdict;
    double max_error;
    double atol, rtol, scale;                           /* allowed: atol * scale + rtol * |expected| */
    uint64_t wrong;                                     /* elements */
    uint64_t position;                                  /* of the first wrong one */
    double got, expected, allowed;
    struct verification *next;
};

/* All of this run, in order. */
extern struct verification *verifications;
bool verification_failed(void);
void verifications_reset(void);

/* The host's seconds that references and comparisons took. */
extern double reference_seconds;

#endif
