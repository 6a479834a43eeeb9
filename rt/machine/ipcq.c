/* ipcq.c: pe_ipcq: queues between PEs.
 *
 *     send    takes a credit; TCM read -> data to the ring's memory; ends when the first link is free of the message
 *             -> when the data are written and, in sram or HBM, a doorbell has come to the receiver, the slot is full
 *     recv    waits for the next full slot, in the order of sending; in a TCM it is complete at once, else it reads the
 *             slot (DMA_READ) -> the slot is free: a credit goes back to the sender
 *
 * A ring outlives launches. Messages are received in the order of sending. With several read engines slots may become
 * free in another order; they are taken again in the order in which their credits come back. */
#include "ipcq.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/rates.h"
#include "common/arena.h"
#include "common/hash.h"
#include "common/pool.h"
#include "emitted.h"
#include "engine.h"
#include "kb/impl.h"
#include "memory.h"
#include "scheduler.h"
#include "sim/observer.h"
#include "state_fields.h"
#include "stats.h"
#include "tile.h"

struct ring;

/* A message, from the send to the return of its credit. */
struct ipcq_message {
    struct data_message data;                           /* the data, then the doorbell, then the credit */
    struct ring *ring;
    struct token *token;                                /* of the send, until its service ends */
    struct command *send;                               /* held until it is received */
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
    struct ipcq_message **message;                      /* i, at i modulo the number of slots, until it is received */
    uint32_t *slot_of;                                  /* of message i, likewise */
    struct command *waiting, *waiting_last;             /* receives, linked by `waiting` */
    struct route *data, *credit;                        /* to its memory, back to the sender; NULL: not used yet */
};

/* ---- all rings that were used, by their pair of PEs */

enum { CHAIN_BITS = 14, CHAINS = 1 << CHAIN_BITS };

static struct ring *chains[CHAINS], *newest;

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
    uint64_t key = (uint64_t)source << 32 | destination;
    struct ring **chain = &chains[hash_bits(key, CHAIN_BITS)];
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

void ipcq_submitted(struct command *command)
{
    uint32_t own = pe_number(command->pe), peer = command->ask.peer;
    command->ring = command->ask.kind == COMMAND_send ? ring_of(own, peer) : ring_of(peer, own);
}

/* ---- where slots are */

static uint64_t ring_bytes(void)
{
    return product(kb_attrs.pe_ipcq_slots, kb_attrs.pe_ipcq_slot_bytes);
}

static uint32_t ring_memory(uint32_t destination)
{
    return kb_attrs.pe_ipcq_buffer == BUFFER_SRAM ? memory_sram(destination / kb_shape.pes) : memory_hbm(destination);
}

/* Rings are at the end of the memory, downwards by the number of the sending PE. */
static uint64_t slot_address(const struct ring *ring, const struct ipcq_message *message)
{
    uint32_t memory = ring_memory(ring->destination);
    uint64_t slot = message->slot * kb_attrs.pe_ipcq_slot_bytes;
    return memory_address(memory, memory_size(memory) - (ring->source + 1) * ring_bytes() + slot);
}

static struct range slot_range(const struct ring *ring, const struct ipcq_message *message)
{
    struct range range = {.space = SPACE_TCM, .pe = ring->destination, .bytes = message->bytes};
    if (kb_attrs.pe_ipcq_buffer != BUFFER_TCM)
        address_decode(slot_address(ring, message), message->bytes, &range);
    return range;
}

const char *ipcq_refusal(const struct command *command)
{
    uint32_t own = pe_number(command->pe);
    if (command->ask.peer == own)
        return "a PE has no ring to or from itself";
    if (command->ask.kind != COMMAND_send)
        return NULL;
    if (command->ask.bytes > kb_attrs.pe_ipcq_slot_bytes)
        return "it is larger than a slot of the ring";
    if (kb_attrs.pe_ipcq_buffer != BUFFER_TCM
        && product(own + UINT64_C(1), ring_bytes()) > memory_size(ring_memory(command->ask.peer)))
        return "the ring lies below the start of its memory";
    return NULL;
}

/* ---- receiving */

static struct ipcq_message *message_of(struct message *message)
{
    return container_of(message, struct ipcq_message, data.message);
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
        ring->credit = route_back(route_of((struct way){place_pe(ring->source, NODE_pe_dma),
                                                        place_pe(ring->destination, NODE_pe_dma), REQUEST}));
    control_send(&message->data.message, ring->credit, leave_ps, credit_returned);
}

/* Whether the message has the length that the receive asks for. A receive of a command stream asks for none. */
static bool length_fits(const struct command *receive, const struct ipcq_message *message)
{
    if (!receive->ask.bytes || receive->ask.bytes == message->bytes)
        return true;
    const struct command *send = message->send;
    command_fault(receive, FAULT_KERNEL_ERROR, NODE_pe_cpu,
                  "the next message has %" PRIu64 " bytes, the buffer %" PRIu64 "; it was sent by kernel %s at %s:%"
                  PRIu32, message->bytes, receive->ask.bytes, send->kernel, send->ask.file, send->ask.line);
    return false;
}

/* The bytes of a message are in the receiver's buffer. */
static void data_received(const struct command *receive, struct ipcq_message *message)
{
    observe_message_received(receive, message->send);
    command_drop(message->send);
    message->send = NULL;
}

/* The receive has the next slot. */
static void slot_taken(struct ring *ring, struct command *command, struct ipcq_message *message)
{
    if (kb_attrs.pe_ipcq_buffer == BUFFER_TCM) {
        data_received(command, message);
        slot_free(ring, message);
        scheduler_tile_ended(command);
        return;
    }
    command->ask.address[OPERAND_A] = slot_address(ring, message);
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
    struct event *event = &message->data.message.event;
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

/* ---- sending */

bool ipcq_has_credit(const struct command *send)
{
    return send->ring->credits > 0;
}

/* The data are at the ring's memory. The end of the write fills a slot in a TCM; else the memory then rings a
 * doorbell. */
static void message_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct ipcq_message *message = container_of(data, struct ipcq_message, data);
    struct range range = slot_range(message->ring, message);
    uint64_t done_ps = memory_write_done_ps(&range, data->payload, head_ps, delivered_ps);
    if (kb_attrs.pe_ipcq_buffer == BUFFER_TCM) {
        data_deliver(data, done_ps, slot_filled);
        return;
    }
    struct way doorbell = {data->message.route->way.to, place_pe(message->ring->destination, NODE_pe_dma), REQUEST};
    control_send(&data->message, route_of(doorbell), done_ps, slot_filled);
}

/* The service of a send ends when the first link is free of the message. */
static void message_left(struct data_message *data, uint64_t link_free_ps)
{
    struct ipcq_message *message = container_of(data, struct ipcq_message, data);
    service_until(message->token, STAGE_COMM, link_free_ps);
}

uint64_t ipcq_send_delay_ps(const struct command *send)
{
    return model_delay_ps(send->ring, KB_RING_SEND, send->ask.bytes);
}

void ipcq_send(struct token *token)
{
    struct command *command = token->command;
    struct ring *ring = command->ring;
    struct ipcq_message *message = pool_reuse(&messages, sizeof *message);
    uint64_t place = ring->sent++ % kb_attrs.pe_ipcq_slots;
    ring->message[place] = message;
    message->slot = ring->slot_of[place];
    message->full = false;
    ring->credits--;
    message->ring = ring;
    message->token = token;
    message->send = command;
    message->data.message.cause = command_cause(command);
    command_hold(command);
    message->bytes = command->ask.bytes;
    if (!ring->data) {
        struct range range = slot_range(ring, message);
        ring->data = route_of((struct way){place_pe(ring->source, NODE_pe_dma), range_place(&range), REQUEST});
    }
    const struct payload *payload = payload_of(message->bytes);
    uint64_t leave_ps = tcm_read(command->pe, now_ps, payload);
    message->data.left = message_left;
    data_send(&message->data, ring->data, payload, leave_ps, 0, message_arrived);
}

void ipcq_describe(const struct command *command, char *out, size_t room)
{
    const struct ring *ring = command->ring;
    snprintf(out, room, "%" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " of %" PRIu64 " slots free at the sender",
             ring->sent, ring->received, ring->credits, kb_attrs.pe_ipcq_slots);
}

void ipcq_reset(void)
{
    pool_release(&messages);
    memset(chains, 0, sizeof chains);
    newest = NULL;
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
