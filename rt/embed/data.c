/* data.c: bytes between the caller and the memories of the machine, in no time or beside a request that takes it. */
#include "data.h"

#include <inttypes.h>
#include <string.h>

#include "base/address.h"
#include "base/dtype.h"
#include "common/arena.h"
#include "common/array.h"
#include "datapass/exec.h"
#include "failure.h"
#include "host/tensor_data.h"
#include "oplog/oplog.h"
#include "requests.h"
#include "store/contents.h"
#include "store/tensor.h"

static struct ARRAY(struct tensor *) tensors;

void data_reset(void)
{
    array_free(&tensors);
}

/* ---- bytes at an address */

static void record(const char *name, struct tensor *tensor, const void *data)
{
    struct op op = {.kind = OPKIND_memory, .name = name, .pe = OP_OF_HOST,
                    .fill = {.tensor = tensor, .kind = KB_GIVEN, .given = data}};
    failure_machine_works();
    oplog_add(&op);
    failure_machine_rests();
}

/* Bytes of a memory as the one shard of a tensor, which is what the op log knows of the host. */
static struct tensor *tensor_of_bytes(const char *name, const struct range *range, uint64_t address)
{
    struct tensor *tensor = arena_alloc(1, sizeof *tensor);
    uint32_t *pe = arena_alloc(1, sizeof *pe);
    struct shard *shard = arena_alloc(1, sizeof *shard);
    *pe = range->number;
    *shard = (struct shard){.memory = range->memory, .offset = range->offset, .elements = range->bytes, .pe = range->number,
                            .view = {.addr = address, .dtype = DTYPE_u8, .rank = 1,
                                     .shape = {range->bytes, 1, 1, 1}, .stride = {1, 0, 0, 0}}};
    *tensor = (struct tensor){.name = name, .dtype = DTYPE_u8, .dims = {1, {range->bytes}},
                              .place = {.split = KB_WHOLE, .pes = {pe, 1}}, .elements = range->bytes, .shard = shard,
                              .shards = 1};
    return tensor;
}

/* Decodes a range that must be within one memory. */
static enum kb_status decode(uint64_t address, uint64_t bytes, struct range *range)
{
    const char *wrong = bytes ? address_decode(address, bytes, range) : "there are no bytes";
    return wrong ? refuse(KB_WRONG, "%" PRIu64 " bytes at %s: %s", bytes, address_name(address), wrong) : KB_OK;
}

/* Makes sure that results in a range are computed. */
static enum kb_status compute(const struct range *range)
{
    failure_machine_works();
    oplog_settle(true, OP_OF_HOST);
    failure_machine_rests();
    if (!contents_pending(range->memory, range->offset, range->bytes))
        return KB_OK;
    if (!oplog_on)
        return refuse(KB_WRONG, "the bytes are results, which are not computed with KB_SIM_DATA_OFF");
    failure_machine_works();
    exec_data_pass();
    failure_machine_rests();
    return KB_OK;
}

enum kb_status data_poke(uint64_t address, const void *data, uint64_t bytes)
{
    struct range range;
    enum kb_status status = requests_opens();
    if (status == KB_OK)
        status = decode(address, bytes, &range);
    if (status == KB_OK)
        record("poke", tensor_of_bytes("poke", &range, address), data);
    return status;
}

enum kb_status data_peek(uint64_t address, void *data, uint64_t bytes)
{
    struct range range;
    enum kb_status status = decode(address, bytes, &range);
    if (status == KB_OK)
        status = compute(&range);
    if (status == KB_OK)
        contents_read(range.memory, range.offset, bytes, data);
    return status;
}

/* ---- beside a request */

enum kb_status data_transfer(bool writes, const uint64_t *addresses, uint64_t count, uint64_t bytes, void *data,
                             uint64_t *request)
{
    struct range range;
    enum kb_status status = requests_opens();
    bool moves = data;
    if (status == KB_OK)
        status = requests_check_transfer(addresses, count, bytes);
    for (uint64_t i = 0; i < count && status == KB_OK && moves; i++)
        moves = !address_decode(addresses[i], bytes, &range);       /* else the request fails, and moves nothing */
    for (uint64_t i = 0; i < count && status == KB_OK && moves; i++) {
        uint8_t *at = (uint8_t *)data + i * bytes;
        address_decode(addresses[i], bytes, &range);
        if (writes)
            record("host_write", tensor_of_bytes("host_write", &range, addresses[i]), at);
        else if ((status = compute(&range)) == KB_OK)
            contents_read(range.memory, range.offset, bytes, at);
    }
    return status == KB_OK ? requests_transfer(writes, addresses, count, bytes, request) : status;
}

/* ---- tensors */

static enum kb_status check_tensor(const struct tensor *tensor)
{
    for (size_t i = 0; i < tensors.count; i++)
        if (tensors.at[i] == tensor)
            return KB_OK;
    return refuse(KB_WRONG, "that is no tensor of the instance");
}

static enum kb_status check_bytes(const struct tensor *tensor, uint64_t bytes)
{
    uint64_t all = tensor->elements * dtype_bytes[tensor->dtype];
    return bytes == all ? KB_OK : refuse(KB_WRONG, "tensor '%s' has %" PRIu64 " bytes, not %" PRIu64, tensor->name, all, bytes);
}

enum kb_status data_tensor(const struct kb_sim_tensor *ask, struct tensor **made)
{
    enum kb_status status = requests_opens();
    if (status == KB_OK)
        status = requests_check_pes(ask->pes, ask->pe_count);
    if (status != KB_OK)
        return status;
    if (ask->rank > KB_RANK || ask->space > KB_SRAM || ask->split > KB_COPIES)
        return refuse(KB_WRONG, "a tensor has at most %d axes, a space and a split of kb/host.h", KB_RANK);
    uint32_t *pes = arena_alloc(ask->pe_count, sizeof *pes);
    memcpy(pes, ask->pes, ask->pe_count * sizeof *pes);
    struct kb_dims dims = {.rank = ask->rank};
    memcpy(dims.size, ask->size, ask->rank * sizeof *dims.size);
    struct kb_place place = {(enum kb_space)ask->space, (enum kb_split)ask->split, {pes, (uint32_t)ask->pe_count},
                             ask->rows, ask->cols};
    *made = kb_tensor_new_at(ask->name, (enum kb_dtype)ask->dtype, dims, place, "kb_sim_tensor", 0);
    *array_add(&tensors) = *made;
    return KB_OK;
}

enum kb_status data_tensor_set(struct tensor *tensor, const void *data, uint64_t bytes)
{
    enum kb_status status = check_tensor(tensor);
    if (status == KB_OK)
        status = check_bytes(tensor, bytes);
    if (status == KB_OK)
        record("host_write", tensor, data);
    return status;
}

enum kb_status data_tensor_get(struct tensor *tensor, void *data, uint64_t bytes)
{
    enum kb_status status = check_tensor(tensor);
    if (status == KB_OK)
        status = check_bytes(tensor, bytes);
    if (status == KB_OK)
        tensor_data_copy((struct call_site){"kb_sim_tensor_get", "the caller", 0}, tensor, data);
    return status;
}

enum kb_status data_tensor_shard(struct tensor *tensor, uint64_t i, uint64_t *address, uint64_t *bytes)
{
    enum kb_status status = check_tensor(tensor);
    if (status != KB_OK)
        return status;
    if (i >= tensor->shards)
        return refuse(KB_WRONG, "tensor '%s' has %" PRIu32 " shards, there is no number %" PRIu64, tensor->name,
                      tensor->shards, i);
    *address = tensor->shard[i].view.addr;
    *bytes = tensor->shard[i].elements * dtype_bytes[tensor->dtype];
    return KB_OK;
}
