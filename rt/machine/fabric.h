/* fabric.h: messages.
 *
 * A control message is one event, its delivery. A data message is one event for each node on its way, the arrival of
 * its head: the head waits for the node and for the link behind it, in the order of events. The fabric does not know
 * what a message is for. */
#ifndef KB_FABRIC_H
#define KB_FABRIC_H

#include "payload.h"
#include "route.h"
#include "sim/event.h"
#include "sim/observer.h"

struct data_message;

/* The state of a node, and of a directed link. */
struct fabric_node {
    uint64_t free_ps;
    uint64_t messages;                                  /* that it has sent, and so numbered */
    uint32_t departing, arriving;                       /* data that an event will have leave it, or end at it */
    struct data_message *taken;                         /* that was delivered there ahead of time, or will be there and was
                                                           put off; or NULL */
};

struct fabric_link {
    uint64_t free_ps, busy_ps;
};

/* What a head needs to know of a link, and of the node behind it. */
struct link_target {
    uint64_t order;                                     /* of arrivals at the node, without their origin: it has its rank */
    uint64_t overhead_ps;                               /* of the node, by the built-in model */
    uint64_t latency_ps;                                /* of the link */
    uint16_t speed;                                     /* of the link, as link_speed says */
    uint8_t class;                                      /* enum link_class */
    uint8_t kind;                                       /* enum node_kind */
};

extern struct link_target *link_targets;                /* by link: of those that are steps of routes */

static inline uint32_t target_rank(const struct link_target *target)
{
    return order_rank(target->order);
}

/* A link of a route: where its target is, in bytes from link_targets on, and whether it is the last. A machine may use millions
 * of steps. */
struct step {
    uint32_t at_and_last;
};

static inline struct step step_new(uint64_t link, bool last)
{
    return (struct step){(uint32_t)(link * sizeof *link_targets) | last};
}

static inline bool step_is_last(struct step step)
{
    return step.at_and_last & 1;
}

static inline uint32_t step_at(struct step step)
{
    return step.at_and_last & ~UINT32_C(1);
}

static inline uint32_t step_link(struct step step)
{
    return step.at_and_last / sizeof *link_targets;
}

static inline const struct link_target *step_target(const struct step *step)
{
    return (const struct link_target *)((const char *)link_targets + step_at(*step));
}

/* A way, worked out: its steps, and its latency. There is one route for each way that is used. */
struct route {
    struct key_link link;                               /* in the table of routes; its key is the way */
    struct fabric_node *from;                           /* where it begins */
    uint32_t length;                                    /* steps; 0: no data have been sent over it */
    uint32_t narrowest;                                 /* of the speeds of its links that with the least bandwidth */
    const struct step *steps;
    uint64_t latency_ps;                                /* of control messages; UINT64_MAX: it is not known yet */
    struct route *back, *answer;                        /* of answers to a request; NULL until they are used */
};

/* A key has the ranks of both ends, the plane and the direction. */
enum { WAY_BITS = 3 };
_Static_assert(DIRECTIONS * PLANES_MOST <= 1 << WAY_BITS && 2 * RANK_BITS + WAY_BITS <= 64, "ways have keys of 64 bits");

static inline uint32_t route_from_rank(const struct route *route)
{
    return route->link.key >> (RANK_BITS + WAY_BITS);
}

static inline uint32_t route_to_rank(const struct route *route)
{
    return route->link.key >> WAY_BITS & ((1 << RANK_BITS) - 1);
}

struct route *route_of(struct way way);

struct way route_way(const struct route *route);

/* The route of a way over which data have been sent, with its steps; NULL: none have. */
const struct route *route_listed(const struct way *way);

/* The ways of answers to a request: of a control message; of what a read has read, with its steps. */
struct route *route_back_made(struct route *request);
struct route *route_answer_made(struct route *request);

static inline struct route *route_back(struct route *request)
{
    return __builtin_expect(request->back != NULL, 1) ? request->back : route_back_made(request);
}

static inline struct route *route_answer(struct route *request)
{
    return __builtin_expect(request->answer && request->answer->length, 1) ? request->answer : route_answer_made(request);
}

/* Lists the steps of a route, which data need. */
void route_list_steps(struct route *route);

/* The sum of all link latencies of a route and of the overheads of all its nodes but the first. */
uint64_t route_latency_ps(struct route *route);

/* What a link of a speed has. */
struct link_rate {
    uint64_t bw_bps, latency_ps;                        /* 0 bytes/s: no limit */
};

const struct link_rate *link_rate(uint32_t speed);

/* Whether links of a speed have less bandwidth than those of another one; without a limit (0), one less is the most. */
static inline bool is_narrower(uint32_t speed, uint32_t other)
{
    return link_rate(speed)->bw_bps - 1 < link_rate(other)->bw_bps - 1;
}

/* What a hop adds to the latency of a control message: the link, and the node behind it. */
struct control_hop {
    uint64_t link_ps, node_ps;
};

struct control_hop control_hop(const struct way *way, struct hop hop);

/* How long the node behind a link handles a head; UINT64_MAX: the model of a user says so for each. */
uint64_t target_overhead_ps(const struct link_target *target);

/* A message: a member of the struct that it is sent for. */
struct message {
    struct event event;
    struct cause cause;                                 /* set by whoever sends it */
    struct route *route;
    void (*delivered)(struct message *message);
};

/* Sends a control message that leaves at leave_ps, now or later. */
void control_send(struct message *message, struct route *route, uint64_t leave_ps,
                  void (*delivered)(struct message *));

/* Numbers a control message that `from` sends now and whose delivery is put off; catches up with that (event_catch_up). */
static inline void control_number(struct message *message, struct fabric_node *from)
{
    message->event.key = ++from->messages;
}

void control_catch_up(struct message *message, struct route *route, uint64_t delivered_ps,
                      void (*delivered)(struct message *), const struct event *by);

/* Whether an event is the delivery of a message, control or data. */
bool event_is_message(const struct event *event);

/* When the first and the last bytes of a read come, or those of a write are taken. */
struct served {
    uint64_t first_ps, last_ps;
    bool in_order;                                      /* the first bytes of any later read come later */
};

/* What data do at the ends of their way. Those of data_answer have the last three functions, others the first one and perhaps
 * the next two; those of branches_send have `left`. */
struct data_kind {
    /* Called when the head has arrived at the last node: that handles it until head_ps, all bytes are there at
     * delivered_ps. */
    void (*arrived)(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps);
    /* Does the same ahead of time, if it is known when the head comes to the node. Returns false if an event has to do that.
     * NULL: it has. */
    bool (*arrives)(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps);
    /* Called when the head takes the first link, which is free again at link_free_ps; may be NULL. */
    void (*left)(struct data_message *data, uint64_t link_free_ps);
    void (*delivered)(struct message *message);         /* as an event, when all of it is there */
    /* Takes the delivery ahead of time, which is due at delivered_ps. Returns false if an event has to do that. */
    bool (*take)(struct data_message *data, uint64_t delivered_ps);
    /* Ends that: what is due by now has taken place; events will do the rest. `by`: as event_catch_up has it. */
    void (*settle)(struct data_message *data, const struct event *by);
};

/* A message with payload. */
struct data_message {
    struct message message;
    const struct payload *payload;
    uint64_t tail_ps;                                   /* how long after the head the last byte comes: the time that the
                                                           narrowest link takes, or the source to supply all */
    const struct step *step;                            /* the next one of the route */
    uint64_t ahead_ps;                                  /* when the last step that was made ahead of time is due; UINT64_MAX:
                                                           all of its way is put off (near_read.h) */
    const struct data_kind *kind;
};

/* Sends data that leave at leave_ps and that the source takes stream_ps to supply (0: it has them all). */
void data_send(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
               uint64_t stream_ps, const struct data_kind *kind);

/* ---- a message to several ends */

/* The steps that two routes from one node have in common. */
uint32_t routes_shared(const struct route *a, const struct route *b);

/* A part of such a message: what arrives at one of its ends. The way of the message is the union of its routes, a tree; its
 * head divides where they part. Branches are in the order of the ranks of the nodes behind those links. */
struct branch {
    struct data_message data;                           /* the route is that to its end */
    struct branch *next;                                /* NULL: it is the last */
    uint32_t shared;                                    /* steps that its route has in common with that of the branch before */
    uint32_t ends;                                      /* of the branch whose head is on its way: to how many ends that goes,
                                                           its own first */
};

/* Sends data to the ends of a list of branches, whose routes differ behind their first link. The kind has the function
 * `left`. */
void branches_send(struct branch *first, const struct payload *payload, uint64_t leave_ps, const struct data_kind *kind);

/* The bytes that the heads of divided messages have carried out of a node beyond those that came there. */
uint64_t node_copied_bytes(uint32_t rank);

/* ---- ahead of time */

/* Sends what a memory has read to a pe_dma. The departure, the arrival and the delivery are made ahead of time where that
 * changes no time and nobody watches. */
void data_answer(struct data_message *data, struct route *route, const struct payload *payload, const struct served *served,
                 const struct data_kind *kind);

/* Sends data that a pe_dma has read from its TCM up to leave_ps, and that leave then. The departure is made ahead of time
 * likewise; so is the arrival, if the kind has the function `arrives`. */
void data_write(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
                const struct data_kind *kind);

/* Ends what was made ahead of time or put off at the node, if there is anything, so that the machine is in the same state as
 * without it. `by` is the event that meets it there, NULL: not the event of a message. */
void delivery_settle_taken(struct fabric_node *node, const struct event *by);

static inline void delivery_settle(struct fabric_node *node, const struct event *by)
{
    if (__builtin_expect(node->taken != NULL, 0))
        delivery_settle_taken(node, by);
}

/* The way of a response from a memory to a pe_dma at the same router: the node and the link of each of its two hops, and
 * when its head reaches and leaves them if nothing is in its way. Times count from when it leaves the memory. */
enum { NEAR_HOPS = 2 };

struct near_way {
    struct fabric_node *memory;
    struct near_hop {
        struct fabric_link *link;
        struct fabric_node *node;
        uint64_t leaves_ps, arrives_ps, handled_ps;
    } hop[NEAR_HOPS];
    enum link_class class;                              /* of both links, */
    uint64_t length_ps;                                 /* for which each is occupied */
    uint64_t bytes;
};

/* Works that out for a payload. Returns false if the response takes another way. */
bool near_way_make(struct near_way *way, struct route *request, const struct payload *payload);

/* Whether nothing that is under way now keeps a response waiting that leaves the memory at leave_ps. */
static inline bool near_way_is_free(const struct near_way *way, uint64_t leave_ps)
{
    const struct near_hop *to_router = &way->hop[0], *to_dma = &way->hop[1];
    return !way->memory->departing && !way->memory->taken && !to_router->node->taken && !to_dma->node->taken
           && !to_dma->node->arriving && to_router->link->free_ps <= leave_ps
           && to_router->node->free_ps <= leave_ps + to_router->arrives_ps
           && to_dma->link->free_ps <= leave_ps + to_dma->leaves_ps
           && to_dma->node->free_ps <= leave_ps + to_dma->arrives_ps;
}

/* Marks the nodes of the way: a response will take it that is put off. Whatever comes to them settles that first. */
static inline void near_way_mark(const struct near_way *way, struct data_message *data)
{
    way->memory->taken = way->hop[0].node->taken = way->hop[1].node->taken = data;
}

/* Statistics and the number of events count what is made ahead of time at once. Takes away what such a message is counted
 * for beyond now (count: -1), or adds it again (1). */
void data_count_ahead(const struct data_message *data, int count);

/* Counts a message at the node that its next event has it leave or end at, when that message is copied (1) or dropped
 * (-1). */
void data_count_event(const struct data_message *data, int count);

/* How many steps of its route are behind the head. */
static inline uint32_t data_taken(const struct data_message *data)
{
    return data->step - data->message.route->steps;
}

/* How long the narrowest link of its route is occupied by a message. */
static inline uint64_t data_drain_ps(const struct data_message *data)
{
    return data->payload->link_ps[data->message.route->narrowest];
}

/* Calls delivered at delivered_ps, as the event of the message's delivery; in place if that is now. */
void data_deliver(struct data_message *data, uint64_t delivered_ps, void (*delivered)(struct message *));

/* Whether the head of the message is on its way, that is, the message's next event is one of its head. */
bool data_under_way(const struct data_message *data);

/* Asks the model of a user of a node which of at least two that wait there is next; `kind` is an enum kb_head_queue_kind.
 * Returns its position. */
struct kb_waiting_head;
uint32_t model_choose(struct place at, unsigned kind, const struct kb_waiting_head *waiting, uint32_t count);

/* Reads the attributes of nodes and links, at the start of each run. */
void fabric_init(void);

/* Saves or restores what heads of divided messages have carried (state_fields.h). */
struct state_image;
void fabric_carry(struct state_image *image);

/* Forgets all routes. */
void fabric_reset(void);

extern const struct handler fabric_handlers[];

#endif
