/* engine.h: how long the engines of a PE take for a stage. */
#ifndef KB_ENGINE_H
#define KB_ENGINE_H

#include "pe.h"
#include "stats.h"

/* Begins the service of a token's stage: some event will call service_ended. Emitted. */
void service_start(struct token *token);

/* A DMA_READ or DMA_WRITE (dma.c). */
void dma_start(struct token *token);

/* Bytes out of or into a PE's own TCM from at_ps on, at so many bytes/s; the end of the reservation. */
uint64_t tcm_read(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t bw_bps);
uint64_t tcm_write(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t bw_bps);

/* The same for so long a time. */
uint64_t tcm_read_for(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t length_ps);
uint64_t tcm_write_for(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t length_ps);

/* The service ends at t_ps, by an event of its own. */
void service_until(struct token *token, uint64_t t_ps);
void service_event(struct event *event);

/* The service ends now, in place. */
void service_ended(struct token *token);

/* The latency of the PE-internal link from one stage's engine to the next one's; from STAGE_NONE: from the scheduler.
 */
uint64_t engine_link_ps(enum stage_kind from, enum stage_kind to);

/* The engine that serves a stage, as statistics count them. */
enum engine engine_of(enum stage_kind stage);

/* Stops the run: a model says that what begins now takes so long that it never ends. */
_Noreturn void service_too_long(const char *model, uint64_t length_ps);

#endif
