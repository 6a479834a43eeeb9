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
    struct data_message *taken;                         /* whose delivery has been made ahead of time; or NULL */
};

struct fabric_link {
    uint64_t free_ps, busy_ps;
};

/* A link of a route, and the node behind it. */
struct step {
    uint32_t link, rank;
    uint8_t class, kind;                                /* enum link_class; enum node_kind */
    bool last;                                          /* of the route */
};

/* A way, worked out: its steps, and its latency. There is one route for each way that is used. */
struct route {
    struct key_link link;                               /* in the table of routes, by their ends and direction */
    struct way way;
    uint32_t from_rank, to_rank;
    uint32_t length;                                    /* steps; 0: no data have been sent over it */
    const struct step *steps;
    uint64_t latency_ps;                                /* UINT64_MAX: no control message has been sent over it */
    struct route *back;                                 /* the way back, NULL until it is used */
};

struct route *route_of(struct way way);
struct route *route_back(struct route *route);
struct route *route_answer_made(struct route *route);

/* The way back, with its steps, for data_answer. */
static inline struct route *route_answer(struct route *route)
{
    return __builtin_expect(route->back && route->back->length, 1) ? route->back : route_answer_made(route);
}

/* Lists the steps of a route, which data need. */
void route_list_steps(struct route *route);

/* The sum of all link latencies of a route and of the overheads of all its nodes but the first. */
uint64_t route_latency_ps(struct route *route);

/* The latency of every link of a class. */
uint64_t link_latency_ps(enum link_class class);

/* What a hop adds to the latency of a control message: the link, and the node behind it. */
struct control_hop {
    uint64_t link_ps, node_ps;
};

struct control_hop control_hop(const struct way *way, struct hop hop);

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

/* Whether an event is the delivery of a message, control or data. */
bool event_is_message(const struct event *event);

/* When the first and the last bytes of a read come, or those of a write are taken. */
struct served {
    uint64_t first_ps, last_ps;
    bool in_order;                                      /* the first bytes of any later read come later */
};

/* Who gets what a memory has read. */
struct receiver {
    void (*delivered)(struct message *message);         /* as an event, when all of it is there */
    /* Takes the delivery ahead of time, which is due at delivered_ps. Returns false if an event has to do that. */
    bool (*take)(struct data_message *data, uint64_t delivered_ps);
    /* Ends that: the delivery has taken place if it is due by now; otherwise an event will do it. */
    void (*settle)(struct data_message *data);
};

/* A message with payload. */
struct data_message {
    struct message message;
    const struct payload *payload;
    uint64_t tail_ps;                                   /* how long after the head the last byte comes: the longest of the
                                                           links taken, or the time that the source takes to supply all */
    const struct step *step;                            /* the next one of the route, */
    uint32_t taken;                                     /* and how many are behind it */
    uint64_t ahead_ps;                                  /* when the last step that was made ahead of time is due */
    const struct receiver *receiver;                    /* of what a memory has read; else NULL */
    /* Called when the head has arrived at the last node: that handles it until head_ps, all bytes are there at
     * delivered_ps. Not for a receiver, which gets all bytes at once. */
    void (*arrived)(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps);
    /* Called when the head takes the first link, which is free again at link_free_ps; may be NULL. */
    void (*left)(struct data_message *data, uint64_t link_free_ps);
};

/* Sends data that leave at leave_ps and that the source takes stream_ps to supply (0: it has them all). */
void data_send(struct data_message *data, struct route *route, const struct payload *payload, uint64_t leave_ps,
               uint64_t stream_ps, void (*arrived)(struct data_message *, uint64_t, uint64_t));

/* Sends what a memory has read to a pe_dma. The departure, the arrival and the delivery are made ahead of time where that
 * changes no time and nobody watches. */
void data_answer(struct data_message *data, struct route *route, const struct payload *payload, const struct served *served,
                 const struct receiver *receiver);

/* Ends a delivery that was made ahead of time, if there is one at the node, so that the machine is in the same state as
 * without it. */
void delivery_settle_taken(struct fabric_node *node);

static inline void delivery_settle(struct fabric_node *node)
{
    if (__builtin_expect(node->taken != NULL, 0))
        delivery_settle_taken(node);
}

/* Statistics and the number of events count what is made ahead of time at once. Takes away what such a message is counted
 * for beyond now (count: -1), or adds it again (1). */
void data_count_ahead(const struct data_message *data, int count);

/* Counts a message at the node that its next event has it leave or end at, when that message is copied (1) or dropped
 * (-1). */
void data_count_event(const struct data_message *data, int count);

/* How long the narrowest link of its route is occupied by a message. */
uint64_t data_drain_ps(const struct data_message *data);

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

/* Forgets all routes. */
void fabric_reset(void);

extern const struct handler fabric_handlers[];

#endif
