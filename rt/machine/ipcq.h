/* ipcq.h: pe_ipcq: rings of slots between pairs of PEs, and the sends and receives on them. */
#ifndef KB_RING_H
#define KB_RING_H

#include "pe.h"

/* Why a send or receive cannot be submitted; NULL: it can. */
const char *ring_refusal(const struct command *command);

/* Whether a send's ring has a free slot. */
bool ring_has_credit(const struct command *send);

/* Starts the service of a send, which takes the slot. */
void ring_send(struct token *token);

/* A receive has come from the scheduler: waits for the next message of its ring. */
void ring_receive(struct command *command);

/* The read of a receive's slot, in sram or HBM, has ended. */
void ring_slot_read(struct command *command);

/* For people: messages sent and not received on the ring of a send or receive, its slots, and free ones at the sender.
 */
void ring_describe(const struct command *command, char *out, size_t room);

/* No ring was used. */
void rings_reset(void);

#endif
