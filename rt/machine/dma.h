/* dma.h: a DMA's transfer over the fabric. */
#ifndef KB_DMA_H
#define KB_DMA_H

#include "memory.h"
#include "pe.h"

/* One physical run of a DMA_READ or DMA_WRITE. */
struct transfer {
    struct data_message data; /* a read's request and response, a write's data and acknowledgement */
    struct token *token;
    struct range range;
    struct transfer *next;                              /* among the free ones */
};

/* One for a token, of a range; back again. */
struct transfer *transfer_new(struct token *token, const struct range *range);
void transfer_free(struct transfer *transfer);

/* The tile of a transfer's token is another one now, of the same size: its range is that tile's. */
void transfer_move(struct transfer *transfer);

#endif
