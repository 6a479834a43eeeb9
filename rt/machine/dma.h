/* dma.h: pe_dma's reads and writes. */
#ifndef KB_DMA_H
#define KB_DMA_H

#include "common/pool.h"
#include "memory.h"
#include "pe.h"

/* One physical run of a DMA_READ or DMA_WRITE over the fabric. */
struct transfer {
    struct data_message data;                           /* request and response, or data and acknowledgement */
    struct token *token;
    uint64_t free_ps;                                   /* of the TCM's write channel, before a delivery ahead of time */
    struct range range;
};

/* Starts the service of a DMA_READ or DMA_WRITE. */
void dma_start(struct token *token);

/* The same, or that of a send, with the time that models of users take before. */
void dma_start_modelled(struct token *token);

/* The end of one run of the token's stage is known. Only an acknowledgement ends the stage in place. */
void dma_part_known(struct token *token, uint64_t end_ps, bool acknowledged);

extern struct pool transfers;                           /* of all transfers */

/* Makes a transfer of a range for a token; frees it. */
struct transfer *transfer_new(struct token *token, const struct range *range);

static inline void transfer_free(struct transfer *transfer)
{
    pool_give_back(&transfers, transfer);
}

/* Frees the transfer of a token that has ended. Returns the token. */
static inline struct token *transfer_end(struct transfer *transfer)
{
    struct token *token = transfer->token;
    transfer_free(transfer);
    token->transfer = NULL;
    return token;
}

/* Sets the transfer's range to that of its token's tile, which has been replaced by another one of the same size. */
void transfer_move(struct transfer *transfer);

/* The request of a read has reached its memory; what its response is. */
void read_requested(struct message *message);
extern const struct data_kind reader;

/* Ends the service of a read whose delivery was made ahead of time. */
void read_end(struct token *token);

/* Ends all that was put off or made ahead of time: deliveries (delivery_settle) and ends of services (deferred.h). The machine is
 * in the same state as without it. */
void machine_settle(void);

/* Takes away what the transfers under way are counted for beyond now (count: -1), or adds it again (1). */
void transfers_count_ahead(int count);

/* When the first of the steps after now is due that were made ahead of time; UINT64_MAX: there is none. */
uint64_t transfers_next_ps(void);

/* Forgets all transfers. */
void transfers_reset(void);

extern const struct handler dma_handlers[];

#endif
