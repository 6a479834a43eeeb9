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

static struct run run_of(const struct tensor *tensor, uint64_t position)
{
    uint32_t shards = tensor->place.split == KB_COPIES ? 1 : tensor->shards;
    for (uint32_t i = 0; i < shards; i++)
        for (uint64_t row = 0; row < tensor_rows(&tensor->shard[i]); row++) {
            struct run run = tensor_row(tensor, &tensor->shard[i], row);
            if (position >= run.position && position - run.position < run.count)
                return run;
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
    struct run run = run_of(tensor, position);
    uint64_t size = dtype_bytes[tensor->dtype];
    struct run one = {run.memory, run.offset + (position - run.position) * size, position, 1};
    oplog_settle(true, OP_OF_HOST);
    if (is_pending(tensor, one))
        compute(tensor, "kb_peek", file, line);
    store_reach(IMAGE_NOW, one.memory, one.offset + size);
    return dtype_value(tensor->dtype, store_at(IMAGE_NOW, one.memory, one.offset));
}
