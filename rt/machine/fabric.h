/* fabric.h: nodes, routes and messages.
 *
 * A control message is one event, at its delivery. The head of a data message is one event a node: it waits for the
 * node and for the link behind it, in event order. Nothing here knows what a message is for. */
#ifndef KB_FABRIC_H
#define KB_FABRIC_H

#include "sim/event.h"
#include "base/tables.h"

enum { OUTSIDE = 0xffff };

/* A node: its SIP, its cube in the SIP, its position in the cube; outside cubes, cube is OUTSIDE and node its kind. */
struct place {
    uint16_t sip, cube, node;
};

static inline uint32_t sip_nodes(void)
{
    return 2 + kb_shape.cubes * kb_shape.cube_nodes;
}

static inline uint32_t node_count(void)
{
    return 2 + kb_shape.sips * sip_nodes();
}

/* Its rank: host and switch; per SIP pcie_ep, io_cpu, and the cubes' nodes. */
static inline uint32_t place_rank(struct place place)
{
    uint32_t sip = 2 + place.sip * sip_nodes();
    if (place.cube != OUTSIDE)
        return sip + 2 + place.cube * kb_shape.cube_nodes + place.node;
    if (place.node == NODE_host || place.node == NODE_switch)
        return place.node == NODE_switch;
    return sip + (place.node - NODE_pcie_ep);
}

/* "sip0.cube3.pe5.pe_dma": the node's dotted path; in a buffer that the next call overwrites. */
const char *place_name(struct place place);
/* The place of a rank. */
struct place rank_place(uint32_t rank);

static inline struct place place_host(void)
{
    return (struct place){0, OUTSIDE, NODE_host};
}

static inline struct place place_io_cpu(uint32_t sip)
{
    return (struct place){sip, OUTSIDE, NODE_io_cpu};
}

static inline struct place place_m_cpu(uint32_t sip, uint32_t cube)
{
    return (struct place){sip, cube, cube_m_cpu()};
}

/* A part of a PE; pe counts over the machine. */
struct place place_pe(uint32_t pe, enum node_kind kind);

/* A way from one node to another: a request's own, or the one back along it. */
struct way {
    struct place from, to;
    enum direction direction;
};

static inline struct way way_back(struct way way)
{
    return (struct way){way.to, way.from, way.direction == REQUEST ? RESPONSE : REQUEST};
}

/* A step of a way. */
struct hop {
    uint32_t link;                                      /* its number over the machine: kb_links */
    enum link_class class;
    struct place to;
};

/* State of a node, and of a directed link. */
struct fabric_node {
    uint64_t free_ps;
    uint64_t messages;                                  /* that it has created, and so numbered */
};

struct fabric_link {
    uint64_t free_ps, busy_ps;
};

/* Directed links of the machine. */
uint64_t link_count(void);
enum link_class link_class(uint64_t link);

/* The step from a node that is on the way, but not its end. */
struct hop way_next(const struct way *way, struct place at);

/* What a message that is in a cube needs to know there: all its steps but the last out of it are a look-up. */
struct passage {
    uint32_t rank, link;                                /* of the cube's first node, of its first link */
    const uint16_t *route;                              /* from each router towards the goal's; NO_LINK: it is there */
    uint16_t goal, goal_down;                           /* the cube's last node on the way, the link to it */
};

/* For a way at a place in a cube. */
struct passage way_passage(const struct way *way, struct place at);

/* The link of the cube to take at one of its nodes that is not the goal. */
static inline uint32_t passage_link(const struct passage *passage, const struct cube_node *node)
{
    if (node->up != NO_LINK)
        return node->up;
    uint32_t link = passage->route[node->index];
    return link == NO_LINK ? passage->goal_down : link;
}

/* All link latencies of the way, and the overhead of every node but the first. */
uint64_t way_latency_ps(const struct way *way);

/* A way with what is asked of it again and again. */
struct path {
    struct way way;
    uint32_t from_rank, to_rank;
    uint64_t latency_ps;
};

struct path path_of(struct way way);

/* A message; it lives inside what it is sent for. */
struct message {
    struct event event;
    uint32_t creator;                                   /* rank of the node that numbered it */
    struct way way;
    void (*delivered)(struct message *message);
};

/* Sends a control message that leaves at leave_ps, now or later. */
void control_send(struct message *message, struct way way, uint64_t leave_ps, void (*delivered)(struct message *));

/* Whether an event is the delivery of a message, control or data. */
bool event_is_message(const struct event *event);

/* The same over a path. */
void control_send_over(struct message *message, const struct path *path, uint64_t leave_ps,
                       void (*delivered)(struct message *));

/* A message with payload. arrived: its head has reached the last node, was handled there at head_ps, and all of it will
 * be there at delivered_ps; called in the event of the head's arrival. */
struct data_message {
    struct message message;
    struct place at;
    uint32_t rank, end_rank;                            /* of `at`, of the last node */
    struct passage passage;                             /* of the cube that `at` is in */
    uint64_t bytes, stream_ps, drain_ps;
    uint64_t link_ps[LINK_CLASSES];                     /* how long it occupies a link of each class */
    void (*arrived)(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps);
    void (*left)(struct data_message *data,
                 uint64_t link_free_ps); /* may be NULL: when the first link will be free of it */
};

/* Sends bytes that leave at leave_ps, and that the source feeds within stream_ps (0: at once). */
void data_send(struct data_message *data, struct way way, uint64_t bytes, uint64_t leave_ps, uint64_t stream_ps,
               void (*arrived)(struct data_message *, uint64_t, uint64_t));

/* Whether a message with payload is on its way: its next event is its head's. */
bool data_under_way(const struct data_message *data);

/* Puts the head of a message at a place of its way. */
void data_enter(struct data_message *data, struct place at);

/* Calls delivered at delivered_ps, as the event of the message's delivery; in place if that is now. */
void data_deliver(struct data_message *data, uint64_t delivered_ps, void (*delivered)(struct message *));

void fabric_init(void);

#endif
