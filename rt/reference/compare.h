/* compare.h: a tensor compared with a reference, in panels of elements, on all threads. */
#ifndef KB_COMPARE_H
#define KB_COMPARE_H

#include "expect.h"
#include "reference.h"

/* Compares all elements of all copies, and fills in the verification, verdict included. */
void compare_tensor(struct verification *v, struct reference *ref);

#endif
