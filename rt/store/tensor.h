/* tensor.h: tensors of the host, their shards, and the rows of these. */
#ifndef KB_TENSOR_H
#define KB_TENSOR_H

#include "base/tables.h"
#include "common/fail.h"
#include "kb/host.h"

struct shard {
    uint32_t memory;
    uint64_t offset;                                    /* in bytes */
    uint64_t elements;
    uint32_t pe;                                        /* PE that the shard was placed with */
    struct tl_shard view;                               /* as kernels see it */
};

struct tensor {
    const char *name;
    enum dtype dtype;
    struct kb_dims dims;
    struct kb_place place;
    uint32_t number;                                    /* of tensors made before it */
    uint64_t elements;
    struct shard *shard;
    uint32_t shards;
    bool known;                                         /* the host has filled it, or it was verified (written.h) */
};

/* A row of a shard: elements at consecutive positions in the tensor and at consecutive offsets. */
struct tensor_row {
    uint32_t memory;
    uint64_t offset, position, count;
};

/* Misuse if a handle was never set. */
void tensor_check(struct call_site call, const struct tensor *tensor);

uint64_t tensor_rows(const struct shard *shard);
struct tensor_row tensor_row(const struct tensor *tensor, const struct shard *shard, uint64_t row);

/* Whether all elements of a shard are at consecutive positions in the tensor. */
bool tensor_shard_is_dense(const struct tensor *tensor, const struct shard *shard);

/* Calls f for every row of the tensor; if its shards are copies, for the rows of the first one or of all. */
void tensor_each_row(const struct tensor *tensor, bool all_copies, void (*f)(struct tensor_row run, void *arg), void *arg);

/* The index of a position, 0 along the axes that the tensor lacks. */
void tensor_index(const struct tensor *tensor, uint64_t position, uint64_t index[KB_RANK]);

/* The index of a position as "[3, 17]", into a buffer of at least 96 bytes. */
void tensor_index_name(const struct tensor *tensor, uint64_t position, char *name);

/* Bytes of HBM and srams: those that tensors take, and those of tensors that were filled. */
struct tensors_bytes {
    uint64_t all, filled;
};

struct tensors_bytes tensors_bytes(void);

/* The host has filled a tensor. */
void tensor_filled(const struct tensor *tensor);

/* There are none: the next tensor is number 0. */
void tensors_reset(void);

#endif
