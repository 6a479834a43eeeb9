/* ipcq.h: pe_ipcq: rings of slots from one PE to another, and the sends and receives on them. */
#ifndef KB_IPCQ_H
#define KB_IPCQ_H

#include "pe.h"

/* Returns why a send or receive cannot be submitted, or NULL. */
const char *ipcq_refusal(const struct command *command);

/* Finds the rings of a send or receive that is submitted. */
void ipcq_submitted(struct command *command);

/* The first send of a queue that may start: each of its rings has a free slot, and none before it that waits has a ring in
 * common with it. Returns NULL if none may. *before: the one before it in the queue, NULL if it is the head. */
struct token *ipcq_next(const struct queue *queue, struct token **before);

/* Whether each ring of a send has a free slot; whether two sends have a ring in common. */
bool ipcq_has_credits(const struct command *send);
bool ipcq_share(const struct command *send, const struct command *other);

/* What the model of a user of pe_ipcq adds before a send starts: of several rings the longest. */
uint64_t ipcq_send_delay_ps(const struct command *send);

/* Starts the service of a send: it takes a slot of each of its rings. */
void ipcq_send(struct token *token);

/* The number of memories that a send was written to: its message arrived once at each. */
uint32_t ipcq_ends(const struct command *send);

/* Lets a receive, which the scheduler has taken, wait for the next message of its ring. */
void ipcq_receive(struct command *command);

/* Called when the DMA_READ of a receive's slot, in sram or HBM, has ended: frees the slot. */
void ipcq_slot_read(struct command *command);

/* The PE at the other end of the ring that a send or receive waits for; of a send that waits for none, of one of its rings. */
uint32_t ipcq_awaits(const struct command *command);

/* Describes that ring for people: messages sent and received, slots free at the sender. */
void ipcq_describe(const struct command *command, char *out, size_t room);

/* Calls `visit` with the counts of each ring that was used. */
struct ring_counts {
    uint32_t source, destination;                       /* PEs */
    uint64_t credits, sent, received, returned;         /* credits: slots that the sender may fill; others: totals */
    uint64_t unread_bytes;                              /* of messages that were sent and not received */
    bool waits;                                         /* a receive waits */
};

void ipcq_visit(void (*visit)(const struct ring_counts *ring, void *arg), void *arg);

/* Forgets all rings. */
void ipcq_reset(void);

/* Saves or restores all rings (state_fields.h), while no message is between two PEs and no receive waits. */
struct state_image;
void ipcq_carry(struct state_image *image);

/* Returns why rings cannot be saved now, or NULL. */
const char *ipcq_under_way(void);

extern const struct handler ipcq_handlers[];

#endif
