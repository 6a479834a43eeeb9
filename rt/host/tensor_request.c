/* tensor_request.c: tensors that a bench writes or reads over the fabric: one memory request for all shards of one size, in the
 * order of the first of each size, one after the other. */
#include "tensor_request.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "common/arena.h"
#include "host.h"
#include "launch/host_request.h"
#include "sim/loop.h"
#include "sim/observer.h"

struct kb_request {
    struct call_site call;
    const struct tensor *tensor;
    bool writes;
    uint32_t shards, next;                              /* to move; the first that may not be requested */
    bool *requested;
    struct memory_request *request;                     /* in flight; of one that failed, the one that did */
    bool complete, failed;
    struct sim_wait waiter;
    struct kb_request *later;
};

static struct kb_request *requests, *last;              /* in the order of their calls */

static uint64_t shard_bytes(const struct tensor *tensor, uint32_t i)
{
    return tensor->shard[i].elements * dtype_bytes[tensor->dtype];
}

static void request_ended(void *owner);

/* Submits the next memory request. Completes the whole if no shard is left. */
static void go_on(struct kb_request *whole)
{
    const struct tensor *tensor = whole->tensor;
    uint32_t first = whole->next;
    while (first < whole->shards && (whole->requested[first] || !shard_bytes(tensor, first)))
        first++;
    whole->next = first;
    whole->complete = first == whole->shards;
    if (whole->complete) {
        sim_wake(&whole->waiter);
        return;
    }
    uint64_t *addresses = arena_alloc(whole->shards, sizeof *addresses), bytes = shard_bytes(tensor, first);
    uint32_t count = 0;
    for (uint32_t i = first; i < whole->shards; i++)
        if (shard_bytes(tensor, i) == bytes) {
            whole->requested[i] = true;
            addresses[count++] = tensor->shard[i].view.addr;
        }
    whole->request = arena_alloc(1, sizeof *whole->request);
    *whole->request =
        (struct memory_request){.writes = whole->writes, .addresses = addresses, .count = count, .bytes = bytes};
    memory_request_submit(whole->request);
    whole->request->fanout.ended = request_ended;
    whole->request->fanout.owner = whole;
}

static void request_ended(void *owner)
{
    struct kb_request *whole = owner;
    whole->failed = whole->request->failure.set;
    if (whole->failed)
        whole->next = whole->shards;
    observe_host_calls(whole->call.file, whole->call.line);
    go_on(whole);
}

struct kb_request *tensor_request_begin(struct call_site call, const struct tensor *tensor, bool writes)
{
    struct kb_request *whole = arena_alloc(1, sizeof *whole);
    uint32_t shards = !writes && tensor->place.split == KB_COPIES ? 1 : tensor->shards;
    *whole = (struct kb_request){.call = call, .tensor = tensor, .writes = writes, .shards = shards};
    whole->requested = arena_alloc(shards, sizeof *whole->requested);
    *(requests ? &last->later : &requests) = whole;
    last = whole;
    observe_host_calls(call.file, call.line);
    go_on(whole);
    return whole;
}

void tensor_request_wait(struct call_site call, struct kb_request *whole)
{
    if (!whole->complete)
        sim_sleep(&whole->waiter);
    const struct memory_request *request = whole->request;
    if (whole->failed)
        host_stop(call, arena_printf("request %" PRIu64 " failed with %s at %s, %" PRIu64 " ps",
                                     request->fanout.correlation, fault_names[request->failure.code],
                                     place_name(request->failure.node), request->failure.t_ps));
}

void tensor_requests_wait(void)
{
    for (struct kb_request *whole = requests; whole; whole = whole->later)
        tensor_request_wait(whole->call, whole);
}

void tensor_requests_reset(void)
{
    requests = last = NULL;
}
