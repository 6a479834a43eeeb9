/* fabric.c: messages over the fabric.
 *
 * Control messages do not compete for links: each is delivered after the latency of its way. Data messages cut through:
 * at each node the head waits for the node, which then handles it for its overhead, and for the next link, which the
 * message then occupies for bytes / bandwidth. */
#include "fabric.h"

#include <assert.h>
#include <inttypes.h>

#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "common/hash.h"
#include "common/pool.h"
#include "emitted.h"
#include "kb/impl.h"
#include "stats.h"

/* Attributes by kind of node and by class of link. */
static struct {
    uint64_t overhead_ps[NODE_KINDS];
    struct {
        uint64_t bw_bps, latency_ps;
    } link[LINK_CLASSES];
} spec;

/* The longest that a node with a model of a user may handle a control message: 281 s. */
#define CONTROL_MOST_PS (UINT64_C(1) << 48)

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

static enum node_kind place_kind(struct place place)
{
    return place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind;
}

static uint64_t node_overhead_ps(struct place place)
{
    return spec.overhead_ps[place_kind(place)];
}

static void models_init(void);

void fabric_init(void)
{
    models_init();
#define LINK(name, bw, latency)                                                                                        \
    spec.link[LINK_##name].bw_bps = kb_attrs.bw, spec.link[LINK_##name].latency_ps = kb_attrs.latency;
#include "kb/links.def"
#undef LINK
#define NODE(kind) spec.overhead_ps[NODE_##kind] = kb_attrs.kind##_overhead_ps;
#include "kb/kinds.def"
}

/* ---- models of users: how long a node handles a message, and which waiting head takes a link that is free */

/* The number of a node among those of its kind over the machine. */
static uint32_t node_number(struct place place)
{
    if (place.cube == OUTSIDE)
        return place.node < SYSTEM_NODES ? 0 : place.sip;
    const struct cube_node *node = &kb_cube_nodes[place.node];
    uint32_t in_cube = node->kind == NODE_router ? kb_shape.noc_rows * kb_shape.noc_cols
                     : node->kind == NODE_port ? SIDES : 1;
    return place_cube(place) * in_cube + node->index;
}

static struct kb_handled model_handles(struct place at, const struct way *way, uint64_t bytes, uint64_t t_ps)
{
    const struct fabric_model *model = &kb_fabric_models[place_kind(at)];
    const struct kb_head_request ask = {node_number(at), place_rank(way->from), place_rank(way->to), bytes, t_ps};
    struct kb_handled said = model->handle(&ask);
    if (said.ready_ps < t_ps || said.ready_ps > (bytes ? UINT64_MAX - 1 : CONTROL_MOST_PS))
        run_failed("%s_service of %s: a %s message that reaches %s at %" PRIu64 " ps cannot be handled at %" PRIu64
                   " ps", model->name, kb_machine_name, bytes ? "data" : "control", place_name(at), t_ps,
                   said.ready_ps);
    return said;
}

uint32_t model_choose(struct place at, unsigned kind, const struct kb_waiting_head *waiting, uint32_t count)
{
    const struct fabric_model *model = &kb_fabric_models[place_kind(at)];
    uint32_t choice = model->choose(&(struct kb_head_queue){(enum kb_head_queue_kind)kind, node_number(at), now_ps, count, waiting});
    if (choice >= count)
        run_failed("%s_next of %s: it chooses number %" PRIu32 " of %" PRIu32 " that wait at %s at %" PRIu64 " ps",
                   model->name, kb_machine_name, choice, count, place_name(at), now_ps);
    return choice;
}

static uint64_t control_handled_ps(const struct way *way, struct place at)
{
    return kb_fabric_models[place_kind(at)].handle ? model_handles(at, way, 0, 0).ready_ps : node_overhead_ps(at);
}

static uint64_t walk_latency_ps(const struct way *way)
{
    uint64_t latency_ps = 0;
    uint32_t end = place_rank(way->to);
    for (struct place at = way->from; place_rank(at) != end;) {
        struct hop hop = way_next(way, at);
        latency_ps += spec.link[hop.class].latency_ps;
        latency_ps += control_handled_ps(way, hop.to);
        at = hop.to;
    }
    return latency_ps;
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
static inline __attribute__((always_inline)) struct hop data_next(struct data_message *data)
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

/* The head takes a link, at head_ps or when the link is free. Returns when the link is free again. */
static inline uint64_t link_take(struct data_message *data, struct hop hop, uint64_t head_ps, bool watched)
{
    uint64_t length = data->link_ps[hop.class], start = reserve(&kb_links[hop.link].free_ps, head_ps, length);
    stats_link(hop.link, hop.class, data->bytes, head_ps, start, length, watched);
    if (data->drain_ps < length)
        data->drain_ps = length;
    message_at(&data->message, data->rank, time_after(start, spec.link[hop.class].latency_ps), data_arrives);
    return start + length;
}

/* The head of a message that waits for a link. The message is already at the end of that hop. */
struct waiting_head {
    struct waiting_head *next;
    struct data_message *data;
    struct hop hop;
    uint64_t arrived_ps, head_ps;
};

/* The heads that wait for a link which begins at a node with a model of a user. */
struct link_queue {
    struct event event;                                 /* the link is free */
    struct place from;
    struct waiting_head *first, **end;                  /* in the order of their arrival */
    uint32_t count;
};

static struct link_queue *link_queues;                  /* by link; NULL: no kind of node has a model */
static struct pool waiting_heads;
static struct ARRAY(struct kb_waiting_head) choices;

static void models_init(void)
{
    pool_release(&waiting_heads);
    link_queues = NULL;
    for (unsigned kind = 0; kind < NODE_KINDS; kind++)
        if (kb_fabric_models[kind].choose && !link_queues)
            link_queues = arena_alloc(link_count(), sizeof *link_queues);
    if (link_queues || kb_has_model[NODE_pe_tcm])
        observe_models();
}

/* Asks the model of the node where a link begins which head takes it. */
static struct waiting_head **link_choice(struct link_queue *queue)
{
    if (queue->count == 1)
        return &queue->first;
    choices.count = 0;
    for (const struct waiting_head *head = queue->first; head; head = head->next) {
        const struct way *way = &head->data->message.way;
        *array_add(&choices) = (struct kb_waiting_head){place_rank(way->from), place_rank(way->to), head->data->bytes,
                                                        head->arrived_ps, head->head_ps};
    }
    uint32_t choice = model_choose(queue->from, KB_LINK, choices.at, queue->count);
    struct waiting_head **link = &queue->first;
    for (; choice; choice--)
        link = &(*link)->next;
    return link;
}

static void link_is_free(struct event *event)
{
    struct link_queue *queue = container_of(event, struct link_queue, event);
    uint64_t *free_ps = &kb_links[queue - link_queues].free_ps;
    while (queue->count && *free_ps <= now_ps) {
        struct waiting_head **link = link_choice(queue), *head = *link;
        *link = head->next;
        if (queue->end == &head->next)
            queue->end = link;
        queue->count--;
        observed_cause = head->data->message.cause;
        link_take(head->data, head->hop, head->head_ps, true);
        pool_give_back(&waiting_heads, head);
    }
    if (queue->count)
        event_at(&queue->event, *free_ps);
}

/* The head leaves a node with a model of a user: it takes the next link if that is free, or waits for it. */
static void link_ask(struct data_message *data, uint64_t head_ps)
{
    struct place from = data->at;
    uint32_t rank = data->rank;
    struct hop hop = data_next(data);
    struct link_queue *queue = &link_queues[hop.link];
    uint64_t free_ps = kb_links[hop.link].free_ps;
    if (!queue->count && free_ps <= now_ps) {
        link_take(data, hop, head_ps, true);
        return;
    }
    struct waiting_head *head = pool_reuse(&waiting_heads, sizeof *head);
    *head = (struct waiting_head){NULL, data, hop, now_ps, head_ps};
    if (!queue->count++) {
        queue->from = from;
        queue->end = &queue->first;
        /* After all messages of a round that arrive at the node. */
        event_set(&queue->event, event_order(rank, CLASS_MESSAGE, UINT32_MAX), hop.link, link_is_free);
        event_at(&queue->event, free_ps);
    }
    *queue->end = head;
    queue->end = &head->next;
}

/* The head leaves a node over the next link of its way. Returns when the link is free again. This function and its
 * callers are compiled twice: for observers of reservations and models of users, and without them. */
static inline uint64_t data_hop_made(struct data_message *data, uint64_t head_ps, bool watched)
{
    if (watched && kb_fabric_models[place_kind(data->at)].choose) {
        /* Only pe_dma, which has no such model, needs to know when its link is free. */
        assert(!data->left || data->rank != place_rank(data->message.way.from));
        link_ask(data, head_ps);
        return 0;
    }
    return link_take(data, data_next(data), head_ps, watched);
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
    uint64_t free_ps = data_hop(data, now_ps, is_observed_or_modelled(MOMENT_reserved));
    if (data->left)
        data->left(data, free_ps);
}

static void data_leaves(struct event *event)
{
    data_leave(data_of(event));
}

/* When a node has handled the head of a message that has arrived. */
static inline uint64_t data_handled_ps(struct data_message *data, bool watched)
{
    if (watched && kb_fabric_models[place_kind(data->at)].handle) {
        struct kb_handled said = model_handles(data->at, &data->message.way, data->bytes, now_ps);
        uint64_t start_ps = said.wait_ps < said.ready_ps - now_ps ? now_ps + said.wait_ps : said.ready_ps;
        stats_node(data->rank, data->bytes, now_ps, start_ps, said.ready_ps - start_ps, watched);
        return said.ready_ps;
    }
    uint64_t overhead = node_overhead_ps(data->at);
    uint64_t start_ps = reserve(&kb_nodes[data->rank].free_ps, now_ps, overhead);
    stats_node(data->rank, data->bytes, now_ps, start_ps, overhead, watched);
    return start_ps + overhead;
}

static inline void data_arrives_made(struct data_message *data, bool watched)
{
    uint64_t head_ps = data_handled_ps(data, watched);
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
    if (is_observed_or_modelled(MOMENT_reserved))
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
    HANDLER(link_is_free, "a link that heads wait for is free"),
    {0}};
