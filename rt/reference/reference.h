/* reference.h: the values that tensors should hold, computed apart from the data pass: what all references share. */
#ifndef KB_REFERENCE_H
#define KB_REFERENCE_H

#include <stdbool.h>

#include "common/fail.h"
#include "store/tensor.h"

/* Values in one of three types, row-major: f32 for gemms of f16 and bf16, i32 for gemms of i8, else f64. With --data off
 * there are none: only the shape and dtype are known, and checked. */
struct reference {
    struct kb_dims dims;
    uint64_t elements, rows, columns;                   /* columns: the last axis; rows: all others together */
    enum dtype dtype;                                   /* of integers; floats are compared with any float dtype */
    double scale;                                       /* s of the tolerance */
    bool exact;                                         /* no tolerance at all */
    bool wraps;                                         /* integers that do not fit the tensor's dtype wrap in it */
    float *f32;
    double *f64;
    int32_t *i32;
    struct reference *older;                            /* the one made before it */
};

/* The number of values of a shape; 0 with --data off. */
uint64_t reference_elements(const struct kb_dims *dims);

/* A reference without values yet, with s = 1; its values have to be of malloc. */
struct reference *reference_new(struct kb_dims dims, enum dtype dtype);

/* One of values in f64, with s = `scale`, but at least 1. */
struct reference *reference_computed(struct kb_dims dims, enum dtype dtype, double *values, double scale);

/* Memory for values, of malloc, all 0. */
void *reference_alloc(uint64_t count, size_t size);

double reference_value(const struct reference *ref, uint64_t position);

/* ---- a call that makes one */

/* Begins it: runs the data pass, if there is one, and starts the clock of reference_seconds. */
void reference_begin(struct call_site call);
kb_ref reference_end(struct reference *ref);

/* The elements of an operand in one piece, in `f32` or `f64`; gathered_free frees them. */
struct gathered {
    const char *name;                                   /* for messages */
    struct kb_dims dims;
    uint64_t elements;                                  /* as reference_elements */
    enum dtype dtype;
    float *f32;
    double *f64;
    double max;                                         /* of the finite magnitudes */
    bool exact;                                         /* as tensors are */
    bool is_number;                                     /* one element, of whatever dtype is needed */
    double error;                                       /* how far an element may be off, in tolerances */
};

struct gathered gather(struct call_site call, struct kb_values from, bool f64);
void gathered_free(struct gathered *g);

/* The same in f64; misuse if they are not floats. */
struct gathered gather_floats(struct call_site call, struct kb_values from);

/* Misuse unless there is one element for each column, or a single one if `one` is set. */
void gathered_check_row(struct call_site call, const struct gathered *g, uint64_t columns, bool one);

/* Whether f32 holds all elements: those of tensors of f16 and bf16. */
bool values_are_half(struct kb_values from);

/* ---- the room */

/* The host's seconds that references and comparisons took. */
extern double reference_seconds;

/* The room's reset (cli/reset.c): frees all references and forgets what was verified. */
void reference_reset(void);

#endif
