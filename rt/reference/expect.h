/* expect.h: expectations: tensors compared with references. */
#ifndef KB_EXPECT_H
#define KB_EXPECT_H

#include <stdbool.h>

#include "store/tensor.h"

struct op_ref;

enum verdict { VERDICT_OK, VERDICT_WRONG, VERDICT_SKIPPED };

struct verification {
    const struct tensor *tensor;
    enum verdict verdict;
    double max_error;
    double atol, rtol, scale;                           /* allowed: atol * scale + rtol * |expected| */
    uint64_t wrong;                                     /* elements */
    uint64_t position;                                  /* of the first wrong one */
    double got, expected, allowed;                      /* there */
    const struct op_ref *writer;                        /* who wrote it, held; NULL: not known (race.h) */
    struct verification *next;
};

/* Those of this run, in order. */
extern struct verification *verifications;
bool verification_failed(void);

#endif
