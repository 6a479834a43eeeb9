/* data.h: what memories hold: the calls of kb/sim.h that move bytes of the caller, and tensors. */
#ifndef KB_EMBED_DATA_H
#define KB_EMBED_DATA_H

#include "image.h"

enum kb_status data_poke(uint64_t address, const void *data, uint64_t bytes);
enum kb_status data_peek(uint64_t address, void *data, uint64_t bytes);
enum kb_status data_transfer(bool writes, const uint64_t *addresses, uint64_t count, uint64_t bytes, void *data,
                             uint64_t *request);
enum kb_status data_tensor(const struct kb_sim_tensor *tensor, struct tensor **made);
enum kb_status data_tensor_set(struct tensor *tensor, const void *data, uint64_t bytes);
enum kb_status data_tensor_get(struct tensor *tensor, void *data, uint64_t bytes);
enum kb_status data_tensor_shard(struct tensor *tensor, uint64_t i, uint64_t *address, uint64_t *bytes);

/* Forgets the tensors. */
void data_reset(void);

#endif
