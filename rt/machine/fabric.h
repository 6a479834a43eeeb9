/* fabric.h: messages.
 *
 * A control message is one event, its delivery. A data message is one event for each node on its way, the arrival of
 * its head: the head waits for the node and for the link behind it, in the order of events. The fabric does not know
 * what a message is for. */
#ifndef KB_FABRIC_H
#define KB_FABRIC_H

#include "route.h"
#include "sim/event.h"
#include "sim/observer.h"

/* The state of a node, and of a directed link. */
struct fabric_node {
    uint64_t free_ps;
    uint64_t messages;                                  /* that it has sent, and so numbered */
};

struct fabric_link {
    uint64_t free_ps, busy_ps;
};

/* The sum of all link latencies of a way and of the overheads of all its nodes but the first. */
uint64_t way_latency_ps(const struct way *way);

/* A way, with what all messages on it need. */
struct path {
    struct way way;
    uint32_t from_rank, to_rank;
    uint64_t latency_ps;
};

struct path path_of(struct way way);

/* A message: a member of the struct that it is sent for. */
struct message {
    struct event event;
    uint32_t creator;                                   /* rank of the node that numbered it */
    struct cause cause;                                 /* set by whoever sends it */
    struct way way;
    void (*delivered)(struct message *message);
};

/* Sends a control message that leaves at leave_ps, now or later. */
void control_send(struct message *message, struct way way, uint64_t leave_ps, void (*delivered)(struct message *));

/* The same over a path. */
void control_send_over(struct message *message, const struct path *path, uint64_t leave_ps,
                       void (*delivered)(struct message *));

/* Whether an event is the delivery of a message, control or data. */
bool event_is_message(const struct event *event);

/* A message with payload. */
struct data_message {
    struct message message;
    struct place at;
    uint32_t rank, end_rank;                            /* of `at`, of the last node */
    struct passage passage;                             /* of the cube that `at` is in */
    uint64_t bytes, stream_ps, drain_ps;
    uint64_t link_ps[LINK_CLASSES];                     /* how long it occupies a link of each class */
    /* Called when the head has arrived at the last node: that handles it until head_ps, all bytes are there at
     * delivered_ps. */
    void (*arrived)(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps);
    /* Called when the head takes the first link, which is free again at link_free_ps; may be NULL. */
    void (*left)(struct data_message *data, uint64_t link_free_ps);
};

/* Sends bytes that leave at leave_ps and that the source takes stream_ps to supply (0: it has them all). */
void data_send(struct data_message *data, struct way way, uint64_t bytes, uint64_t leave_ps, uint64_t stream_ps,
               void (*arrived)(struct data_message *, uint64_t, uint64_t));

/* Calls delivered at delivered_ps, as the event of the message's delivery; in place if that is now. */
void data_deliver(struct data_message *data, uint64_t delivered_ps, void (*delivered)(struct message *));

/* Whether the head of the message is on its way, that is, the message's next event is one of its head. */
bool data_under_way(const struct data_message *data);

/* Puts the head of a message at a node of its way: the first one, the first one in a cube, or one outside of cubes. */
void data_enter(struct data_message *data, struct place at);

/* Asks the model of a user of a node which of at least two that wait there is next; `kind` is an enum kb_head_queue_kind.
 * Returns its position. */
struct kb_waiting_head;
uint32_t model_choose(struct place at, unsigned kind, const struct kb_waiting_head *waiting, uint32_t count);

/* Reads the attributes of nodes and links, at the start of each run. */
void fabric_init(void);

extern const struct handler fabric_handlers[];

#endif
