/* fabric.c: messages over the fabric.
 *
 * Control messages do not compete for links: each is delivered after the latency of its way. Data messages cut through:
 * at each node the head waits for the node, which then handles it for its overhead, and for the next link, which the
 * message then occupies for bytes / bandwidth. */
#include "fabric.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
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
    bool modelled;                                      /* a model of a user says what nodes of a kind take */
} spec;

/* The longest that a node with a model of a user may handle a control message: 281 s. */
#define CONTROL_MOST_PS (UINT64_C(1) << 48)

static struct {
    struct key_table table;
    uint64_t *within;                                   /* latencies within a cube and 1, by direction and nodes */
} routes;

static enum node_kind place_kind(struct place place)
{
    return place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind;
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
    return kb_fabric_models[place_kind(at)].handle ? model_handles(at, way, 0, 0).ready_ps : spec.overhead_ps[place_kind(at)];
}

/* ---- routes */

struct route *route_of(struct way way)
{
    uint32_t from = place_rank(way.from), to = place_rank(way.to);
    uint64_t key = (uint64_t)from << (RANK_BITS + 1) | (uint64_t)to << 1 | way.direction;
    struct route *route = key_table_find(&routes.table, key);
    if (route)
        return route;
    route = arena_alloc(1, sizeof *route);
    *route = (struct route){.way = way, .from_rank = from, .to_rank = to, .latency_ps = UINT64_MAX};
    key_table_add(&routes.table, &route->link, key);
    return route;
}

struct route *route_back(struct route *route)
{
    if (!route->back) {
        route->back = route_of(way_back(route->way));
        route->back->back = route;
    }
    return route->back;
}

uint64_t link_latency_ps(enum link_class class)
{
    return spec.link[class].latency_ps;
}

struct control_hop control_hop(const struct way *way, struct hop hop)
{
    return (struct control_hop){spec.link[hop.class].latency_ps, control_handled_ps(way, hop.to)};
}

static uint64_t hop_latency_ps(const struct traversal *along)
{
    struct control_hop hop = control_hop(&along->way, along->hop);
    return hop.link_ps + hop.node_ps;
}

/* Goes on to the last node of a cube, and returns the latency of that. It is the same in all cubes, unless a model of a
 * user says what a node takes. */
static uint64_t cube_latency_ps(struct traversal *along)
{
    size_t nodes = kb_shape.cube_nodes;
    if (!routes.within)
        routes.within = arena_alloc(DIRECTIONS * nodes * nodes, sizeof *routes.within);
    uint64_t *known = &routes.within[(along->way.direction * nodes + along->hop.to.node) * nodes + along->goal];
    if (!*known) {
        struct traversal walk = *along;
        while (traversal_is_inside(&walk) && traversal_next(&walk))
            *known += hop_latency_ps(&walk);
        *known += 1;                                    /* 0: it is not known */
    }
    traversal_set(along, along->goal);
    return *known - 1;
}

struct route *route_answer_made(struct route *route)
{
    struct route *back = route_back(route);
    route_list_steps(back);
    return back;
}

static uint64_t walk_latency_ps(const struct way *way)
{
    uint64_t latency_ps = 0;
    for (struct traversal along = traversal_of(*way);;) {
        if (!spec.modelled && traversal_is_inside(&along))
            latency_ps += cube_latency_ps(&along);
        if (!traversal_next(&along))
            return latency_ps;
        latency_ps += hop_latency_ps(&along);
    }
}

uint64_t route_latency_ps(struct route *route)
{
    if (route->latency_ps == UINT64_MAX)
        route->latency_ps = walk_latency_ps(&route->way);
    return route->latency_ps;
}

__attribute__((noinline)) void route_list_steps(struct route *route)
{
    static struct ARRAY(struct step) steps;
    steps.count = 0;
    for (struct traversal along = traversal_of(route->way); traversal_next(&along);)
        *array_add(&steps) = (struct step){along.hop.link, along.rank, along.hop.class, place_kind(along.hop.to),
                                           along.rank == route->to_rank};
    route->length = steps.count;
    route->steps = memcpy(arena_alloc(steps.count, sizeof *steps.at), steps.at, steps.count * sizeof *steps.at);
}

/* ---- messages */

/* Gives a message the next number of the node where its route begins. */
static void message_number(struct message *message, struct route *route)
{
    message->route = route;
    control_number(message, &kb_nodes[route->from_rank]);
}

static void message_at(struct message *message, uint32_t rank, uint64_t t_ps, void (*fire)(struct event *))
{
    message->event.order = event_order(rank, CLASS_MESSAGE, message->route->from_rank);
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

/* The same if somebody watches, or the latency of the route is not known yet. */
static __attribute__((cold, noinline)) void control_leaves(struct message *message, uint64_t leave_ps)
{
    struct route *route = message->route;
    uint64_t delivered_ps = time_after(leave_ps, route_latency_ps(route));
    observe_control_sent(message, leave_ps, delivered_ps);
    message_at(message, route->to_rank, delivered_ps, message_delivered);
}

void control_send(struct message *message, struct route *route, uint64_t leave_ps,
                  void (*delivered)(struct message *))
{
    message_number(message, route);
    message->delivered = delivered;
    if (route->latency_ps == UINT64_MAX || is_observed(MOMENT_control_sent))
        control_leaves(message, leave_ps);
    else
        message_at(message, route->to_rank, time_after(leave_ps, route->latency_ps), message_delivered);
}

void control_catch_up(struct message *message, struct route *route, uint64_t delivered_ps,
                      void (*delivered)(struct message *), const struct event *by)
{
    struct event *event = &message->event;
    message->route = route;
    message->delivered = delivered;
    event_set(event, event_order(route->to_rank, CLASS_MESSAGE, route->from_rank), event->key, message_delivered);
    event->t_ps = delivered_ps;
    event_catch_up(event, by);
}

/* ---- data */

static struct data_message *data_of(struct event *event)
{
    return container_of(container_of(event, struct message, event), struct data_message, message);
}

static void data_arrives(struct event *event);
static void data_leaves(struct event *event);

/* The node where the head is. */
static uint32_t data_rank(const struct data_message *data)
{
    const struct route *route = data->message.route;
    return data->taken ? route->steps[data->taken - 1].rank : route->from_rank;
}

/* The same as message_at for a message that has left: its order has the rank of the node that has created it already. */
static inline void head_at(struct data_message *data, uint32_t rank, uint64_t t_ps, void (*fire)(struct event *))
{
    struct event *event = &data->message.event;
    event_set(event, event_order(rank, CLASS_MESSAGE, (uint32_t)event->order), event->key, fire);
    event_at(event, t_ps);
}

/* The head arrives at the end of its route ahead of time, unless an event has to do that. Heads come to a pe_dma over its
 * one link, in the order in which they take it. Two arrive at one time only if the bandwidth has no limit and the router
 * before the link had them in one round, in the order of their origins, which is also the order of their arrivals. So the
 * node handles heads in the order in which they take its link, whenever that is worked out. */
static inline bool arrives_ahead(struct data_message *data, const struct step *step, uint64_t arrival_ps)
{
    struct fabric_node *node = &kb_nodes[step->rank];
    if (!data->receiver || node->arriving || node->free_ps > arrival_ps || is_observed(MOMENT_event_fires))
        return false;
    node->free_ps = time_after(arrival_ps, spec.overhead_ps[step->kind]);
    data->ahead_ps = arrival_ps;
    event_count++;
    uint64_t delivered_ps = time_after(node->free_ps, data->tail_ps);
    if (data->receiver->take(data, delivered_ps)) {
        node->taken = data;
        event_count++;
    } else {
        head_at(data, step->rank, delivered_ps, message_delivered);
    }
    return true;
}

__attribute__((noinline)) void delivery_settle_taken(struct fabric_node *node, const struct event *by)
{
    for (struct data_message *data; (data = node->taken);) {    /* one that was put off may then be delivered ahead of time */
        node->taken = NULL;
        data->receiver->settle(data, by);
    }
}

/* The head takes the next link, at head_ps or when the link is free. Returns when the link is free again. */
static inline uint64_t link_take(struct data_message *data, uint64_t head_ps, bool watched)
{
    const struct step *step = data->step++;
    uint64_t length = data->payload->link_ps[step->class];
    uint64_t start = reserve(&kb_links[step->link].free_ps, head_ps, length);
    if (watched)
        observed_message = &data->message;
    stats_link(step->link, step->class, data->payload->bytes, head_ps, start, length, watched);
    if (data->tail_ps < length)
        data->tail_ps = length;
    uint64_t arrival_ps = time_after(start, spec.link[step->class].latency_ps);
    data->taken++;
    if (step->last) {
        delivery_settle(&kb_nodes[step->rank], NULL);   /* what comes now may use what that delivery has reserved */
        if (!watched && arrives_ahead(data, step, arrival_ps))
            return start + length;
        kb_nodes[step->rank].arriving++;
    }
    head_at(data, step->rank, arrival_ps, data_arrives);
    return start + length;
}

/* The head of a message that waits for a link. */
struct waiting_head {
    struct waiting_head *next;
    struct data_message *data;
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
    for (unsigned kind = 0; kind < NODE_KINDS; kind++) {
        spec.modelled |= kb_fabric_models[kind].handle != NULL;
        if (kb_fabric_models[kind].choose && !link_queues)
            link_queues = arena_alloc(link_count(), sizeof *link_queues);
    }
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
        const struct route *route = head->data->message.route;
        *array_add(&choices) = (struct kb_waiting_head){route->from_rank, route->to_rank, head->data->payload->bytes,
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
        link_take(head->data, head->head_ps, true);
        pool_give_back(&waiting_heads, head);
    }
    if (queue->count)
        event_at(&queue->event, *free_ps);
}

/* The head leaves a node with a model of a user: it takes the next link if that is free, or waits for it. */
static void link_ask(struct data_message *data, uint64_t head_ps)
{
    uint32_t rank = data_rank(data), link = data->step->link;
    struct link_queue *queue = &link_queues[link];
    uint64_t free_ps = kb_links[link].free_ps;
    if (!queue->count && free_ps <= now_ps) {
        link_take(data, head_ps, true);
        return;
    }
    struct waiting_head *head = pool_reuse(&waiting_heads, sizeof *head);
    *head = (struct waiting_head){NULL, data, now_ps, head_ps};
    if (!queue->count++) {
        queue->from = rank_place(rank);
        queue->end = &queue->first;
        /* After all messages of a round that arrive at the node. */
        event_set(&queue->event, event_order(rank, CLASS_MESSAGE, UINT32_MAX), link, link_is_free);
        event_at(&queue->event, free_ps);
    }
    *queue->end = head;
    queue->end = &head->next;
}

/* The head leaves a node over the next link of its way. Returns when the link is free again. This function and its
 * callers are compiled twice: for observers of reservations and models of users, and without them. */
static inline uint64_t data_hop_made(struct data_message *data, uint64_t head_ps, bool watched)
{
    if (watched && link_queues && kb_fabric_models[place_kind(rank_place(data_rank(data)))].choose) {
        /* Only pe_dma, which has no such model, needs to know when its link is free. */
        assert(!data->left || data->taken);
        link_ask(data, head_ps);
        return 0;
    }
    return link_take(data, head_ps, watched);
}

static __attribute__((cold, noinline)) uint64_t data_hop_watched(struct data_message *data, uint64_t head_ps)
{
    observed_cause = data->message.cause;
    return data_hop_made(data, head_ps, true);
}

static inline uint64_t data_hop(struct data_message *data, uint64_t head_ps, bool watched)
{
    return watched ? data_hop_watched(data, head_ps) : data_hop_made(data, head_ps, false);
}

static void data_leave(struct data_message *data)
{
    uint64_t free_ps = data_hop(data, now_ps, is_observed_or_modelled(MOMENT_reserved));
    if (data->left)
        data->left(data, free_ps);
}

static void data_leaves(struct event *event)
{
    struct data_message *data = data_of(event);
    kb_nodes[data->message.route->from_rank].departing--;
    data_leave(data);
}

/* When a node has handled the head of a message that has arrived. */
static inline uint64_t data_handled_ps(const struct data_message *data, const struct step *step, bool watched)
{
    uint64_t bytes = data->payload->bytes;
    if (watched && kb_fabric_models[step->kind].handle) {
        struct kb_handled said = model_handles(rank_place(step->rank), &data->message.route->way, bytes, now_ps);
        uint64_t start_ps = said.wait_ps < said.ready_ps - now_ps ? now_ps + said.wait_ps : said.ready_ps;
        stats_node(step->rank, bytes, now_ps, start_ps, said.ready_ps - start_ps, watched);
        return said.ready_ps;
    }
    uint64_t overhead = spec.overhead_ps[step->kind];
    uint64_t start_ps = reserve(&kb_nodes[step->rank].free_ps, now_ps, overhead);
    stats_node(step->rank, bytes, now_ps, start_ps, overhead, watched);
    return start_ps + overhead;
}

static inline void data_arrives_made(struct data_message *data, bool watched)
{
    const struct step *step = data->step - 1;
    delivery_settle(&kb_nodes[step->rank], &data->message.event);
    uint64_t head_ps = data_handled_ps(data, step, watched);
    if (!step->last) {
        data_hop(data, head_ps, watched);
        return;
    }
    kb_nodes[step->rank].arriving--;
    uint64_t delivered_ps = time_after(head_ps, data->tail_ps);
    if (watched)
        observe_data_arrived(data, head_ps, delivered_ps);
    if (data->receiver)
        data_deliver(data, delivered_ps, data->receiver->delivered);
    else
        data->arrived(data, head_ps, delivered_ps);
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

/* Makes a message that is about to leave the start of its route, the steps of which are listed. */
static inline void data_make(struct data_message *data, struct route *route, const struct payload *payload, uint64_t stream_ps)
{
    message_number(&data->message, route);
    data->payload = payload;
    data->message.event.order = event_order(route->from_rank, CLASS_MESSAGE, route->from_rank);
    data->tail_ps = stream_ps;
    data->step = route->steps;
    data->taken = 0;
    data->ahead_ps = 0;
}

static __attribute__((noinline)) void data_leave_at(struct data_message *data, uint64_t leave_ps)
{
    uint32_t rank = data->message.route->from_rank;
    observe_data_sent(data);
    if (leave_ps == now_ps) {
        data_leave(data);
        return;
    }
    kb_nodes[rank].departing++;
    message_at(&data->message, rank, leave_ps, data_leaves);
}

void data_send(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
               uint64_t stream_ps, void (*arrived)(struct data_message *, uint64_t, uint64_t))
{
    if (!route->length)
        route_list_steps(route);
    data_make(data, route, payload, stream_ps);
    data->receiver = NULL;
    data->arrived = arrived;
    data_leave_at(data, leave_ps);
}

/* The same for a message that leaves after all that its node has sent before, and before all that it will send. It can take
 * the first link ahead of time, which nothing but this node feeds, if none of those before still waits for an event. */
static inline void data_leave_in_order(struct data_message *data, uint64_t leave_ps)
{
    const uint64_t watched = MOMENT_BIT(MODELS_WATCH) | MOMENT_BIT(MOMENT_event_fires) | MOMENT_BIT(MOMENT_data_sent)
                             | MOMENT_BIT(MOMENT_reserved);
    if (leave_ps == now_ps || kb_nodes[data->message.route->from_rank].departing || observed & watched) {
        data_leave_at(data, leave_ps);
        return;
    }
    data->ahead_ps = leave_ps;
    event_count++;
    link_take(data, leave_ps, false);
}

void data_answer(struct data_message *data, struct route *route, const struct payload *payload, const struct served *served,
                 const struct receiver *receiver)
{
    data_make(data, route, payload, served->last_ps - served->first_ps);
    data->receiver = receiver;
    data->message.delivered = receiver->delivered;
    if (served->in_order)
        data_leave_in_order(data, served->first_ps);
    else
        data_leave_at(data, served->first_ps);
}

/* What a TCM has read leaves in that order, since it has one channel for reads; a translation only delays it. */
void data_write(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
                void (*arrived)(struct data_message *, uint64_t, uint64_t))
{
    if (!route->length)
        route_list_steps(route);
    data_make(data, route, payload, 0);
    data->receiver = NULL;
    data->arrived = arrived;
    data_leave_in_order(data, leave_ps);
}

/* ---- ways from a memory to a pe_dma at the same router */

bool near_way_make(struct near_way *way, struct route *request, const struct payload *payload)
{
    const struct route *route = route_answer(request);
    enum { HOPS = sizeof way->hop / sizeof way->hop[0] };
    if (route->length != HOPS || spec.modelled)
        return false;
    uint64_t at_ps = 0;
    way->memory = &kb_nodes[route->from_rank];
    way->bytes = payload->bytes;
    for (unsigned i = 0; i < HOPS; i++) {
        const struct step *step = &route->steps[i];
        uint64_t arrives_ps = sum(at_ps, spec.link[step->class].latency_ps);
        way->hop[i] = (struct near_hop){&kb_links[step->link], &kb_nodes[step->rank], step->class,
                                        payload->link_ps[step->class], at_ps, arrives_ps,
                                        sum(arrives_ps, spec.overhead_ps[step->kind])};
        at_ps = way->hop[i].handled_ps;
    }
    return true;
}

void near_way_take(const struct near_way *way, uint64_t leave_ps)
{
    way->memory->messages++;
    for (const struct near_hop *hop = way->hop; hop < way->hop + sizeof way->hop / sizeof *hop; hop++) {
        hop->link->free_ps = leave_ps + hop->leaves_ps + hop->length_ps;
        hop->node->free_ps = leave_ps + hop->handled_ps;
        stats_link(hop->link - kb_links, hop->class, way->bytes, leave_ps, leave_ps, hop->length_ps, false);
    }
}

void data_count_ahead(const struct data_message *data, int count)
{
    if (data->ahead_ps <= now_ps)
        return;
    event_count += count;
    if (data->taken > 1)                                /* it is the arrival, which did not wait */
        return;
    const struct step *step = data->message.route->steps;
    uint64_t length = data->payload->link_ps[step->class], start = data->message.event.t_ps - spec.link[step->class].latency_ps;
    stats.link_bytes[step->class] += count * data->payload->bytes;
    stats.link_busy_ps[step->class] += count * length;
    stats.link_wait_ps[step->class] += count * (start - data->ahead_ps);
    kb_links[step->link].busy_ps += count * length;
}

void data_count_event(const struct data_message *data, int count)
{
    const struct route *route = data->message.route;
    void (*fire)(struct event *) = data->message.event.fire;
    if (fire == data_leaves)
        kb_nodes[route->from_rank].departing += count;
    else if (fire == data_arrives && data->taken == route->length)
        kb_nodes[route->to_rank].arriving += count;
}

uint64_t data_drain_ps(const struct data_message *data)
{
    const struct route *route = data->message.route;
    uint64_t drain_ps = 0;
    for (const struct step *step = route->steps; step < route->steps + route->length; step++)
        if (drain_ps < data->payload->link_ps[step->class])
            drain_ps = data->payload->link_ps[step->class];
    return drain_ps;
}

void data_deliver(struct data_message *data, uint64_t delivered_ps, void (*delivered)(struct message *))
{
    data->message.delivered = delivered;
    if (delivered_ps == now_ps)
        delivered(&data->message);
    else
        message_at(&data->message, data->message.route->to_rank, delivered_ps, message_delivered);
}

void fabric_reset(void)
{
    memset(&routes, 0, sizeof routes);
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
