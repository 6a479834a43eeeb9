/* tensor_data.h: what tensors hold, as benches write, read and map it. */
#ifndef KB_TENSOR_DATA_H
#define KB_TENSOR_DATA_H

#include "common/fail.h"
#include "store/tensor.h"

/* Copies all elements as they are now, row-major; of copies, the first one. Takes no simulated time. The data pass runs
 * first if some are pending results of computes; with --data off that is misuse. */
void tensor_data_copy(struct call_site call, const struct tensor *tensor, void *to);

#endif
