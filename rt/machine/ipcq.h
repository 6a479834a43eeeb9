/* ipcq.h: pe_ipcq: rings of slots from one PE to another, and the sends and receives on them. */
#ifndef KB_IPCQ_H
#define KB_IPCQ_H

#include "pe.h"

/* Why a send or receive cannot be submitted; NULL: it can. */
const char *ipcq_refusal(const struct command *command);

/* Whether a send's ring has a free slot. */
bool ipcq_has_credit(const struct command *send);

/* Starts the service of a send: it takes a slot. */
void ipcq_send(struct token *token);

/* The scheduler has taken a receive: it waits for the next message of its ring. */
void ipcq_receive(struct command *command);

/* The DMA_READ of a receive's slot, in sram or HBM, has ended. */
void ipcq_slot_read(struct command *command);

/* Describes the ring of a send or receive for people: messages sent and received, slots free at the sender. */
void ipcq_describe(const struct command *command, char *out, size_t room);

/* Forgets all rings. */
void ipcq_reset(void);

/* Saves or restores all rings (state.h): no message is between two PEs, and no receive waits. */
struct state_image;
void ipcq_carry(struct state_image *image);

/* Why rings cannot be saved, or NULL. */
const char *ipcq_under_way(void);

extern const struct handler ipcq_handlers[];

#endif
