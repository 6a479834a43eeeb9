/* epilogue.h: an op on each element of a large product, as kernels end a gemm with one. It is computed panel by panel with the
 * product, until all of its values are needed. */
#ifndef KB_EPILOGUE_H
#define KB_EPILOGUE_H

#include "product.h"

/* Computes a panel from that of the product, with the errors that it has for the op; NULL: 0. */
void epilogue_compute(const struct epilogue *epilogue, struct product_panel panel, const double *of, const float *of_error,
                      double *value, float *error);

/* NULL: does nothing. */
void epilogue_free(struct epilogue *epilogue);

#endif
