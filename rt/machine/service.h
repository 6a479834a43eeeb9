/* service.h: which token a server takes, and what begins with its service. Inline, because emitted code compiles it for each
 * server of the machine, whose stages are constants there.
 *
 * Whoever starts a service takes the token out of its queue, then calls service_begin and service_start (emitted.h). */
#ifndef KB_SERVICE_H
#define KB_SERVICE_H

#include "emitted.h"
#include "engine.h"
#include "pe.h"
#include "sim/observer.h"
#include "stats.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Compiled for each server of the machine. With KB_GENERAL it is compiled once for all of them, as if the structure of the
 * machine were not known: that is for measurements (docs/speed.md). */
#ifdef KB_GENERAL
#define PER_SERVER static __attribute__((noinline, noclone))
#else
#define PER_SERVER ALWAYS_INLINE
#endif

/* Whether several servers serve reads, which is why services are numbered. A constant in emitted code. */
#ifndef SEVERAL_READ_SERVERS
#define SEVERAL_READ_SERVERS (kb_attrs.pe_dma_rd_engines > 1)
#endif

/* Orders tokens that arrived at the same time. */
static inline bool key_before(const struct token *a, const struct token *b)
{
    return a->command != b->command ? a->command->number < b->command->number : a->tile.id < b->tile.id;
}

/* The queue of a stage that a token waits in, and its bit in pe->waiting. */
ALWAYS_INLINE struct queue *queue_of(struct pe *pe, const struct token *token, enum stage_kind stage)
{
    return __builtin_expect(token->direct, 0) ? &pe->direct[stage] : &pe->queue[stage];
}

ALWAYS_INLINE uint32_t queue_bit(const struct token *token, enum stage_kind stage)
{
    return UINT32_C(1) << stage << (__builtin_expect(token->direct, 0) ? WAITS_DIRECT : 0);
}

/* Inserts a token at its place in a queue, which is before the last token. */
void queue_insert(struct queue *queue, struct token *token);

/* Puts a token into the queue of its stage, which is sorted by (arrival, key), and wakes the PE. */
ALWAYS_INLINE void token_enqueue(struct pe *pe, struct token *token, bool watched)
{
    enum stage_kind stage = token->stage->kind;
    struct queue *queue = queue_of(pe, token, stage);
    token->arrival_ps = now_ps;
    if (!queue->head) {
        queue->head = queue->tail = token;
        token->next = NULL;
        pe->waiting |= queue_bit(token, stage);
    } else if (queue->tail->arrival_ps < now_ps || key_before(queue->tail, token)) {
        queue->tail->next = token;
        queue->tail = token;
        token->next = NULL;
    } else {
        queue_insert(queue, token);
    }
    if (watched)
        observe_tile_queued(token);
    token->dispatched = true;
    pe_wake(pe);
}

/* The group of engines whose busy time a stage adds to; NULL: none. */
ALWAYS_INLINE struct busy *stage_busy(struct pe *pe, enum stage_kind stage)
{
    enum { AT_NO, AT_dma = offsetof(struct pe, dma), AT_compute = offsetof(struct pe, compute) };
    static const uint16_t at[STAGES] = {
#define STAGE(name, part, engine, busy) [STAGE_##name] = AT_##busy,
#include "kb/stages.def"
#undef STAGE
    };
    _Static_assert(AT_dma > 0 && AT_dma <= UINT16_MAX, "the offset fits, and is not AT_no");
    _Static_assert(AT_compute > 0 && AT_compute <= UINT16_MAX, "the offset fits, and is not AT_no");
    return at[stage] ? (struct busy *)((char *)pe + at[stage]) : NULL;
}

/* The head of a queue, if it may start; else NULL. A token whose next stage is the same one takes the slot it frees. */
ALWAYS_INLINE struct token *eligible(const struct pe *pe, const struct queue *queue, enum stage_kind stage)
{
    struct token *token = queue->head;
    if (!token || token->stage[1].kind == STAGE_NONE || pe->free_slots[token->stage[1].kind]
        || token->stage[1].kind == stage)
        return token;
    return NULL;
}

/* Which of two heads goes first: the one that came earlier; the one of the later stage; the one of the smaller key. */
static inline struct token *first_of(struct token *a, struct token *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->arrival_ps != b->arrival_ps)
        return a->arrival_ps < b->arrival_ps ? a : b;
    if (a->stage->kind != b->stage->kind)
        return a->stage->kind > b->stage->kind ? a : b;
    return key_before(a, b) ? a : b;
}

/* The first token to serve of one stage; NULL: none may start. Direct queues are mostly empty. */
ALWAYS_INLINE struct token *head_of(const struct pe *pe, enum stage_kind stage)
{
    struct token *token = eligible(pe, &pe->queue[stage], stage);
    if (__builtin_expect(pe->waiting >> (stage + WAITS_DIRECT) & 1, 0))
        token = first_of(token, eligible(pe, &pe->direct[stage], stage));
    return token;
}

/* The service of a token begins, which is out of its queue: that leaves its slot, and takes one of its next stage. */
ALWAYS_INLINE void service_begin(struct pe *pe, struct server *server, struct token *token, enum stage_kind stage)
{
    struct busy *busy = stage_busy(pe, stage);
    enum stage_kind next = token->stage[1].kind;
    if (!queue_of(pe, token, stage)->head)
        pe->waiting &= ~queue_bit(token, stage);
    if (!token->direct)
        pe->free_slots[stage]++;
    if (next != STAGE_NONE)
        pe->free_slots[next]--;
    server->token = token;
    if (SEVERAL_READ_SERVERS)
        server->started = ++pe->services;
    token->server = server;
    token->started_ps = now_ps;
    if (busy)
        busy_begin(busy);
    stats.services++;
    if (__builtin_expect(observed & (MOMENT_BIT(MOMENT_service_starts) | MOMENT_BIT(MOMENT_reserved)), 0)) {
        observe_service_starts(token);
        observed_cause = command_cause(token->command);
    }
}

/* The service of a token ends now. */
ALWAYS_INLINE void service_end(struct pe *pe, struct token *token, enum stage_kind stage)
{
    struct busy *busy = stage_busy(pe, stage);
    token->server->token = NULL;
    if (stage == STAGE_DMA_READ)
        token->server->held = false;
    if (busy)
        busy_end(busy);
    stats_service(engine_of(stage), token->arrival_ps, token->started_ps);
}

/* Takes the first token of a stage's queues out of them and begins its service. */
ALWAYS_INLINE struct token *service_take(struct pe *pe, struct server *server, struct token *token,
                                         enum stage_kind stage)
{
    queue_of(pe, token, stage)->head = token->next;
    service_begin(pe, server, token, stage);
    return token;
}

/* The token that a server of two stages, which may be the same, takes: the earliest arrival, and of equal ones that of the
 * later stage. NULL: none may start. */
ALWAYS_INLINE struct token *first_waiting(const struct pe *pe, enum stage_kind later, enum stage_kind earlier)
{
    struct token *token = head_of(pe, later);
    if (later != earlier)
        token = first_of(token, head_of(pe, earlier));
    return pe->failed ? NULL : token;
}

#endif
