/* reference.h: the values that tensors should hold, computed apart from the data pass, each with an error: what all
 * references share. */
#ifndef KB_REFERENCE_H
#define KB_REFERENCE_H

#include <stdbool.h>

#include "common/fail.h"
#include "error.h"
#include "store/tensor.h"

struct product;
struct reference;
struct row_panel;

/* Computes a panel of a deferred reference: rows x columns values, and their errors, which exact references do not have. Several
 * threads may call. */
typedef void compute_panel(const struct reference *ref, struct row_panel panel, double *value, float *error);

/* Values in f64, row-major, with their errors, before they are rounded to be stored. With --data off there are none:
 * only the shape and dtype are known, and checked. A large gemm (product.h), a norm or softmax of a tensor, and what ops make of each
 * element of these or of a tensor are deferred (deferred.h). Elements of a tensor that were only moved remain as they are. */
struct reference {
    struct kb_dims dims;
    uint64_t elements, rows, columns;                   /* columns: the last axis; rows: all others together */
    enum dtype dtype;                                   /* of integers; floats are compared with any float dtype */
    bool exact;                                         /* no rounding: tensors of the dtype hold just these values */
    bool stored;                                        /* errors have what storing adds: of stored values, moved */
    bool given;                                         /* by the bench: how they were computed is not known */
    bool wraps;                                         /* integers that do not fit the tensor's dtype wrap in it */
    double *value;
    float *error;                                       /* of each value (error.h); NULL: 0 */
    uint8_t *raw;                                       /* elements of a tensor, in its dtype; NULL: value and error are there */
    compute_panel *compute;                             /* of a deferred one; NULL: value and error are there, or raw */
    void (*release)(void *from);
    void *from;                                         /* what a deferred one is computed from */
    uint64_t matrix_rows, panel_rows;                   /* of a deferred one: of a matrix of a batch; that are computed at once */
    struct product *product;                            /* `from`, if it is a product */
    struct reference *of, *epilogued;                   /* the deferred one that this one is an op on; the op on this one */
    const struct tensor *overwritten;                   /* a tensor that it is made from and kernels had overwritten; or NULL */
    struct reference *older;                            /* the one made before it */
};

/* The number of values of a shape; 0 with --data off. */
uint64_t reference_elements(const struct kb_dims *dims);

/* A reference of values and errors, of malloc; both may be NULL, and be set later. */
struct reference *reference_new(struct kb_dims dims, enum dtype dtype, double *value, float *error);

/* Memory for values, of malloc, all 0. */
void *reference_alloc(uint64_t count, size_t size);

/* The same, not initialised. */
void *reference_scratch(uint64_t count, size_t size);

/* ---- a call that makes one */

/* Begins it: runs the data pass, if there is one, and starts the clock of reference_seconds. */
void reference_begin(struct call_site call);
kb_ref reference_end(struct reference *ref);

/* An operand: elements in one piece, with the errors that they have once they are stored. Values and errors may be those
 * of a reference; gathered_free frees the others. */
struct gathered {
    const char *name;                                   /* for messages */
    struct kb_dims dims;
    uint64_t elements;                                  /* as reference_elements */
    enum dtype dtype;
    const double *value;                                /* NULL: there are raw elements */
    const float *error;                                 /* NULL: 0, as those of tensors are */
    bool exact;                                         /* as tensors are */
    bool is_number;                                     /* one element, of whatever dtype is needed */
    double *own_value;
    float *own_error;
    uint8_t *raw;                                       /* of a tensor, in its dtype */
};

struct gathered gather(struct call_site call, struct kb_values from);

/* Gathers the same, but leaves the elements of a tensor, moved ones as well, in its dtype, which takes less memory.
 * gathered_values converts them. */
struct gathered gather_raw(struct call_site call, struct kb_values from);

/* Values of some elements: where they are, or computed into `to`. */
const double *gathered_values(const struct gathered *g, uint64_t first, uint64_t count, double *to);

/* Copies them. */
void gathered_copy(const struct gathered *g, uint64_t first, uint64_t count, double *to);

/* Copies values and errors of another reference, so that they can be changed. */
void gathered_make_own(struct gathered *g);

/* What is known of an operand without its elements. */
struct gathered gathered_shape(struct call_site call, struct kb_values from);

/* Adds to errors of a reference's values what storing them adds. Without errors before, they are 0. */
void reference_store_errors(const struct reference *ref, const double *value, const float *before, float *error, uint64_t count);

void gathered_free(struct gathered *g);

/* gather_raw; misuse if they are not floats. */
struct gathered gather_floats(struct call_site call, struct kb_values from);

/* Misuse unless there is one element for each column, or a single one if `one` is set. */
void gathered_check_row(struct call_site call, const struct gathered *g, uint64_t columns, bool one);

/* The power of the error of an element. */
static inline double gathered_power(const struct gathered *g, uint64_t i)
{
    return g->error ? error_power((double)g->error[i]) : 0;
}

/* An array for errors of a result; NULL if all of its operands are exact, and `rounded` is not set. */
float *reference_errors(uint64_t elements, bool rounded);

/* Calls f for all elements, in batches of rows for the threads. */
void reference_each_batch(uint64_t rows, uint64_t columns, void (*f)(uint64_t row, uint64_t rows, void *arg), void *arg);

/* ---- the room */

/* The host's seconds that references and comparisons took: from reference_clock_start to reference_left, which adds nothing
 * if the clock does not run. One that was left in its middle is still running. */
extern double reference_seconds;
void reference_clock_start(void);
void reference_left(void);

/* The room's reset (session/reset.c): frees all references and forgets what was verified. */
void reference_reset(void);

#endif
