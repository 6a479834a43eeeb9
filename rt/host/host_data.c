/* host_data.c: what a bench writes, reads and maps over the fabric. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "machine/emitted.h"
#include "host_program.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "look.h"
#include "common/fail.h"
#include "machine/mmu.h"
#include "oplog/oplog.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "store/tensor.h"
#include "common/arena.h"

/* The call that is being worked off. */
struct call {
    const char *name, *file;
    uint32_t line;
};

static void check_tensor(const struct call *call, const struct tensor *tensor)
{
    tensor_check(tensor, call->name, call->file, call->line);
    program_check_pes(call->name, tensor->place.pes, call->file, call->line);
}

/* After a launch that did not end well the host asks for nothing more. */
static void check_good(const struct call *call)
{
    if (launch_bad())
        program_ends(arena_printf("%s: refused", call->name), launch_outcome(launch_bad()), call->file, call->line);
}

/* ---- memory requests */

static uint64_t shard_bytes(const struct tensor *tensor, uint32_t i)
{
    return tensor->shard[i].elements * dtype_bytes[tensor->dtype];
}

static void request_run(const struct call *call, bool writes, const uint64_t *addresses, uint32_t count, uint64_t bytes)
{
    struct memory_request *request = arena_alloc(1, sizeof *request);
    *request = (struct memory_request){.writes = writes, .addresses = addresses, .count = count, .bytes = bytes};
    if (!memory_request_run(request))
        program_ends(call->name, arena_printf("request %" PRIu64 " failed with %s at %s, %" PRIu64 " ps",
                                              request->fanout.correlation, fault_names[request->failure.code],
                                              place_name(request->failure.node), request->failure.t_ps),
                     call->file, call->line);
}

/* One request for all shards of one size, in the order of the first of each size. */
static void shards_move(const struct call *call, const struct tensor *tensor, bool writes)
{
    uint32_t shards = !writes && tensor->place.split == KB_COPIES ? 1 : tensor->shards;
    bool *moved = arena_alloc(shards, sizeof *moved);
    for (uint32_t first = 0; first < shards; first++) {
        uint64_t bytes = shard_bytes(tensor, first);
        if (moved[first] || bytes == 0)
            continue;
        uint64_t *addresses = arena_alloc(shards, sizeof *addresses);
        uint32_t count = 0;
        for (uint32_t i = first; i < shards; i++)
            if (shard_bytes(tensor, i) == bytes) {
                moved[i] = true;
                addresses[count++] = tensor->shard[i].view.addr;
            }
        request_run(call, writes, addresses, count, bytes);
    }
}

void kb_write_at(kb_tensor tensor, const void *data, const char *file, uint32_t line)
{
    host_only("kb_write", file, line);
    struct call call = {"kb_write", file, line};
    check_tensor(&call, tensor);
    check_good(&call);
    if (data) {
        struct op op = {.kind = OPKIND_memory, .name = "host_write", .pe = OP_OF_HOST, .file = file, .line = line,
                        .fill = {.tensor = tensor, .kind = KB_GIVEN, .given = data}};
        oplog_add(&op);
    }
    shards_move(&call, tensor, true);
}

/* ---- what is read */

void kb_read_at(kb_tensor tensor, void *data, const char *file, uint32_t line)
{
    host_only("kb_read", file, line);
    struct call call = {"kb_read", file, line};
    check_tensor(&call, tensor);
    check_good(&call);
    if (data)
        look(tensor, data, call.name, file, line);
    shards_move(&call, tensor, false);
}

/* ---- maps */

static int compare_pes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A set in rank order. */
static uint32_t *in_rank_order(const struct call *call, struct kb_pes pes)
{
    if (pes.count == 0)
        misuse(call->file, call->line, "%s: there is no PE", call->name);
    program_check_pes(call->name, pes, call->file, call->line);
    uint32_t *sorted = arena_alloc(pes.count, sizeof *sorted);
    memcpy(sorted, pes.pe, pes.count * sizeof *sorted);
    qsort(sorted, pes.count, sizeof *sorted, compare_pes);
    return sorted;
}

/* The pages of some bytes from va on. */
static uint64_t pages_of(const struct call *call, uint64_t va, uint64_t bytes)
{
    uint64_t pages;
    const char *wrong = map_pages(va, bytes, &pages);
    if (wrong)
        misuse(call->file, call->line, "%s: %s", call->name, wrong);
    return pages;
}

static const struct shard *shard_for(const struct call *call, const struct tensor *tensor, uint32_t pe)
{
    if (tensor->place.split == KB_WHOLE)
        return tensor->shard;
    for (uint32_t i = 0; i < tensor->shards; i++)
        if (tensor->shard[i].pe == pe)
            return &tensor->shard[i];
    misuse(call->file, call->line, "%s: tensor '%s' is not placed with %s", call->name, tensor->name,
           pe_name(&kb_pe[pe]));
}

void kb_map_at(struct kb_pes pes, uint64_t va, kb_tensor tensor, const char *file, uint32_t line)
{
    host_only("kb_map", file, line);
    struct call call = {"kb_map", file, line};
    tensor_check(tensor, call.name, file, line);
    uint32_t *sorted = in_rank_order(&call, pes);
    uint64_t *addresses = arena_alloc(pes.count, sizeof *addresses), most = 0;
    for (uint32_t i = 0; i < pes.count; i++) {
        const struct shard *shard = shard_for(&call, tensor, sorted[i]);
        uint64_t bytes = shard->elements * dtype_bytes[tensor->dtype];
        addresses[i] = shard->view.addr;
        most = bytes > most ? bytes : most;
    }
    uint64_t pages = pages_of(&call, va, most);
    check_good(&call);
    map_request_run(sorted, addresses, pes.count, va, pages);
}

void kb_unmap_at(struct kb_pes pes, uint64_t va, uint64_t bytes, const char *file, uint32_t line)
{
    host_only("kb_unmap", file, line);
    struct call call = {"kb_unmap", file, line};
    uint32_t *sorted = in_rank_order(&call, pes);
    uint64_t pages = pages_of(&call, va, bytes);
    if (pages == 0)
        misuse(file, line, "kb_unmap: no bytes are to be unmapped");
    check_good(&call);
    map_request_run(sorted, NULL, pes.count, va, pages);
}
