/* dma_requests.h: the requests of a DMA service that pe_dma limits: in size, in distance, in number, or by the rate of the
 * service; and of one that reads two operands. */
#ifndef KB_DMA_REQUESTS_H
#define KB_DMA_REQUESTS_H

#include "pe.h"

/* Whether the machine limits requests of services of a rate; 0: that has no limit. */
static inline bool dma_limits_requests(uint64_t bw_bps)
{
    return bw_bps | kb_attrs.pe_dma_max_request_bytes | kb_attrs.pe_dma_request_ps | kb_attrs.pe_dma_requests_in_flight;
}

/* Whether services of a DMA_READ or DMA_WRITE stage have such requests; whether any have. */
static inline bool dma_stage_has_requests(const struct stage *stage)
{
    return dma_limits_requests(stage->kind == STAGE_DMA_READ ? kb_attrs.pe_dma_rd_bw_bps : kb_attrs.pe_dma_wr_bw_bps)
           || stage->operand == OPERANDS_A_B;
}

static inline bool dma_has_requests(void)
{
    return dma_limits_requests(kb_attrs.pe_dma_rd_bw_bps | kb_attrs.pe_dma_wr_bw_bps) || kb_attrs.pe_dma_reads;
}

/* The requests of a service. */
struct dma_requests;

/* Begins with none. The token has one part more that is not known until dma_requests_leave, so the service does not end before;
 * nor does it before the time that its rate allows. */
struct dma_requests *dma_requests_begin(struct token *token);

/* Adds a run in another memory, of which nothing leaves before ready_ps. Runs leave in the order in which they are added. */
void dma_requests_add(struct dma_requests *requests, const struct range *range, uint64_t ready_ps);

/* All runs are added: sends as many requests as may be under way. Each answer sends one more. */
void dma_requests_leave(struct dma_requests *requests);

/* Forgets all requests. */
void dma_requests_reset(void);

extern const struct handler dma_requests_handlers[];

#endif
