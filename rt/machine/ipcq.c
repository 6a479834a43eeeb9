/* ipcq.c: pe_ipcq: queues between PEs.
 *
 *     send    takes a credit; TCM read -> data to the ring's memory; ends when the first link is free of the message
 *             -> when the data are written and, in sram or HBM, a doorbell has come to the receiver, the slot is full
 *             to several PEs: takes a credit of each ring; the data go to each memory once, and are written to each ring
 *     recv    waits for the next full slot, in the order of sending; in a TCM it is complete at once, else it reads the
 *             slot (DMA_READ) -> the slot is free: a credit goes back to the sender
 *
 * A ring outlives launches. Messages are received in the order of sending. With several read engines slots may become
 * free in another order; they are taken again in the order in which their credits come back. */
#include "ipcq.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/key_table.h"
#include "common/pool.h"
#include "emitted.h"
#include "engine.h"
#include "kb/impl.h"
#include "memory.h"
#include "peers.h"
#include "scheduler.h"
#include "sim/observer.h"
#include "state_fields.h"
#include "stats.h"
#include "tile.h"

struct ring;

/* A message on a ring, from the send to the return of its credit. */
struct ipcq_message {
    struct branch branch;                               /* its data: the data, then the doorbell, then the credit */
    struct ipcq_message *beside;                        /* of a send to several PEs: the next in the same memory */
    struct ring *ring;
    struct token *token;                                /* of the send, until its service ends */
    struct sender sender;
    struct command *receive;                            /* that takes it, if a model of a user delays that */
    uint64_t bytes;
    uint32_t slot;                                      /* of the ring */
    bool full;                                          /* the slot has it */
};

static struct pool messages;

struct ring {
    uint32_t source, destination;
    struct ring *next, *older;                          /* in its chain of the hash table; in the list of all */
    uint64_t credits, sent, received, returned;         /* credits: free slots known to the sender; others: totals */
    uint64_t passed;                                    /* the last search in which a send that waits for it was passed */
    struct ipcq_message **message;                      /* i, at i modulo the number of slots, until it is received */
    uint32_t *slot_of;                                  /* of message i, likewise */
    struct command *waiting, *waiting_last;             /* receives, linked by `waiting` */
    struct route *data, *credit;                        /* to its memory, back to the sender; NULL: not used yet */
};

/* ---- all rings that were used, by their pair of PEs */

enum { CHAINS = 1 << 14 };

static struct ring *chains[CHAINS], *newest;

/* Rings to neighbouring PEs are in neighbouring chains: kernels go through their peers in order. */
static struct ring **chain_of(uint32_t source, uint32_t destination)
{
    return &chains[(source * pe_count() + destination) % CHAINS];
}

/* Puts a ring into its state at the start: nothing was sent on it. */
static void ring_clear(struct ring *ring, void *arg)
{
    (void)arg;
    ring->credits = kb_attrs.pe_ipcq_slots;
    ring->sent = ring->received = ring->returned = 0;
    for (uint32_t i = 0; i < kb_attrs.pe_ipcq_slots; i++)
        ring->slot_of[i] = i;
}

static struct ring *ring_of(uint32_t source, uint32_t destination)
{
    struct ring **chain = chain_of(source, destination);
    for (struct ring *ring = *chain; ring; ring = ring->next)
        if (ring->source == source && ring->destination == destination)
            return ring;
    struct ring *ring = arena_alloc(1, sizeof *ring);
    *ring = (struct ring){.source = source, .destination = destination, .next = *chain, .older = newest};
    ring->message = arena_alloc(kb_attrs.pe_ipcq_slots, sizeof *ring->message);
    ring->slot_of = arena_alloc(kb_attrs.pe_ipcq_slots, sizeof *ring->slot_of);
    ring_clear(ring, NULL);
    return newest = *chain = ring;
}

/* Message number i, which was sent and not received. */
static struct ipcq_message *ring_message(const struct ring *ring, uint64_t i)
{
    return ring->message[i % kb_attrs.pe_ipcq_slots];
}

/* ---- where slots are */

static uint64_t ring_bytes(void)
{
    return product(kb_attrs.pe_ipcq_slots, kb_attrs.pe_ipcq_slot_bytes);
}

static uint32_t ring_memory(uint32_t destination)
{
    return own_memory(ring_space(), destination);
}

/* Whether all of a sender's rings lie in their memories. */
static bool rings_fit(uint32_t source)
{
    return kb_attrs.pe_ipcq_buffer == BUFFER_tcm
        || (space_exists(ring_space()) && product(source + UINT64_C(1), ring_bytes()) <= memory_size(ring_memory(source)));
}

/* Rings are at the end of the memory, downwards by the number of the sending PE. */
static uint64_t slot_address(const struct ring *ring, uint32_t slot)
{
    uint32_t memory = ring_memory(ring->destination);
    uint64_t offset = slot * kb_attrs.pe_ipcq_slot_bytes;
    return memory_address(memory, memory_size(memory) - (ring->source + 1) * ring_bytes() + offset);
}

static struct range slot_range(const struct ring *ring, uint32_t slot, uint64_t bytes)
{
    struct range range = {.space = SPACE_TCM, .number = ring->destination, .bytes = bytes};
    if (kb_attrs.pe_ipcq_buffer != BUFFER_tcm)
        address_decode(slot_address(ring, slot), bytes, &range);
    return range;
}

static inline const char *peer_refusal(const struct command *command, uint32_t peer)
{
    if (&kb_pe[peer] == command->pe)
        return "a PE has no ring to or from itself";
    if (command->ask.kind != COMMAND_send)
        return NULL;
    if (command->ask.bytes > kb_attrs.pe_ipcq_slot_bytes)
        return "it is larger than a slot of the ring";
    if (!rings_fit(pe_number(command->pe)))
        return space_exists(ring_space()) ? "the ring lies below the start of its memory" : "the ring's memory does not exist";
    return NULL;
}

static __attribute__((cold, noinline)) const char *list_refusal(const struct command *command)
{
    struct pe_list peers = peers_of(&command->ask);
    const char *why = NULL;
    for (uint32_t i = 0; i < peers.count && !why; i++)
        why = i && peers.pe[i] == peers.pe[i - 1] ? "it names a PE twice" : peer_refusal(command, peers.pe[i]);
    return why;
}

const char *ipcq_refusal(const struct command *command)
{
    if (__builtin_expect(command->ask.peers, 0))
        return list_refusal(command);
    return peer_refusal(command, command->ask.peer);
}

/* ---- what a send to several PEs uses: the same each time that a PE sends to these */

/* A memory that holds rings of it, and the way there. */
struct multicast_end {
    struct route *route;
    uint32_t shared;                                    /* steps that its route has in common with that of the end before */
    uint32_t first, count;                              /* its rings in multicast->ring, in the order of their destinations */
};

struct multicast {
    struct key_link link;                               /* by source and list */
    uint32_t number;                                    /* from 1 on */
    uint32_t rings, ends;
    struct ring **ring;                                 /* end by end */
    struct multicast_end *end;                          /* as branches are ordered */
};

static struct {
    struct key_table table;
    struct ARRAY(struct multicast *) by_number;         /* number n at n - 1 */
} multicasts;

static inline struct route *ring_route(struct ring *ring)
{
    if (!ring->data) {
        struct range range = slot_range(ring, 0, 0);
        ring->data = route_of(way_of(place_pe(ring->source, NODE_pe_dma), range_place(&range), kb_shape.plane_of_message));
    }
    if (!ring->data->length)
        route_list_steps(ring->data);
    return ring->data;
}

/* Orders rings by the routes to their memories, as branches are ordered, and in one memory by destination. */
static int in_branch_order(const void *x, const void *y)
{
    const struct ring *a = *(struct ring *const *)x, *b = *(struct ring *const *)y;
    if (a->data == b->data)
        return a->destination < b->destination ? -1 : a->destination > b->destination;
    uint32_t shared = routes_shared(a->data, b->data);
    return target_rank(step_target(&a->data->steps[shared])) < target_rank(step_target(&b->data->steps[shared])) ? -1 : 1;
}

static void ends_make(struct multicast *multicast)
{
    struct multicast_end *end = NULL;
    multicast->end = arena_alloc(multicast->rings, sizeof *multicast->end);
    for (uint32_t i = 0; i < multicast->rings; i++) {
        struct route *route = multicast->ring[i]->data;
        if (!end || end->route != route) {
            end = &multicast->end[multicast->ends++];
            *end = (struct multicast_end){route, i ? routes_shared(end[-1].route, route) : 0, i, 0};
        }
        end->count++;
    }
}

static __attribute__((cold, noinline)) uint32_t multicast_number(uint32_t source, const struct request *ask)
{
    uint64_t key = (uint64_t)source << 32 | ask->peers;
    struct multicast *multicast = key_table_find(&multicasts.table, key);
    if (multicast)
        return multicast->number;
    struct pe_list peers = peers_of(ask);
    multicast = arena_alloc(1, sizeof *multicast);
    multicast->rings = peers.count;
    multicast->ring = arena_alloc(peers.count, sizeof *multicast->ring);
    for (uint32_t i = 0; i < peers.count; i++) {
        multicast->ring[i] = ring_of(source, peers.pe[i]);
        ring_route(multicast->ring[i]);
    }
    qsort(multicast->ring, multicast->rings, sizeof *multicast->ring, in_branch_order);
    ends_make(multicast);
    key_table_add(&multicasts.table, &multicast->link, key);
    *array_add(&multicasts.by_number) = multicast;
    return multicast->number = (uint32_t)multicasts.by_number.count;
}

static const struct multicast *multicast_of(const struct command *send)
{
    return multicasts.by_number.at[send->multicast - 1];
}

uint32_t ipcq_ends(const struct command *send)
{
    return send->multicast ? multicast_of(send)->ends : 1;
}

void ipcq_submitted(struct command *command)
{
    uint32_t own = pe_number(command->pe), peer = command->ask.peer;
    if (__builtin_expect(command->ask.peers, 0)) {
        command->multicast = multicast_number(own, &command->ask);
        return;
    }
    command->ring = command->ask.kind == COMMAND_send ? ring_of(own, peer) : ring_of(peer, own);
}

/* ---- receiving */

static struct ipcq_message *message_of(struct message *message)
{
    return container_of(message, struct ipcq_message, branch.data.message);
}

static void credit_returned(struct message *message)
{
    struct ipcq_message *freed = message_of(message);
    struct ring *ring = freed->ring;
    ring->credits++;
    observe_credit_returned(ring->source, ring->destination);
    ring->slot_of[ring->returned++ % kb_attrs.pe_ipcq_slots] = freed->slot;
    pool_give_back(&messages, freed);
    pe_wake(&kb_pe[ring->source]);
}

/* What the model of a user adds to a step of a message; 0 with the built-in one. */
static uint64_t model_delay_ps(const struct ring *ring, enum kb_ring_event event, uint64_t bytes)
{
    if (!kb_has_model[NODE_pe_ipcq])
        return 0;
    bool sends = event == KB_RING_SEND;
    return pe_ipcq_delay_ps(&(struct kb_ring_request){sends ? ring->source : ring->destination,
                                                      sends ? ring->destination : ring->source, event, bytes,
                                                      ring->credits, now_ps});
}

/* Frees a slot: its credit goes back along the way between the two pe_dma. */
static void slot_free(struct ring *ring, struct ipcq_message *message)
{
    uint64_t leave_ps = time_after(now_ps, model_delay_ps(ring, KB_RING_CREDIT, message->bytes));
    if (!ring->credit)
        ring->credit = route_back(route_of(way_of(place_pe(ring->source, NODE_pe_dma),
                                                  place_pe(ring->destination, NODE_pe_dma), 0)));
    control_send(&message->branch.data.message, ring->credit, leave_ps, credit_returned);
}

/* Whether the message has the length that the receive asks for. A receive of a command stream asks for none. */
static bool length_fits(const struct command *receive, const struct ipcq_message *message)
{
    if (!receive->ask.bytes || receive->ask.bytes == message->bytes)
        return true;
    const struct sender *sender = &message->sender;
    command_fault(receive, FAULT_KERNEL_ERROR, NODE_pe_cpu,
                  "the next message has %" PRIu64 " bytes, the buffer %" PRIu64 "; it was sent by kernel %s at %s:%"
                  PRIu32, message->bytes, receive->ask.bytes, sender->kernel, sender->file, sender->line);
    return false;
}

/* The bytes of a message are in the receiver's buffer. */
static void data_received(const struct command *receive, struct ipcq_message *message)
{
    observe_message_received(receive, &message->sender);
}

/* The receive has the next slot. */
static void slot_taken(struct ring *ring, struct command *command, struct ipcq_message *message)
{
    if (kb_attrs.pe_ipcq_buffer == BUFFER_tcm) {
        data_received(command, message);
        slot_free(ring, message);
        scheduler_tile_ended(command);
        return;
    }
    command->ask.address[OPERAND_A] = slot_address(ring, message->slot);
    command->slot = message;
    token_read_slot(command);
}

static void slot_taken_late(struct event *event)
{
    struct ipcq_message *message = message_of(container_of(event, struct message, event));
    slot_taken(message->ring, message->receive, message);
}

/* A receive takes the next slot, which is full. */
static void slot_take(struct ring *ring, struct command *command)
{
    struct ipcq_message *message = ring_message(ring, ring->received);
    if (!length_fits(command, message))
        return;
    command->ask.bytes = message->bytes;
    ring->received++;
    uint64_t delay_ps = model_delay_ps(ring, KB_RING_RECEIVE, message->bytes);
    if (!delay_ps) {
        slot_taken(ring, command, message);
        return;
    }
    message->receive = command;
    struct event *event = &message->branch.data.message.event;
    event_set(event, event_order(pe_rank(command->pe, NODE_pe_ipcq), CLASS_SERVICE, command->number), 0,
              slot_taken_late);
    event_at(event, time_after(now_ps, delay_ps));
}

/* Lets receives take slots in the order of sending, as far as they are full. `waited`: they were there first. */
static void receives_go_on(struct ring *ring, bool waited)
{
    while (!kb_pe[ring->destination].failed && ring->waiting && ring->received < ring->sent
           && ring_message(ring, ring->received)->full) {
        struct command *command = ring->waiting;
        ring->waiting = command->waiting;
        if (waited)
            observe_receive_goes_on(command);
        slot_take(ring, command);
    }
}

void ipcq_receive(struct command *command)
{
    struct ring *ring = command->ring;
    command->waiting = NULL;
    *(ring->waiting ? &ring->waiting_last->waiting : &ring->waiting) = command;
    ring->waiting_last = command;
    receives_go_on(ring, false);
}

void ipcq_slot_read(struct command *command)
{
    data_received(command, command->slot);
    slot_free(command->ring, command->slot);
}

static void slot_filled(struct message *delivered)
{
    struct ipcq_message *message = message_of(delivered);
    message->full = true;
    receives_go_on(message->ring, true);
}

/* ---- which send is next */

/* The rings of a send. */
struct rings {
    struct ring *const *ring;
    uint32_t count;
};

static struct rings rings_of(const struct command *send)
{
    if (!send->multicast)
        return (struct rings){&send->ring, 1};
    const struct multicast *multicast = multicast_of(send);
    return (struct rings){multicast->ring, multicast->rings};
}

static struct ring *ring_without_credit(const struct command *send)
{
    struct rings rings = rings_of(send);
    for (uint32_t i = 0; i < rings.count; i++)
        if (!rings.ring[i]->credits)
            return rings.ring[i];
    return NULL;
}

bool ipcq_has_credits(const struct command *send)
{
    return !ring_without_credit(send);
}

bool ipcq_share(const struct command *send, const struct command *other)
{
    struct rings a = rings_of(send), b = rings_of(other);
    for (uint32_t i = 0; i < a.count; i++)
        for (uint32_t j = 0; j < b.count; j++)
            if (a.ring[i] == b.ring[j])
                return true;
    return false;
}

static uint64_t searches;

/* Whether a send that waits for one of its rings was passed in this search. */
static bool was_passed(struct rings rings)
{
    for (uint32_t i = 0; i < rings.count; i++)
        if (rings.ring[i]->passed == searches)
            return true;
    return false;
}

/* Passes sends that wait. What comes after them in a ring waits too; of a send to one PE, the ring itself says so. */
static __attribute__((noinline)) struct token *send_search(const struct queue *queue, struct token **before)
{
    struct token *token = queue->head;
    bool marked = false;
    searches++;
    *before = NULL;
    for (; token; *before = token, token = token->next) {
        struct rings rings = rings_of(token->command);
        if (ipcq_has_credits(token->command) && !(marked && was_passed(rings)))
            return token;
        for (uint32_t i = 0; i < rings.count && (marked || rings.count > 1); i++)
            rings.ring[i]->passed = searches;
        marked |= rings.count > 1;
    }
    return NULL;
}

struct token *ipcq_next(const struct queue *queue, struct token **before)
{
    struct token *token = queue->head;
    *before = NULL;
    if (!token || (token->command->ring && token->command->ring->credits))
        return token;
    return send_search(queue, before);
}

/* ---- sending */

/* Writes the data of a message to its slot. */
static uint64_t slot_write(struct ipcq_message *message, const struct payload *payload, uint64_t head_ps, uint64_t delivered_ps)
{
    struct range range = slot_range(message->ring, message->slot, message->bytes);
    return memory_write_done_ps(&range, payload, head_ps, delivered_ps);
}

/* The memory of a ring, at the end of a route, rings a doorbell when the slot is written. */
static void doorbell_send(struct ipcq_message *message, struct place memory, uint64_t done_ps)
{
    struct way doorbell = way_of(memory, place_pe(message->ring->destination, NODE_pe_dma), 0);
    control_send(&message->branch.data.message, route_of(doorbell), done_ps, slot_filled);
}

/* The data are at the ring's memory. The end of the write fills a slot in a TCM; else the memory then rings a
 * doorbell. */
static void message_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct ipcq_message *message = container_of(data, struct ipcq_message, branch.data);
    uint64_t done_ps = slot_write(message, data->payload, head_ps, delivered_ps);
    if (kb_attrs.pe_ipcq_buffer == BUFFER_tcm)
        data_deliver(data, done_ps, slot_filled);
    else
        doorbell_send(message, rank_place(route_to_rank(data->message.route)), done_ps);
}

/* The data are at a memory that holds several of their rings. */
static void messages_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct ipcq_message *message = container_of(data, struct ipcq_message, branch.data);
    if (kb_attrs.pe_ipcq_buffer == BUFFER_tcm) {
        message_arrived(data, head_ps, delivered_ps);
        return;
    }
    struct place memory = rank_place(route_to_rank(data->message.route));
    for (struct ipcq_message *next; message; message = next) {
        next = message->beside;
        doorbell_send(message, memory, slot_write(message, data->payload, head_ps, delivered_ps));
    }
}

/* The service of a send ends when the first link is free of the message. */
static void message_left(struct data_message *data, uint64_t link_free_ps)
{
    struct ipcq_message *message = container_of(data, struct ipcq_message, branch.data);
    service_until(message->token, STAGE_COMM, link_free_ps);
}

uint64_t ipcq_send_delay_ps(const struct command *send)
{
    struct rings rings = rings_of(send);
    uint64_t most_ps = 0;
    for (uint32_t i = 0; i < rings.count; i++) {
        uint64_t delay_ps = model_delay_ps(rings.ring[i], KB_RING_SEND, send->ask.bytes);
        most_ps = delay_ps > most_ps ? delay_ps : most_ps;
    }
    return most_ps;
}

/* A new message on a ring, which it takes a slot of. */
static inline struct ipcq_message *message_new(struct ring *ring, struct command *command)
{
    struct ipcq_message *message = pool_reuse(&messages, sizeof *message);
    uint64_t place = ring->sent++ % kb_attrs.pe_ipcq_slots;
    ring->message[place] = message;
    message->slot = ring->slot_of[place];
    message->full = false;
    ring->credits--;
    message->ring = ring;
    message->sender = (struct sender){command->pe, command_cause(command), command->kernel, command->ask.file, command->ask.record,
                                  command->ask.line};
    message->branch.data.message.cause = message->sender.cause;
    message->bytes = command->ask.bytes;
    return message;
}

/* The first branch of a send to several PEs, with the others behind it. */
static struct branch *branches_new(struct command *command)
{
    const struct multicast *multicast = multicast_of(command);
    struct branch *first = NULL, **to = &first;
    for (const struct multicast_end *end = multicast->end; end < multicast->end + multicast->ends; end++) {
        struct ipcq_message *message = NULL, **beside = &message;
        for (uint32_t i = 0; i < end->count; i++, beside = &(*beside)->beside)
            *beside = message_new(multicast->ring[end->first + i], command);
        *beside = NULL;
        message->branch.data.message.route = end->route;
        message->branch.shared = end->shared;
        *to = &message->branch;
        to = &message->branch.next;
    }
    *to = NULL;
    return first;
}

static const struct data_kind message_kind = {.arrived = message_arrived, .left = message_left};
static const struct data_kind messages_kind = {.arrived = messages_arrived, .left = message_left};

static __attribute__((noinline)) void multicast_send(struct token *token)
{
    struct command *command = token->command;
    struct branch *first = branches_new(command);
    const struct payload *payload = payload_of(command->ask.bytes);
    container_of(first, struct ipcq_message, branch)->token = token;
    branches_send(first, payload, tcm_read(command->pe, now_ps, payload), &messages_kind);
}

void ipcq_send(struct token *token)
{
    struct command *command = token->command;
    struct ring *ring = command->ring;
    if (!ring) {
        multicast_send(token);
        return;
    }
    struct ipcq_message *message = message_new(ring, command);
    const struct payload *payload = payload_of(message->bytes);
    message->token = token;
    if (!ring->data)
        ring_route(ring);
    data_send(&message->branch.data, ring->data, payload, tcm_read(command->pe, now_ps, payload), 0, &message_kind);
}

/* ---- who waits for whom */

/* The ring that a send waits for: one without a free slot, its own or that of a send which it cannot pass. NULL: none. */
static const struct ring *awaited_ring(const struct command *send)
{
    const struct ring *ring = ring_without_credit(send);
    if (ring)
        return ring;
    for (const struct token *token = send->pe->direct[STAGE_COMM].head; token && token->command != send; token = token->next)
        if (ipcq_share(token->command, send))
            return awaited_ring(token->command);
    return NULL;
}

static const struct ring *ring_awaited_by(const struct command *command)
{
    const struct ring *ring = command->ask.kind == COMMAND_send ? awaited_ring(command) : NULL;
    return ring ? ring : *rings_of(command).ring;
}

uint32_t ipcq_awaits(const struct command *command)
{
    const struct ring *ring = ring_awaited_by(command);
    return command->ask.kind == COMMAND_send ? ring->destination : ring->source;
}

void ipcq_describe(const struct command *command, char *out, size_t room)
{
    const struct ring *ring = ring_awaited_by(command);
    snprintf(out, room, "%" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " of %" PRIu64 " slots free at the sender",
             ring->sent, ring->received, ring->credits, kb_attrs.pe_ipcq_slots);
}

void ipcq_reset(void)
{
    pool_release(&messages);
    memset(chains, 0, sizeof chains);
    newest = NULL;
    array_free(&multicasts.by_number);
    memset(&multicasts, 0, sizeof multicasts);
}

/* ---- save and restore */

STATE_LISTED(ring)
#define RING STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(ipcq_message)
#define IPCQ_MESSAGE STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END

/* Calls act for each ring that was used. */
static void each_ring(void (*act)(struct ring *ring, void *arg), void *arg)
{
    for (struct ring *ring = newest; ring; ring = ring->older)
        act(ring, arg);
}

struct visit {
    void (*visit)(const struct ring_counts *ring, void *arg);
    void *arg;
};

static void ring_visit(struct ring *ring, void *visitor)
{
    const struct visit *to = visitor;
    uint64_t unread_bytes = 0;
    for (uint64_t i = ring->received; i < ring->sent; i++)
        unread_bytes += ring_message(ring, i)->bytes;
    to->visit(&(struct ring_counts){ring->source, ring->destination, ring->credits, ring->sent, ring->received,
                                    ring->returned, unread_bytes, ring->waiting}, to->arg);
}

void ipcq_visit(void (*visit)(const struct ring_counts *ring, void *arg), void *arg)
{
    each_ring(ring_visit, &(struct visit){visit, arg});
}

static void ring_check(struct ring *ring, void *why)
{
    if (ring->waiting)
        *(const char **)why = "a receive waits for a message";
    else if (ring->returned != ring->sent)
        *(const char **)why = "a message was sent and not received";
}

const char *ipcq_under_way(void)
{
    const char *why = NULL;
    each_ring(ring_check, &why);
    return why;
}

static void ring_count(struct ring *ring, void *count)
{
    (void)ring;
    ++*(uint64_t *)count;
}

static void ring_carry(struct ring *ring, void *arg)
{
    struct state_image *image = arg;
    uint32_t source = ring ? ring->source : 0, destination = ring ? ring->destination : 0;
    state_carry(image, &source, sizeof source);
    state_carry(image, &destination, sizeof destination);
    if (image->restores)
        ring = ring_of(source, destination);
#define RING(field, kind, when) STATE_CARRY(RING, ring, field, kind)
#include "state.def"
    state_carry(image, ring->slot_of, kb_attrs.pe_ipcq_slots * sizeof *ring->slot_of);
}

void ipcq_carry(struct state_image *image)
{
    uint64_t count = 0;
    each_ring(ring_count, &count);
    state_carry(image, &count, sizeof count);
    if (!image->restores)
        each_ring(ring_carry, image);
    else
        each_ring(ring_clear, NULL);
    for (uint64_t i = 0; image->restores && i < count; i++)
        ring_carry(NULL, image);
}

const struct handler ipcq_handlers[] = {
    HANDLER(credit_returned, "credit at the sender"),
    HANDLER(slot_filled, "message at the receiver"),
    HANDLER(slot_taken_late, "receive that a model of a user has delayed"),
    {0}};
