/* fabric.c: messages over the fabric.
 *
 * Control messages do not compete for links: each is delivered after the latency of its way. Data messages cut through:
 * at each node the head waits for the node, which then handles it for its overhead, and for the next link, which the
 * message then occupies for bytes / bandwidth. */
#include "fabric.h"

#include "base/rates.h"
#include "common/arena.h"
#include "common/hash.h"
#include "emitted.h"
#include "stats.h"

/* Attributes by kind of node and by class of link. */
static struct {
    uint64_t overhead_ps[NODE_KINDS];
    struct {
        uint64_t bw_bps, latency_ps;
    } link[LINK_CLASSES];
} spec;

enum { WAY_BITS = 14, WAYS = 1 << WAY_BITS, LENGTH_BITS = 8, LENGTHS = 1 << LENGTH_BITS };

/* Caches, by a hash of the way, or of the length of a message. */
static struct {
    struct {
        uint64_t key, latency_ps;
    } ways[WAYS];
    struct {
        uint64_t bytes, link_ps[LINK_CLASSES];
    } lengths[LENGTHS];
} cache;

static uint64_t node_overhead_ps(struct place place)
{
    return spec.overhead_ps[place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind];
}

void fabric_init(void)
{
#define LINK(name, bw, latency)                                                                                        \
    spec.link[LINK_##name].bw_bps = kb_attrs.bw, spec.link[LINK_##name].latency_ps = kb_attrs.latency;
#include "kb/links.def"
#undef LINK
#define NODE(kind) spec.overhead_ps[NODE_##kind] = kb_attrs.kind##_overhead_ps;
#include "kb/kinds.def"
}

static uint64_t walk_latency_ps(const struct way *way)
{
    uint64_t sum = 0;
    uint32_t end = place_rank(way->to);
    for (struct place at = way->from; place_rank(at) != end;) {
        struct hop hop = way_next(way, at);
        sum += spec.link[hop.class].latency_ps + node_overhead_ps(hop.to);
        at = hop.to;
    }
    return sum;
}

uint64_t way_latency_ps(const struct way *way)
{
    uint64_t key =
        (uint64_t)place_rank(way->from) << (RANK_BITS + 1) | (uint64_t)place_rank(way->to) << 1 | way->direction;
    size_t slot = hash_bits(key, WAY_BITS);
    if (cache.ways[slot].key != key) {                  /* the key of an empty slot, 0, is the host to itself */
        cache.ways[slot].key = key;
        cache.ways[slot].latency_ps = walk_latency_ps(way);
    }
    return cache.ways[slot].latency_ps;
}

/* Gives a message the next number of a node. */
static void number_as(struct message *message, uint32_t creator)
{
    message->creator = creator;
    message->event.key = ++kb_nodes[creator].messages;
}

static void message_at(struct message *message, uint32_t rank, uint64_t t_ps, void (*fire)(struct event *))
{
    message->event.order = event_order(rank, CLASS_MESSAGE, message->creator);
    message->event.fire = fire;
    event_at(&message->event, t_ps);
}

static void message_delivered(struct event *event)
{
    struct message *message = container_of(event, struct message, event);
    if (is_observed(MOMENT_reserved))
        observed_cause = message->cause;
    message->delivered(message);
}

struct path path_of(struct way way)
{
    return (struct path){way, place_rank(way.from), place_rank(way.to), way_latency_ps(&way)};
}

void control_send_over(struct message *message, const struct path *path, uint64_t leave_ps,
                       void (*delivered)(struct message *))
{
    number_as(message, path->from_rank);
    message->way = path->way;
    message->delivered = delivered;
    uint64_t delivered_ps = time_after(leave_ps, path->latency_ps);
    observe_control_sent(message, leave_ps, delivered_ps);
    message_at(message, path->to_rank, delivered_ps, message_delivered);
}

void control_send(struct message *message, struct way way, uint64_t leave_ps, void (*delivered)(struct message *))
{
    struct path path = path_of(way);
    control_send_over(message, &path, leave_ps, delivered);
}

/* ---- data */

static struct data_message *data_of(struct event *event)
{
    return container_of(container_of(event, struct message, event), struct data_message, message);
}

static void data_arrives(struct event *event);

void data_enter(struct data_message *data, struct place at)
{
    data->at = at;
    data->rank = place_rank(at);
    if (at.cube != OUTSIDE)
        data->passage = way_passage(&data->message.way, at);
}

/* Takes the next step of the way: the message is then at the step's end. */
static struct hop data_next(struct data_message *data)
{
    if (data->at.cube == OUTSIDE || data->at.node == data->passage.goal) {
        struct hop hop = way_next(&data->message.way, data->at);
        data_enter(data, hop.to);
        return hop;
    }
    uint32_t number = passage_link(&data->passage, &kb_cube_nodes[data->at.node]);
    const struct cube_link *link = &kb_cube_links[number];
    data->at.node = link->to;
    data->rank = data->passage.rank + link->to;
    return (struct hop){data->passage.link + number, link->class, data->at};
}

/* The head leaves a node over the next link of its way, at head_ps or when the link is free. Returns when the link is
 * free again. This function and its callers are compiled twice: for observers of reservations, and without them. */
static inline uint64_t data_hop_made(struct data_message *data, uint64_t head_ps, bool watched)
{
    struct hop hop = data_next(data);
    uint64_t length = data->link_ps[hop.class], start = reserve(&kb_links[hop.link].free_ps, head_ps, length);
    stats_link(hop.link, hop.class, data->bytes, head_ps, start, length, watched);
    if (data->drain_ps < length)
        data->drain_ps = length;
    message_at(&data->message, data->rank, time_after(start, spec.link[hop.class].latency_ps), data_arrives);
    return start + length;
}

static __attribute__((noinline)) uint64_t data_hop_unwatched(struct data_message *data, uint64_t head_ps)
{
    return data_hop_made(data, head_ps, false);
}

static __attribute__((cold, noinline)) uint64_t data_hop_watched(struct data_message *data, uint64_t head_ps)
{
    observed_cause = data->message.cause;
    return data_hop_made(data, head_ps, true);
}

static inline uint64_t data_hop(struct data_message *data, uint64_t head_ps, bool watched)
{
    return watched ? data_hop_watched(data, head_ps) : data_hop_unwatched(data, head_ps);
}

static void data_leave(struct data_message *data)
{
    uint64_t free_ps = data_hop(data, now_ps, is_observed(MOMENT_reserved));
    if (data->left)
        data->left(data, free_ps);
}

static void data_leaves(struct event *event)
{
    data_leave(data_of(event));
}

static inline void data_arrives_made(struct data_message *data, bool watched)
{
    uint64_t overhead = node_overhead_ps(data->at);
    uint64_t start_ps = reserve(&kb_nodes[data->rank].free_ps, now_ps, overhead), head_ps = start_ps + overhead;
    stats_node(data->rank, data->bytes, now_ps, start_ps, overhead, watched);
    if (data->rank != data->end_rank) {
        data_hop(data, head_ps, watched);
        return;
    }
    uint64_t tail = data->drain_ps > data->stream_ps ? data->drain_ps : data->stream_ps;
    data->arrived(data, head_ps, time_after(head_ps, tail));
}

static __attribute__((cold, noinline)) void data_arrives_watched(struct data_message *data)
{
    observed_cause = data->message.cause;
    data_arrives_made(data, true);
}

static void data_arrives(struct event *event)
{
    if (is_observed(MOMENT_reserved))
        data_arrives_watched(data_of(event));
    else
        data_arrives_made(data_of(event), false);
}

/* Sets how long a message occupies a link of each class. */
static void link_times(struct data_message *data, uint64_t bytes)
{
    data->bytes = bytes;
    size_t slot = hash_bits(bytes, LENGTH_BITS);
    if (cache.lengths[slot].bytes != bytes) {
        cache.lengths[slot].bytes = bytes;
        for (unsigned class = 0; class < LINK_CLASSES; class++)
            cache.lengths[slot].link_ps[class] = move_ps(bytes, spec.link[class].bw_bps);
    }
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        data->link_ps[class] = cache.lengths[slot].link_ps[class];
}

void data_send(struct data_message *data, struct way way, uint64_t bytes, uint64_t leave_ps, uint64_t stream_ps,
               void (*arrived)(struct data_message *, uint64_t, uint64_t))
{
    data->message.way = way;
    data_enter(data, way.from);
    number_as(&data->message, data->rank);
    data->end_rank = place_rank(way.to);
    if (data->bytes != bytes)                           /* otherwise they are left from its last message */
        link_times(data, bytes);
    data->stream_ps = stream_ps;
    data->drain_ps = 0;
    data->arrived = arrived;
    if (leave_ps == now_ps)
        data_leave(data);
    else
        message_at(&data->message, data->rank, leave_ps, data_leaves);
}

void data_deliver(struct data_message *data, uint64_t delivered_ps, void (*delivered)(struct message *))
{
    data->message.delivered = delivered;
    if (delivered_ps == now_ps)
        delivered(&data->message);
    else
        message_at(&data->message, data->end_rank, delivered_ps, message_delivered);
}

bool data_under_way(const struct data_message *data)
{
    return data->message.event.fire == data_leaves || data->message.event.fire == data_arrives;
}

bool event_is_message(const struct event *event)
{
    return event->fire == message_delivered;
}

const struct handler fabric_handlers[] = {
    HANDLER(data_arrives, "data head at a node"),
    HANDLER(data_leaves, "data leave their source"),
    {0}};
