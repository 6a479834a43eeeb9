/* reference.h: what tensors should hold, and whether they do. */
#ifndef KB_REFERENCE_H
#define KB_REFERENCE_H

#include <stdbool.h>

#include "store/tensor.h"

/* Values in one of three types, row-major: f32 of gemms of f16 and bf16, i32 of those of i8, else f64. With --data off
 * there are none: a shape and a dtype are all that is known, and checked. */
struct reference {
    struct kb_dims dims;
    uint64_t elements, rows, columns;                   /* columns: the last axis, rows: all others */
    enum dtype dtype;                                   /* integers: of this one; floats: no matter which */
    double scale;                                       /* s of the tolerance */
    bool exact;                                         /* no tolerance at all */
    bool wraps;                                         /* integers that do not fit the tensor's dtype wrap in it */
    float *f32;
    double *f64;
    int32_t *i32;
    struct reference *older;                            /* made before it */
};

/* How many values there are of a shape. */
uint64_t reference_elements(const struct kb_dims *dims);

/* One without values yet; those that it gets are of malloc. */
struct reference *reference_new(struct kb_dims dims, enum dtype dtype);

/* Room for values, of malloc, zeroed. */
void *reference_room(uint64_t count, size_t size);

/* The room's reset (cli/reset.c): frees all references; they have taken no time. Nothing was verified. */
void reference_reset(void);

double reference_value(const struct reference *ref, uint64_t position);

/* ---- what references are made of */

/* A call of the host's that makes one. */
struct ref_call {
    const char *name, *file;
    uint32_t line;
};

/* Begins a call, after the data pass, if there is one. */
void ref_begin(const struct ref_call *call);

/* Ends it; the reference has been made in it. */
kb_ref ref_end(struct reference *ref);

/* The elements of a tensor or reference in one piece: `f32` or `f64`, which gathered_free frees. */
struct gathered {
    const char *name;                                   /* for messages */
    struct kb_dims dims;
    uint64_t elements;                                  /* that are here */
    enum dtype dtype;
    float *f32;
    double *f64;
    double max;                                         /* of the finite magnitudes */
    bool exact;                                         /* as a tensor has them */
    bool is_number;                                     /* one element, of the dtype that is needed */
    double error;                                       /* how far one may be off, as a multiple of the tolerance */
};

struct gathered gather(const struct ref_call *call, struct kb_values from, bool f64);
void gathered_free(struct gathered *g);

/* Whether they are one for each column, or, if `one` is allowed, a single one; else it is misuse. */
void gathered_check_row(const struct ref_call *call, const struct gathered *g, uint64_t columns, bool one);

/* Whether f32 holds all elements: those of tensors of f16 and bf16. */
bool values_are_half(struct kb_values from);

/* A result of floats that were computed, with s = `scale`, but at least 1. */
struct reference *reference_computed(struct kb_dims dims, enum dtype dtype, double *values, double scale);

/* ---- expectations */

enum verdict { VERDICT_OK, VERDICT_WRONG, VERDICT_SKIPPED };

/* What an expectation gave. */
struct op_ref;

struct verification {
    const struct tensor *tensor;
    enum verdict verdict;
    double max_error;
    double atol, rtol, scale;                           /* allowed: atol * scale + rtol * |expected| */
    uint64_t wrong;                                     /* elements */
    uint64_t position;                                  /* of the first wrong one */
    double got, expected, allowed;
    const struct op_ref *writer;                        /* of that one, held; NULL: not known (race.h) */
    struct verification *next;
};

/* All of this run, in order. */
extern struct verification *verifications;
bool verification_failed(void);
void verifications_reset(void);

/* The host's seconds that references and comparisons took. */
extern double reference_seconds;

#endif
