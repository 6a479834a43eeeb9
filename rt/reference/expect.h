/* expect.h: expectations: tensors compared with references. */
#ifndef KB_EXPECT_H
#define KB_EXPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/json.h"
#include "store/tensor.h"

struct op_ref;

/* The share of the RMS of a tensor that its bounds may reach, for all but a thousandth of the elements: beyond it a check
 * says too little. */
#define POWER_LEAST 0.05

enum verdict {
    VERDICT_OK,
    VERDICT_WRONG,
    VERDICT_WEAK,                                       /* right within bounds that allow too much */
    VERDICT_ZEROS,                                      /* right, but nothing else than zeros was expected */
    VERDICT_UNWRITTEN,                                  /* right, but no kernel has written it */
    VERDICT_OVERWRITTEN,                                /* right, by a reference of what kernels had overwritten */
    VERDICT_SKIPPED,                                    /* --data off */
};

struct verification {
    const struct tensor *tensor;
    enum verdict verdict;
    double max_error, max_share;                        /* the largest error, and the largest share of its own bound */
    double relative;                                    /* |err| / |ref| */
    double power;                                       /* a bound over the RMS: only a thousandth is larger */
    double rms;                                         /* of the reference */
    uint64_t wrong;                                     /* elements */
    uint64_t position;                                  /* of the first wrong one */
    double got, expected, allowed;                      /* there */
    bool unwritten;                                     /* no kernel has written a byte of it */
    const struct tensor *overwritten;                   /* the reference was made from it after kernels had overwritten it;
                                                           or NULL */
    uint64_t sampled;                                   /* elements; 0: all were compared (projection.h) */
    double missed;                                      /* then: the probability of missing a tile off by its RMS */
    const struct op_ref *writer;                        /* who wrote the first wrong element, or overwrote that
                                                           tensor, held; NULL: not known (race.h) */
    struct verification *next;
};

/* Those of this run, in order. */
extern struct verification *verifications;

/* Called after each comparison; NULL: nothing is. */
extern void (*expect_compared)(const struct verification *v);

/* Whether one of them is neither right with some power nor skipped. */
bool verification_failed(void);

/* The largest error of all tensors that were compared; NAN: none was. */
double verification_error(void);

void verifications_print(FILE *out);
void verifications_write(struct json *json);            /* "verify" into an open object */

#endif
