/* look.c: what the host sees of tensors: results that are pending are computed first. */
#include "look.h"

#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "datapass/exec.h"
#include "host_program.h"
#include "common/fail.h"
#include "machine/tiling.h"

static bool is_pending(const struct tensor *tensor, struct run run)
{
    uint64_t at;
    return store_pending(run.memory, run.offset, run.count * dtype_bytes[tensor->dtype], &at);
}

static void compute(const struct tensor *tensor, const char *call, const char *file, uint32_t line)
{
    if (!oplog_on)
        misuse(file, line, "%s: tensor '%s' holds results, which --data off does not compute", call, tensor->name);
    exec_data_pass();
}

/* ---- all elements */

struct sight {
    const struct tensor *tensor;
    uint8_t *to;
    bool pending;
};

static void find_pending(struct run run, void *arg)
{
    struct sight *sight = arg;
    sight->pending |= is_pending(sight->tensor, run);
}

static void copy_row(struct run run, void *arg)
{
    const struct sight *sight = arg;
    uint64_t size = dtype_bytes[sight->tensor->dtype], bytes = run.count * size;
    store_reach(IMAGE_NOW, run.memory, run.offset + bytes);
    memcpy(sight->to + run.position * size, store_at(IMAGE_NOW, run.memory, run.offset), bytes);
}

void look(const struct tensor *tensor, void *to, const char *call, const char *file, uint32_t line)
{
    struct sight sight = {tensor, to, false};
    oplog_settle(true, OP_OF_HOST);
    tensor_each_row(tensor, false, find_pending, &sight);
    if (sight.pending)
        compute(tensor, call, file, line);
    tensor_each_row(tensor, false, copy_row, &sight);
}

/* ---- some elements */

/* Where one lies, and those behind it in its row and shard; of copies, in the first one. */
static struct run find(const struct tensor *tensor, uint64_t position)
{
    uint64_t index[KB_RANK];
    uint32_t last = tensor->dims.rank - 1;
    tensor_index(tensor, position, index);
    for (uint32_t i = 0; i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        uint64_t element = 0, end = shard->view.first[last] + shard->view.shape[last];
        uint32_t axis = 0;
        for (; axis < KB_RANK && index[axis] - shard->view.first[axis] < shard->view.shape[axis]; axis++)
            element += (index[axis] - shard->view.first[axis]) * shard->view.stride[axis];
        if (axis == KB_RANK)
            return (struct run){shard->memory, shard->offset + element * dtype_bytes[tensor->dtype], position,
                                end - index[last]};
    }
    return (struct run){0};                             /* not reached: the shards hold every position */
}

static void peek(kb_tensor tensor, struct run run, double *values, const char *call, const char *file, uint32_t line)
{
    uint64_t size = dtype_bytes[tensor->dtype];
    if (is_pending(tensor, run))
        compute(tensor, call, file, line);
    store_reach(IMAGE_NOW, run.memory, run.offset + run.count * size);
    const uint8_t *from = store_at(IMAGE_NOW, run.memory, run.offset);
    for (uint64_t i = 0; i < run.count; i++)
        values[i] = dtype_value(tensor->dtype, from + i * size);
}

static void peek_many(const char *call, kb_tensor tensor, uint64_t position, uint64_t count, double *values,
                      const char *file, uint32_t line)
{
    host_only(call, file, line);
    tensor_check(tensor, call, file, line);
    if (position > tensor->elements || count > tensor->elements - position)
        misuse(file, line, "%s: tensor '%s' has %" PRIu64 " elements, there is no %" PRIu64, call, tensor->name,
               tensor->elements, position < tensor->elements ? tensor->elements : position);
    oplog_settle(true, OP_OF_HOST);
    for (uint64_t end = position + count; position < end;) {
        struct run run = find(tensor, position);
        run.count = run.count < end - position ? run.count : end - position;
        peek(tensor, run, values, call, file, line);
        position += run.count;
        values += run.count;
    }
}

double kb_peek_at(kb_tensor tensor, uint64_t position, const char *file, uint32_t line)
{
    double value = 0;
    peek_many("kb_peek", tensor, position, 1, &value, file, line);
    return value;
}

void kb_peek_many_at(kb_tensor tensor, uint64_t position, uint64_t count, double *values, const char *file,
                     uint32_t line)
{
    peek_many("kb_peek_many", tensor, position, count, values, file, line);
}
