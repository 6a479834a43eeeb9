/* look.c: what the host sees of tensors: results that are pending are computed first. */
#include "look.h"

#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "exec.h"
#include "host_program.h"
#include "misuse.h"
#include "plan.h"

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

/* ---- one element */

/* Where it lies; of copies, in the first one. */
static struct run find(const struct tensor *tensor, uint64_t position)
{
    uint64_t index[KB_RANK];
    tensor_index(tensor, position, index);
    for (uint32_t i = 0; i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        uint64_t element = 0;
        uint32_t axis = 0;
        for (; axis < KB_RANK && index[axis] - shard->view.first[axis] < shard->view.shape[axis]; axis++)
            element += (index[axis] - shard->view.first[axis]) * shard->view.stride[axis];
        if (axis == KB_RANK)
            return (struct run){shard->memory, shard->offset + element * dtype_bytes[tensor->dtype], position, 1};
    }
    return (struct run){0};                             /* not reached: the shards hold every position */
}

double kb_peek_at(kb_tensor tensor, uint64_t position, const char *file, uint32_t line)
{
    host_only("kb_peek", file, line);
    tensor_check(tensor, "kb_peek", file, line);
    if (position >= tensor->elements)
        misuse(file, line, "kb_peek: tensor '%s' has %" PRIu64 " elements, there is no %" PRIu64, tensor->name,
               tensor->elements, position);
    struct run one = find(tensor, position);
    oplog_settle(true, OP_OF_HOST);
    if (is_pending(tensor, one))
        compute(tensor, "kb_peek", file, line);
    store_reach(IMAGE_NOW, one.memory, one.offset + dtype_bytes[tensor->dtype]);
    return dtype_value(tensor->dtype, store_at(IMAGE_NOW, one.memory, one.offset));
}
