/* host_request.c: requests of the host other than launches.
 *
 *     write          data host -> io_cpu -> m_cpu -> memory; acknowledgements back
 *     read           control messages down; data back
 *     map, unmap     control messages down to each pe_mmu, which does not answer: m_cpu knows when they come
 *
 * io_cpu and m_cpu store and forward. An m_cpu has a channel for writes and one for reads, each with one request in
 * flight at a time, up to its last acknowledgement or data; the others wait in the order of their delivery. An m_cpu that
 * finds a bad address passes nothing on and answers with the failure at once. */
#include "host_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "kb/impl.h"
#include "machine/emitted.h"
#include "machine/memory.h"
#include "machine/mmu.h"
#include "sim/observer.h"

/* ---- memory */

struct memory_leaf {
    uint32_t cube, position;                            /* over the machine; in the request's list of addresses */
    uint64_t address;
    struct range range;
};

struct memory_request *memory_requests;
static struct memory_request *last_request;

/* A dispatch channel of an m_cpu. */
struct dispatch_channel {
    bool busy;
    struct leg *first, *last;                           /* cubes' legs that wait */
};

static struct dispatch_channel *channels;               /* by cube over the machine, first reads, then writes */

static struct memory_request *request_of(const struct leg *leg)
{
    return container_of(leg->fanout, struct memory_request, fanout);
}

static struct memory_leaf *leaf_of(const struct leg *leg)
{
    return &request_of(leg)->leaves[leg_leaf(leg)];
}

static struct leg *leg_of_data(struct data_message *data)
{
    return container_of(data, struct leg, data);
}

static void drained(struct data_message *data)
{
    struct memory_request *request = request_of(leg_of_data(data));
    uint64_t drain_ps = data_drain_ps(data);
    if (request->xfer_ps < drain_ps)
        request->xfer_ps = drain_ps;
}

static void dispatch_next(struct leg *ended);

static void leaf_answered(struct message *message)
{
    struct leg *leaf = leg_of(message);
    fanout_leaf_answered(leaf, false);
    if (leaf->above->answered)
        dispatch_next(leaf->above);
}

static void response_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    (void)head_ps;
    drained(data);
    data_deliver(data, delivered_ps, leaf_answered);
}

static const struct data_kind response = {.arrived = response_arrived};

static void read_reached(struct message *message)
{
    struct leg *leg = leg_of(message);
    const struct range *range = &leaf_of(leg)->range;
    const struct payload *payload = payload_of(range->bytes);
    delivery_settle(&kb_nodes[route_to_rank(message->route)], &message->event);
    struct served served = memory_read(range, payload, now_ps);
    data_send(&leg->data, route_answer(message->route), payload, served.first_ps, served.last_ps - served.first_ps,
              &response);
}

static void write_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    uint64_t done_ps = memory_write_done_ps(&leaf_of(leg_of_data(data))->range, data->payload, head_ps, delivered_ps);
    drained(data);
    control_send(&data->message, route_back(data->message.route), done_ps, leaf_answered);
}

static const struct data_kind written = {.arrived = write_arrived};

static void memory_dispatch(struct leg *cube)
{
    struct memory_request *request = request_of(cube);
    for (uint32_t i = cube->first; i < cube->end; i++) {
        struct leg *leg = &cube->fanout->leaves[i];
        leg->way.to = range_place(&request->leaves[i].range);
        struct route *route = route_of(leg->way);
        if (request->writes)
            data_send(&leg->data, route, payload_of(request->bytes), now_ps, 0, &written);
        else
            control_send(&leg->data.message, route, now_ps, read_reached);
    }
}

static struct dispatch_channel *channel_of(const struct leg *cube)
{
    if (!channels)
        channels = arena_alloc(2 * cube_count(), sizeof *channels);
    return &channels[2 * cube->cube + request_of(cube)->writes];
}

/* Asks the model of a user which of the requests that wait goes next. */
static struct leg **dispatch_choice(struct dispatch_channel *channel)
{
    static struct ARRAY(struct kb_waiting_head) waiting;
    const struct leg *first = channel->first;
    uint32_t rank = place_rank(first->way.to);
    waiting.count = 0;
    for (const struct leg *leg = first; leg; leg = leg->next) {
        uint64_t bytes = product(request_of(leg)->bytes, leg->end - leg->first);
        *array_add(&waiting) = (struct kb_waiting_head){rank, rank, bytes, leg->reached_ps, leg->reached_ps};
    }
    enum kb_head_queue_kind kind = request_of(first)->writes ? KB_WRITES : KB_READS;
    struct leg **link = &channel->first;
    for (uint32_t i = model_choose(first->way.to, kind, waiting.at, waiting.count); i; i--)
        link = &(*link)->next;
    return link;
}

/* The request of a channel is complete at the m_cpu: the next one goes. */
static void dispatch_next(struct leg *ended)
{
    struct dispatch_channel *channel = channel_of(ended);
    channel->busy = channel->first;
    if (!channel->first)
        return;
    bool choose = channel->first->next && kb_fabric_models[NODE_m_cpu].choose;
    struct leg **link = choose ? dispatch_choice(channel) : &channel->first, *next = *link;
    *link = next->next;
    if (channel->last == next && link != &channel->first)
        channel->last = container_of(link, struct leg, next);
    next->next = NULL;
    memory_dispatch(next);
}

static void memory_reached_m_cpu(struct leg *cube)
{
    struct memory_request *request = request_of(cube);
    for (uint32_t i = cube->first; i < cube->end; i++) {
        struct memory_leaf *leaf = &request->leaves[i];
        const char *wrong = address_decode(leaf->address, request->bytes, &leaf->range);
        if (!wrong)
            continue;
        message("fault: BAD_ADDRESS at %s, %" PRIu64 " ps, request %" PRIu64 ", %s of %" PRIu64
                " bytes at %s: %s\n", place_name(cube->way.to), now_ps, request->fanout.correlation,
                request->writes ? "write" : "read", request->bytes, address_name(leaf->address), wrong);
        request->failures[cube->first] = (struct failure){true, FAULT_BAD_ADDRESS, cube->way.to, now_ps};
        fanout_refused(cube);
        return;
    }
    struct dispatch_channel *channel = channel_of(cube);
    if (channel->busy) {
        cube->reached_ps = now_ps;
        *(channel->first ? &channel->last->next : &channel->first) = cube;
        channel->last = cube;
        return;
    }
    channel->busy = true;
    memory_dispatch(cube);
}

static void memory_done(struct fanout *fanout)
{
    struct memory_request *request = container_of(fanout, struct memory_request, fanout);
    request->done_ps = now_ps;
    if (fanout->failed != NO_LEAF)
        request->failure = request->failures[fanout->failed];
    observe_host_request_ends(request);
}

static int compare_leaves(const void *a, const void *b)
{
    const struct memory_leaf *x = a, *y = b;
    if (x->cube != y->cube)
        return x->cube < y->cube ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

void memory_request_submit(struct memory_request *request)
{
    uint32_t *cube = arena_alloc(request->count, sizeof *cube);
    request->leaves = arena_alloc(request->count, sizeof *request->leaves);
    request->failures = arena_alloc(request->count, sizeof *request->failures);
    for (uint32_t i = 0; i < request->count; i++) {
        uint64_t address = request->addresses[i];
        uint32_t sip = address >> 48 & 0xff, in_sip = address >> 40 & 0xff;
        request->leaves[i] =
            (struct memory_leaf){.cube = sip * kb_shape.cubes + in_sip, .position = i, .address = address};
    }
    qsort(request->leaves, request->count, sizeof *request->leaves, compare_leaves);
    for (uint32_t i = 0; i < request->count; i++)
        cube[i] = request->leaves[i].cube;
    *(memory_requests ? &last_request->next : &memory_requests) = request;
    last_request = request;
    request->submitted_ps = now_ps;
    request->fanout = (struct fanout){.leaf_bytes = request->bytes,
                                      .writes = request->writes,
                                      .reads = !request->writes,
                                      .at_m_cpu = memory_reached_m_cpu,
                                      .done = memory_done};
    fanout_plan(&request->fanout, cube, request->count);
    observe_host_request_begins(request);
    fanout_send(&request->fanout);
}

bool memory_request_wait(struct memory_request *request)
{
    fanout_wait(&request->fanout);
    return !request->failure.set;
}

/* ---- pages */

struct map_request {
    const uint32_t *pes;
    const uint64_t *addresses;                          /* NULL: unmap */
    uint64_t va, pages;
    struct fanout fanout;
};

static void pe_mmu_reached(struct message *message)
{
    struct leg *leaf = leg_of(message);
    const struct map_request *request = container_of(leaf->fanout, struct map_request, fanout);
    struct pe *pe = &kb_pe[request->pes[leg_leaf(leaf)]];
    if (request->addresses)
        mmu_map(pe, request->va, request->pages, request->addresses[leg_leaf(leaf)]);
    else
        mmu_unmap(pe, request->va, request->pages);
    fanout_leaf_answered(leaf, false);
}

static void map_dispatch(struct leg *cube)
{
    const struct map_request *request = container_of(cube->fanout, struct map_request, fanout);
    for (uint32_t i = cube->first; i < cube->end; i++) {
        struct leg *leaf = &cube->fanout->leaves[i];
        leaf->way.to = place_pe(request->pes[i], NODE_pe_mmu);
        control_send(&leaf->data.message, route_of(leaf->way), now_ps, pe_mmu_reached);
    }
}

struct fanout *map_request_submit(const uint32_t *pes, const uint64_t *addresses, uint32_t count, uint64_t va,
                                  uint64_t pages)
{
    struct map_request *request = arena_alloc(1, sizeof *request);
    uint32_t *cube = arena_alloc(count, sizeof *cube);
    for (uint32_t i = 0; i < count; i++)
        cube[i] = pes[i] / kb_shape.pes;
    *request = (struct map_request){.pes = pes, .addresses = addresses, .va = va, .pages = pages,
                                    .fanout = {.at_m_cpu = map_dispatch}};
    fanout_plan(&request->fanout, cube, count);
    fanout_send(&request->fanout);
    return &request->fanout;
}

/* ---- delays */

static void host_delay_ended(struct event *event)
{
    struct host_delay *delay = container_of(event, struct host_delay, event);
    delay->ended(delay);
}

void host_delay_begin(struct host_delay *delay, uint64_t ps, uint64_t position,
                      void (*ended)(struct host_delay *delay))
{
    delay->ended = ended;
    event_set(&delay->event, event_order(place_rank(place_host()), CLASS_KERNEL, 0), position, host_delay_ended);
    event_at(&delay->event, time_after(now_ps, ps));
}

void host_delay_cancel(struct host_delay *delay)
{
    event_cancel(&delay->event);
}

void host_requests_reset(void)
{
    channels = NULL;
    memory_requests = last_request = NULL;
}

const struct handler host_request_handlers[] = {
    HANDLER(leaf_answered, "memory's answer at m_cpu"),
    HANDLER(read_reached, "the host's read at its memory"),
    HANDLER(pe_mmu_reached, "map or unmap at pe_mmu"),
    HANDLER(host_delay_ended, "end of the host's delay"),
    {0}};
