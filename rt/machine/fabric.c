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
#include "state_fields.h"
#include "stats.h"

/* Attributes by kind of node and by speed of link. */
static struct {
    bool modelled;                                      /* a model of a user says what nodes of a kind take */
    uint64_t overhead_ps[NODE_KINDS];
    struct link_rate link[LINK_SPEEDS + CHIP_LINKS_MOST];
} spec;

/* The longest that a node with a model of a user may handle a control message: 281 s. */
#define CONTROL_MOST_PS (UINT64_C(1) << 48)

static struct {
    struct key_table table, entrances;
    uint64_t *within;                                   /* latencies between routers of a cube and 1, in the order of kb_route */
} routes;

struct link_target *link_targets;

_Static_assert(sizeof(struct link_target) == 2 * sizeof(struct fabric_link), "a step tells where both are");

static enum node_kind place_kind(struct place place)
{
    return place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind;
}

static void models_init(void);

/* Whether data come to a pe_dma in several planes, and so over several links. */
static bool data_planes_differ(void)
{
    const struct shape *s = &kb_shape;
    return s->plane_of_read != s->plane_of_write || s->plane_of_read != s->plane_of_message;
}

void fabric_init(void)
{
    models_init();
    route_init();
    assert(link_count() < UINT32_MAX / sizeof *link_targets);   /* gen/size.c allows fewer */
    link_targets = arena_alloc(link_count(), sizeof *link_targets);
#define LINK(name, bw, latency) spec.link[LINK_##name] = (struct link_rate){kb_attrs.bw, kb_attrs.latency};
#define WRAP(name, bw, latency) spec.link[SPEED_##name] = (struct link_rate){kb_attrs.bw, kb_attrs.latency};
#include "kb/links.def"
    for (uint32_t speed = LINK_SPEEDS; speed < link_speed_count(); speed++)
        spec.link[speed] = (struct link_rate){chip_speed(speed)->bw_bps, chip_speed(speed)->latency_ps};
    if (data_planes_differ())
        observe_planes();
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
    uint32_t in_cube = node->kind == NODE_router ? kb_shape.planes * kb_shape.noc_rows * kb_shape.noc_cols
                     : node->kind == NODE_port ? SIDES : 1;
    return place_cube(place) * in_cube + node->index;
}

static struct kb_handled model_handles(struct place at, uint32_t from, uint32_t to, uint64_t bytes, uint64_t t_ps)
{
    const struct fabric_model *model = &kb_fabric_models[place_kind(at)];
    const struct kb_head_request ask = {node_number(at), from, to, bytes, t_ps};
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
    if (!kb_fabric_models[place_kind(at)].handle)
        return spec.overhead_ps[place_kind(at)];
    return model_handles(at, place_rank(way->from), place_rank(way->to), 0, 0).ready_ps;
}

/* ---- routes */

static __attribute__((noinline)) uint64_t way_key(const struct way *way)
{
    uint64_t from = place_rank(way->from), to = place_rank(way->to);
    return from << (RANK_BITS + WAY_BITS) | to << WAY_BITS | (way->plane * DIRECTIONS + way->direction);
}

struct route *route_of(struct way way)
{
    uint64_t key = way_key(&way);
    struct route *route = key_table_find(&routes.table, key);
    if (route)
        return route;
    route = arena_alloc(1, sizeof *route);
    *route = (struct route){.from = &kb_nodes[place_rank(way.from)], .latency_ps = UINT64_MAX};
    key_table_add(&routes.table, &route->link, key);
    return route;
}

__attribute__((noinline)) struct way route_way(const struct route *route)
{
    uint64_t key = route->link.key;
    return (struct way){rank_place(route_from_rank(route)), rank_place(route_to_rank(route)), key % DIRECTIONS,
                        key / DIRECTIONS % PLANES_MOST};
}

__attribute__((cold)) const struct route *route_listed(const struct way *way)
{
    const struct route *route = key_table_find(&routes.table, way_key(way));
    return route && route->length ? route : NULL;
}

__attribute__((cold)) struct route *route_answer_made(struct route *request)
{
    request->answer = route_of(way_answer(route_way(request), kb_shape.plane_of_read));
    if (!request->answer->length)
        route_list_steps(request->answer);
    return request->answer;
}

const struct link_rate *link_rate(uint32_t speed)
{
    return &spec.link[speed];
}

struct control_hop control_hop(const struct way *way, struct hop hop)
{
    return (struct control_hop){spec.link[hop.speed].latency_ps, control_handled_ps(way, hop.to)};
}

uint64_t target_overhead_ps(const struct link_target *target)
{
    return kb_fabric_models[target->kind].handle ? UINT64_MAX : target->overhead_ps;
}

static inline uint64_t hop_latency_ps(const struct traversal *along)
{
    if (!spec.modelled)
        return spec.link[along->hop.speed].latency_ps + spec.overhead_ps[place_kind(along->hop.to)];
    struct control_hop hop = control_hop(&along->way, along->hop);
    return hop.link_ps + hop.node_ps;
}

static bool is_at_router(const struct traversal *along)
{
    return kb_cube_nodes[along->hop.to.node].kind == NODE_router;
}

/* Goes on from a router of a cube to the router of the last node in it, and returns the latency of that. It is the same in
 * all cubes, unless a model of a user says what a node takes. */
static uint64_t routers_latency_ps(struct traversal *along)
{
    const size_t rows = (size_t)kb_shape.planes * DIRECTIONS * kb_shape.targets, routers = kb_shape.noc_rows * kb_shape.noc_cols;
    uint32_t last = along->links[along->goal_down].from;
    if (!routes.within)
        routes.within = arena_alloc(rows * routers, sizeof *routes.within);
    uint64_t *known = &routes.within[&along->route[kb_cube_nodes[along->hop.to.node].index] - kb_route];
    if (!*known) {
        struct traversal walk = *along;
        while (walk.hop.to.node != last && traversal_next(&walk))
            *known += hop_latency_ps(&walk);
        *known += 1;                                    /* 0: it is not known */
    }
    traversal_set(along, last);
    return *known - 1;
}

static uint64_t walk_latency_ps(struct way way)
{
    uint64_t latency_ps = 0;
    for (struct traversal along = traversal_of(way);;) {
        if (!spec.modelled && traversal_is_inside(&along) && is_at_router(&along))
            latency_ps += routers_latency_ps(&along);
        if (!traversal_next(&along))
            return latency_ps;
        latency_ps += hop_latency_ps(&along);
    }
}

/* The same of a way whose steps are listed and take the same time for every message. */
static uint64_t steps_latency_ps(const struct route *route)
{
    uint64_t latency_ps = 0;
    for (uint32_t i = 0; i < route->length; i++) {
        const struct link_target *target = step_target(&route->steps[i]);
        latency_ps += target->latency_ps + target->overhead_ps;
    }
    return latency_ps;
}

uint64_t route_latency_ps(struct route *route)
{
    if (route->latency_ps == UINT64_MAX)
        route->latency_ps = route->length && !spec.modelled ? steps_latency_ps(route) : walk_latency_ps(route_way(route));
    return route->latency_ps;
}

/* Whether the links of a request's way are those of the way back, in the other direction, which are as fast: answers of control
 * take plane 0. */
static bool goes_back(const struct way *request)
{
    return request->direction == REQUEST && request->plane == 0 && !kb_shape.own_answers;
}

struct route *route_back_made(struct route *request)
{
    const struct way way = route_way(request);
    request->back = route_of(way_answer(way, 0));
    if (request->length && goes_back(&way) && !spec.modelled)
        request->back->latency_ps = route_latency_ps(request) - spec.overhead_ps[place_kind(way.to)]
                                    + spec.overhead_ps[place_kind(way.from)];
    return request->back;
}

static inline struct fabric_node *target_node(const struct link_target *target)
{
    return &kb_nodes[target_rank(target)];
}

/* How the ways from a node to all nodes of a cube begin, up to the step into the cube. */
struct entrance {
    struct key_link link;                               /* in routes.entrances, by the way to the cube's first node */
    struct traversal along;                             /* before that step */
    const struct step *steps;
    uint32_t length, narrowest;                         /* as in struct route */
};

static uint64_t entrance_key(const struct way *way)
{
    struct way to_cube = *way;
    to_cube.to.node = 0;
    return way_key(&to_cube);
}

static inline bool is_same_cube(struct place a, struct place b)
{
    return a.sip == b.sip && a.cube == b.cube;
}

static void entrance_add(const struct route *route, const struct way *way, const struct entrance *of)
{
    struct entrance *entrance = arena_alloc(1, sizeof *entrance);
    *entrance = *of;
    entrance->steps = route->steps;
    key_table_add(&routes.entrances, &entrance->link, entrance_key(way));
}

__attribute__((noinline)) void route_list_steps(struct route *route)
{
    static struct ARRAY(struct step) steps;
    const struct way way = route_way(route);
    const struct place to = way.to;
    struct traversal along = traversal_of(way);
    struct entrance entrance = {.length = 0};
    const struct entrance *known = to.cube == OUTSIDE ? NULL : key_table_find(&routes.entrances, entrance_key(&way));
    uint32_t narrowest = 0;
    steps.count = 0;
    if (known && known->along.over_chips == along.over_chips) {
        array_reserve(&steps, known->length);
        memcpy(steps.at, known->steps, known->length * sizeof *steps.at);
        steps.count = known->length;
        along = known->along;
        along.way = way;
        along.end_rank = route_to_rank(route);
        narrowest = known->narrowest;
    }
    for (;;) {
        bool outside = !is_same_cube(along.hop.to, to);
        if (outside && !known)
            entrance = (struct entrance){.along = along, .length = (uint32_t)steps.count, .narrowest = narrowest};
        if (!traversal_next(&along))
            break;
        if (!steps.count || is_narrower(along.hop.speed, narrowest))
            narrowest = along.hop.speed;
        link_targets[along.hop.link] = (struct link_target){
            event_order(along.rank, CLASS_MESSAGE, 0), spec.overhead_ps[place_kind(along.hop.to)],
            spec.link[along.hop.speed].latency_ps, (uint16_t)along.hop.speed, speed_class(along.hop.speed),
            place_kind(along.hop.to)};
        *array_add(&steps) = step_new(along.hop.link, along.rank == route_to_rank(route));
    }
    route->length = steps.count;
    route->steps = memcpy(arena_alloc(steps.count, sizeof *steps.at), steps.at, steps.count * sizeof *steps.at);
    route->narrowest = narrowest;
    if (entrance.length && to.cube != OUTSIDE)
        entrance_add(route, &way, &entrance);
}

/* ---- messages */

/* Gives a message the next number of the node where its route begins. */
static void message_number(struct message *message, struct route *route)
{
    message->route = route;
    control_number(message, route->from);
}

static void message_at(struct message *message, uint32_t rank, uint64_t t_ps, void (*fire)(struct event *))
{
    message->event.order = event_order(rank, CLASS_MESSAGE, route_from_rank(message->route));
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
    message_at(message, route_to_rank(route), delivered_ps, message_delivered);
}

void control_send(struct message *message, struct route *route, uint64_t leave_ps,
                  void (*delivered)(struct message *))
{
    message_number(message, route);
    message->delivered = delivered;
    if (route->latency_ps == UINT64_MAX || is_observed(MOMENT_control_sent))
        control_leaves(message, leave_ps);
    else
        message_at(message, route_to_rank(route), time_after(leave_ps, route->latency_ps), message_delivered);
}

void control_catch_up(struct message *message, struct route *route, uint64_t delivered_ps,
                      void (*delivered)(struct message *), const struct event *by)
{
    struct event *event = &message->event;
    message->route = route;
    message->delivered = delivered;
    event_set(event, event_order(route_to_rank(route), CLASS_MESSAGE, route_from_rank(route)), event->key, message_delivered);
    event->t_ps = delivered_ps;
    event_catch_up(event, by);
}

/* ---- data */

static struct data_message *data_of(struct event *event)
{
    return container_of(container_of(event, struct message, event), struct data_message, message);
}

static void data_arrives(struct event *event);
static void data_ends(struct event *event);
static void data_leaves(struct event *event);

/* The node where the head is. */
static uint32_t data_rank(const struct data_message *data)
{
    const struct route *route = data->message.route;
    return data->step > route->steps ? target_rank(step_target(data->step - 1)) : route_from_rank(route);
}

/* The next event of a head is at a node. */
static inline void head_at(struct data_message *data, const struct link_target *target, uint64_t t_ps)
{
    struct event *event = &data->message.event;
    event->order = target->order | (uint32_t)event->order;  /* the origin, as data_make has set it */
    event_at(event, t_ps);
}

/* The last event of the head, at the end of its way. */
static inline void head_ends_at(struct data_message *data, const struct link_target *target, uint64_t t_ps,
                                void (*fire)(struct event *))
{
    data->message.event.fire = fire;
    head_at(data, target, t_ps);
}

/* The head arrives at the end of its route ahead of time, unless an event has to do that. Heads come to a pe_dma over its
 * one link, in the order in which they take it. Two arrive at one time only if the bandwidth has no limit and the router
 * before the link had them in one round, in the order of their origins, which is also the order of their arrivals. So the
 * node handles heads in the order in which they take its link, whenever that is worked out. Several planes have a link each
 * to a pe_dma: where more than one of them has data, an event has to do it. */
static inline bool arrives_ahead(struct data_message *data, const struct link_target *target, uint64_t arrival_ps)
{
    const uint64_t events = MOMENT_BIT(PLANES_MEET) | MOMENT_BIT(MOMENT_event_fires);
    struct fabric_node *node = target_node(target);
    if (node->arriving || node->free_ps > arrival_ps || is_any_observed(events))
        return false;
    node->free_ps = time_after(arrival_ps, target->overhead_ps);
    data->ahead_ps = arrival_ps;
    event_count++;
    uint64_t delivered_ps = time_after(node->free_ps, data->tail_ps);
    if (data->kind->take(data, delivered_ps)) {
        node->taken = data;
        event_count++;
    } else {
        head_ends_at(data, target, delivered_ps, message_delivered);
    }
    return true;
}

/* The same of what a PE writes, for the same reason. Until the head comes to the node, nobody else comes to know of the write. */
static inline bool write_arrives_ahead(struct data_message *data, const struct link_target *target, uint64_t arrival_ps)
{
    const uint64_t events = MOMENT_BIT(PLANES_MEET) | MOMENT_BIT(MODELS_WATCH) | MOMENT_BIT(MOMENT_event_fires)
                            | MOMENT_BIT(MOMENT_event_set_due) | MOMENT_BIT(MOMENT_control_sent)
                            | MOMENT_BIT(MOMENT_memory_served);
    struct fabric_node *node = target_node(target);
    if (!data->kind->arrives || node->arriving || node->free_ps > arrival_ps || is_any_observed(events))
        return false;
    uint64_t head_ps = time_after(arrival_ps, target->overhead_ps);
    if (!data->kind->arrives(data, head_ps, time_after(head_ps, data->tail_ps)))
        return false;
    node->free_ps = head_ps;
    data->ahead_ps = arrival_ps;
    event_count++;
    return true;
}

__attribute__((noinline)) void delivery_settle_taken(struct fabric_node *node, const struct event *by)
{
    for (struct data_message *data; (data = node->taken);) {    /* one that was put off may then be delivered ahead of time */
        node->taken = NULL;
        data->kind->settle(data, by);
    }
}

/* The head takes the last link of its way, and arrives at arrival_ps. */
static __attribute__((noinline)) void last_link_taken(struct data_message *data, const struct link_target *target,
                                                      uint64_t arrival_ps, bool watched)
{
    struct fabric_node *node = target_node(target);
    delivery_settle(node, NULL);                        /* what comes now may use what that delivery has reserved */
    if (!watched && (data->kind->take ? arrives_ahead(data, target, arrival_ps) : write_arrives_ahead(data, target, arrival_ps)))
        return;
    node->arriving++;
    head_ends_at(data, target, arrival_ps, data_ends);
}

/* The head takes the next link, at head_ps or when the link is free. Its event is set to fire at the next node as that of a
 * head on its way. Returns when the link is free again. */
static inline uint64_t link_take(struct data_message *data, uint64_t head_ps, bool watched)
{
    struct step step = *data->step++;
    const struct link_target *target = step_target(&step);
    struct fabric_link *link = (struct fabric_link *)((char *)kb_links + step_at(step) / 2);
    uint64_t length = data->payload->link_ps[target->speed];
    uint64_t start = reserve(&link->free_ps, head_ps, length);
    if (watched)
        observed_message = &data->message;
    stats_link(link, target->class, data->payload->bytes, head_ps, start, length, watched);
    uint64_t arrival_ps = time_after(start, target->latency_ps);
    if (step_is_last(step))
        last_link_taken(data, target, arrival_ps, watched);
    else
        head_at(data, target, arrival_ps);
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
        *array_add(&choices) = (struct kb_waiting_head){route_from_rank(route), route_to_rank(route), head->data->payload->bytes,
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
    uint32_t rank = data_rank(data), link = step_link(*data->step);
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
        assert(!data->kind->left || data_taken(data));
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

/* The head leaves its node; `arrives` is its arrival at the nodes on its way. */
static inline uint64_t data_hop(struct data_message *data, uint64_t head_ps, void (*arrives)(struct event *), bool watched)
{
    data->message.event.fire = arrives;
    return watched ? data_hop_watched(data, head_ps) : data_hop_made(data, head_ps, false);
}

static void data_leave(struct data_message *data)
{
    uint64_t free_ps = data_hop(data, now_ps, data_arrives, is_observed_or_modelled(MOMENT_reserved));
    if (data->kind->left)
        data->kind->left(data, free_ps);
}

static void data_leaves(struct event *event)
{
    struct data_message *data = data_of(event);
    data->message.route->from->departing--;
    data_leave(data);
}

/* The node at which a head arrives: its event has the rank. */
static inline struct fabric_node *head_node(const struct data_message *data)
{
    return &kb_nodes[event_rank(&data->message.event)];
}

/* When a node has handled the head of a message that has arrived. */
static inline uint64_t data_handled_ps(const struct data_message *data, const struct link_target *target, bool watched)
{
    uint64_t bytes = data->payload->bytes;
    if (watched && kb_fabric_models[target->kind].handle) {
        const struct route *route = data->message.route;
        struct kb_handled said = model_handles(rank_place(target_rank(target)), route_from_rank(route), route_to_rank(route), bytes, now_ps);
        uint64_t start_ps = said.wait_ps < said.ready_ps - now_ps ? now_ps + said.wait_ps : said.ready_ps;
        stats_node(target_rank(target), bytes, now_ps, start_ps, said.ready_ps - start_ps, watched);
        return said.ready_ps;
    }
    uint64_t start_ps = now_ps, *free_ps = &head_node(data)->free_ps;
    if (__builtin_expect(watched || *free_ps > start_ps, 0)) {  /* mostly it does not wait */
        start_ps = *free_ps > start_ps ? *free_ps : start_ps;
        stats_node(target_rank(target), bytes, now_ps, start_ps, target->overhead_ps, watched);
    }
    return *free_ps = time_after(start_ps, target->overhead_ps);
}

/* The head arrives at a node, where something may have been made ahead of time. */
static inline void head_settles(const struct data_message *data)
{
    delivery_settle(head_node(data), &data->message.event);
}

/* A head arrives that somebody watches. */
static __attribute__((noinline)) void data_arrives_watched(struct data_message *data)
{
    const struct link_target *target = step_target(data->step - 1);
    head_settles(data);
    observed_cause = data->message.cause;
    data_hop_made(data, data_handled_ps(data, target, true), true);
}

/* A head arrives that meets something which was made ahead of time. */
static __attribute__((noinline)) void data_arrives_settling(struct data_message *data)
{
    const struct link_target *target = step_target(data->step - 1);
    head_settles(data);
    data_hop_made(data, data_handled_ps(data, target, false), false);
}

static void data_arrives(struct event *event)
{
    struct data_message *data = data_of(event);
    const struct link_target *target = step_target(data->step - 1);
    if (is_observed_or_modelled(MOMENT_reserved))
        data_arrives_watched(data);
    else if (__builtin_expect(head_node(data)->taken != NULL, 0))
        data_arrives_settling(data);
    else
        data_hop_made(data, data_handled_ps(data, target, false), false);
}

/* The head arrives at the end of its way. */
static void data_ends(struct event *event)
{
    struct data_message *data = data_of(event);
    const struct link_target *target = step_target(data->step - 1);
    bool watched = is_observed_or_modelled(MOMENT_reserved);
    head_settles(data);
    if (watched)
        observed_cause = data->message.cause;
    uint64_t head_ps = data_handled_ps(data, target, watched), delivered_ps = time_after(head_ps, data->tail_ps);
    head_node(data)->arriving--;
    if (watched)
        observe_data_arrived(data, head_ps, delivered_ps);
    if (data->kind->take)
        data_deliver(data, delivered_ps, data->kind->delivered);
    else
        data->kind->arrived(data, head_ps, delivered_ps);
}

/* Makes a message that is about to leave the start of its route, the steps of which are listed. */
static inline void data_make(struct data_message *data, struct route *route, const struct payload *payload, uint64_t stream_ps,
                             const struct data_kind *kind)
{
    message_number(&data->message, route);
    data->message.event.order = route_from_rank(route); /* the part that all events of the head have */
    data->payload = payload;
    data->step = route->steps;
    uint64_t drain_ps = data_drain_ps(data);
    data->tail_ps = stream_ps > drain_ps ? stream_ps : drain_ps;
    data->ahead_ps = 0;
    data->kind = kind;
}

/* Has an event, `leaves`, have the message leave, unless it leaves now. Returns whether it does. */
static inline bool leaves_later(struct data_message *data, uint64_t leave_ps, void (*leaves)(struct event *))
{
    const struct route *route = data->message.route;
    observe_data_sent(data);
    if (leave_ps == now_ps)
        return false;
    route->from->departing++;
    message_at(&data->message, route_from_rank(route), leave_ps, leaves);
    return true;
}

static __attribute__((noinline)) void data_leave_at(struct data_message *data, uint64_t leave_ps)
{
    if (!leaves_later(data, leave_ps, data_leaves))
        data_leave(data);
}

/* The same for the first message on a route. Calls in place of jumps would make every message save registers. */
static __attribute__((cold, noinline)) void first_send(struct data_message *data, struct route *route, const struct payload *payload,
                                                       uint64_t leave_ps, uint64_t stream_ps, const struct data_kind *kind)
{
    route_list_steps(route);
    data_send(data, route, payload, leave_ps, stream_ps, kind);
}

void data_send(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
               uint64_t stream_ps, const struct data_kind *kind)
{
    if (__builtin_expect(!route->length, 0)) {
        first_send(data, route, payload, leave_ps, stream_ps, kind);
        return;
    }
    data_make(data, route, payload, stream_ps, kind);
    data_leave_at(data, leave_ps);
}

/* The same for a message that leaves after all that its node has sent before, and before all that it will send. It can take
 * the first link ahead of time, which nothing but this node feeds, if none of those before still waits for an event. */
static inline void data_leave_in_order(struct data_message *data, uint64_t leave_ps)
{
    const uint64_t watched = MOMENT_BIT(MODELS_WATCH) | MOMENT_BIT(MOMENT_event_fires) | MOMENT_BIT(MOMENT_data_sent)
                             | MOMENT_BIT(MOMENT_reserved);
    if (leave_ps == now_ps || data->message.route->from->departing || observed & watched) {
        data_leave_at(data, leave_ps);
        return;
    }
    data->ahead_ps = leave_ps;
    event_count++;
    data->message.event.fire = data_arrives;
    link_take(data, leave_ps, false);
}

void data_answer(struct data_message *data, struct route *route, const struct payload *payload, const struct served *served,
                 const struct data_kind *kind)
{
    data_make(data, route, payload, served->last_ps - served->first_ps, kind);
    data->message.delivered = kind->delivered;
    if (served->in_order)
        data_leave_in_order(data, served->first_ps);
    else
        data_leave_at(data, served->first_ps);
}

static __attribute__((cold, noinline)) void first_write(struct data_message *data, struct route *route, const struct payload *payload,
                                                        uint64_t leave_ps, const struct data_kind *kind)
{
    route_list_steps(route);
    data_write(data, route, payload, leave_ps, kind);
}

/* What a TCM has read leaves in that order, since it has one channel for reads; a translation only delays it. */
void data_write(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
                const struct data_kind *kind)
{
    if (__builtin_expect(!route->length, 0)) {
        first_write(data, route, payload, leave_ps, kind);
        return;
    }
    data_make(data, route, payload, 0, kind);
    data_leave_in_order(data, leave_ps);
}

/* ---- messages to several ends: while a head goes to several of them it has events of its own */

static uint64_t *copied_bytes;                          /* by rank; NULL: no head has divided */

uint64_t node_copied_bytes(uint32_t rank)
{
    return copied_bytes ? copied_bytes[rank] : 0;
}

uint32_t routes_shared(const struct route *a, const struct route *b)
{
    uint32_t shared = 0;
    while (shared < a->length && shared < b->length && step_link(a->steps[shared]) == step_link(b->steps[shared]))
        shared++;
    return shared;
}

static void branches_arrive(struct event *event);

static uint64_t branch_hop(struct branch *head, uint64_t head_ps, bool watched)
{
    return data_hop(&head->data, head_ps, head->ends > 1 ? branches_arrive : data_arrives, watched);
}

/* Makes the head of a branch one that is as far on its way as another one. */
static void branch_begin(struct branch *branch, const struct branch *from)
{
    struct data_message *data = &branch->data;
    const struct data_message *head = &from->data;
    data->message.event.order = head->message.event.order;
    data->message.event.key = head->message.event.key;
    data->payload = head->payload;
    data->tail_ps = data_drain_ps(data);
    data->step = data->message.route->steps + data_taken(head);
    data->ahead_ps = 0;
    data->kind = head->kind;
}

/* Divides a head among the links over which its ends are reached from its node. Returns the number of heads. */
static uint32_t head_divide(struct branch *head)
{
    uint32_t ends = head->ends, heads = 1;
    struct branch *branch = head->next, *part = head;
    for (head->ends = 1; --ends; branch = branch->next) {
        if (branch->shared == data_taken(&head->data)) {
            heads++;
            part = branch;
            part->ends = 0;
            branch_begin(part, head);
        }
        part->ends++;
    }
    return heads;
}

/* Counts what divided heads carry out of a node more than came there. */
static void copies_count(uint32_t rank, uint64_t bytes)
{
    if (!copied_bytes)
        copied_bytes = arena_alloc(node_count(), sizeof *copied_bytes);
    copied_bytes[rank] += bytes;
}

static void branches_arrive_made(struct branch *head, bool watched)
{
    struct data_message *data = &head->data;
    const struct link_target *target = step_target(data->step - 1);
    head_settles(data);
    uint64_t head_ps = data_handled_ps(data, target, watched);
    uint32_t heads = head_divide(head);
    copies_count(target_rank(target), (heads - 1) * data->payload->bytes);
    for (struct branch *part = head; heads; heads--) {
        branch_hop(part, head_ps, watched);
        for (uint32_t ends = part->ends; ends; ends--)
            part = part->next;
    }
}

static void branches_arrive(struct event *event)
{
    struct branch *head = container_of(data_of(event), struct branch, data);
    bool watched = is_observed_or_modelled(MOMENT_reserved);
    if (watched)
        observed_cause = head->data.message.cause;
    branches_arrive_made(head, watched);
}

static void branches_leave(struct branch *head)
{
    head->data.kind->left(&head->data, branch_hop(head, now_ps, is_observed_or_modelled(MOMENT_reserved)));
}

static void branches_leave_late(struct event *event)
{
    struct data_message *data = data_of(event);
    data->message.route->from->departing--;
    branches_leave(container_of(data, struct branch, data));
}

void branches_send(struct branch *first, const struct payload *payload, uint64_t leave_ps, const struct data_kind *kind)
{
    struct data_message *data = &first->data;
    data_make(data, data->message.route, payload, 0, kind);
    first->ends = 1;
    for (const struct branch *branch = first->next; branch; branch = branch->next) {
        assert(branch->shared > 0);
        first->ends++;
    }
    if (!leaves_later(data, leave_ps, branches_leave_late))
        branches_leave(first);
}

void fabric_carry(struct state_image *image)
{
    bool any = copied_bytes;
    state_carry(image, &any, sizeof any);
    if (any != (copied_bytes != NULL))
        copied_bytes = any ? arena_alloc(node_count(), sizeof *copied_bytes) : NULL;
    if (any)
        state_carry(image, copied_bytes, node_count() * sizeof *copied_bytes);
}

/* ---- ways from a memory to a pe_dma at the same router */

bool near_way_make(struct near_way *way, struct route *request, const struct payload *payload)
{
    const struct route *route = route_answer(request);
    if (route->length != NEAR_HOPS || spec.modelled)
        return false;
    uint16_t speed = step_target(route->steps)->speed;
    assert(speed == step_target(route->steps + 1)->speed);      /* both are links of a node to its router */
    uint64_t at_ps = 0;
    way->memory = route->from;
    way->class = (enum link_class)step_target(route->steps)->class;
    way->length_ps = payload->link_ps[speed];
    way->bytes = payload->bytes;
    for (unsigned i = 0; i < NEAR_HOPS; i++) {
        const struct step *step = &route->steps[i];
        const struct link_target *target = step_target(step);
        uint64_t arrives_ps = sum(at_ps, target->latency_ps);
        way->hop[i] = (struct near_hop){&kb_links[step_link(*step)], target_node(target), at_ps, arrives_ps,
                                        sum(arrives_ps, target->overhead_ps)};
        at_ps = way->hop[i].handled_ps;
    }
    return true;
}

void data_count_ahead(const struct data_message *data, int count)
{
    if (data->ahead_ps <= now_ps)
        return;
    event_count += count;
    const struct step *step = data->message.route->steps;
    if (data->step > step + 1)                          /* it is the arrival, which did not wait */
        return;
    const struct link_target *target = step_target(step);
    uint64_t length = data->payload->link_ps[target->speed], start = data->message.event.t_ps - target->latency_ps;
    stats.link_bytes[target->class] += count * data->payload->bytes;
    stats.link_busy_ps[target->class] += count * length;
    stats.link_wait_ps[target->class] += count * (start - data->ahead_ps);
    kb_links[step_link(*step)].busy_ps += count * length;
}

void data_count_event(const struct data_message *data, int count)
{
    const struct route *route = data->message.route;
    void (*fire)(struct event *) = data->message.event.fire;
    if (fire == data_leaves)
        route->from->departing += count;
    else if (fire == data_ends)
        kb_nodes[route_to_rank(route)].arriving += count;
}

void data_deliver(struct data_message *data, uint64_t delivered_ps, void (*delivered)(struct message *))
{
    data->message.delivered = delivered;
    if (delivered_ps == now_ps)
        delivered(&data->message);
    else
        message_at(&data->message, route_to_rank(data->message.route), delivered_ps, message_delivered);
}

void fabric_reset(void)
{
    memset(&routes, 0, sizeof routes);
    link_targets = NULL;
    copied_bytes = NULL;
}

bool data_under_way(const struct data_message *data)
{
    void (*fire)(struct event *) = data->message.event.fire;
    return fire == data_leaves || fire == data_arrives || fire == data_ends;
}

bool event_is_message(const struct event *event)
{
    return event->fire == message_delivered;
}

const struct handler fabric_handlers[] = {
    HANDLER(data_arrives, "data head at a node"),
    HANDLER(data_ends, "data head at the end of its way"),
    HANDLER(data_leaves, "data leave their source"),
    HANDLER(branches_arrive, "data head of several ends at a node"),
    HANDLER(branches_leave_late, "data of several ends leave their source"),
    HANDLER(link_is_free, "a link that heads wait for is free"),
    {0}};
