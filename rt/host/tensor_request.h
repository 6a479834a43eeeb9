/* tensor_request.h: tensors that a bench writes or reads over the fabric (kb_write, kb_read). */
#ifndef KB_TENSOR_REQUEST_H
#define KB_TENSOR_REQUEST_H

#include "common/fail.h"
#include "store/tensor.h"

struct kb_request;

/* Begins to write or read all shards, in this instant. */
struct kb_request *tensor_request_begin(struct call_site call, const struct tensor *tensor, bool writes);

/* Suspends the host program that acts until the request is complete; ends the run if it failed. */
void tensor_request_wait(struct call_site call, struct kb_request *whole);

/* Waits for all requests that the bench has not waited for. */
void tensor_requests_wait(void);

/* Forgets all requests. */
void tensor_requests_reset(void);

#endif
