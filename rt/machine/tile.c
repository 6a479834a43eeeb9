/* tile.c: the life of a tile, in order.
 *
 *     serve_command, scheduled    the scheduler takes a command: a simple one travels, a composite is fed (scheduler.c)
 *     serve_tile, feed_end        the feeder gives a tile buffers and a slot of its first queue; in place if that
 *                                 takes no time and nothing else is due                         (scheduler.c)
 *     token_travel                over the link between two engines
 *     token_enqueue               into the queue of its stage                                   (service.h)
 *     server_visit, service_take  a server takes the earliest eligible head of its queues (emitted; service.h)
 *     start                       reads in the plan, or asks the model, how long that takes (emitted; dma.c, ipcq.c)
 *     end_service, stage_ended    frees the server; the tile travels on, or
 *     tile_complete               gives back its buffers, and reports to the scheduler
 *     scheduler_tile_ended        the last tile completes its command                           (scheduler.c)
 *
 * A token that starts a service frees its slot and takes one of its next stage, in one step. So an engine never holds a
 * token that is finished, and a stage waits for later stages only. */
#include "tile.h"

#include <assert.h>
#include <inttypes.h>

#include "base/rates.h"
#include "common/array.h"
#include "common/fail.h"
#include "common/pool.h"
#include "deferred.h"
#include "dma.h"
#include "emitted.h"
#include "engine.h"
#include "ipcq.h"
#include "kb/impl.h"
#include "scheduler.h"
#include "service.h"
#include "stats.h"
#include "tile_buffers.h"

/* ---- tokens and queues */

struct pool tokens;

struct token *token_simple(struct command *command)
{
    struct tile tile = tiling_tile(command, 0);
    return token_new(command, &tile);
}

void token_free(struct token *token)
{
    pool_give_back(&tokens, token);
}

/* Whether an observer watches what happens between two services of a tile. What follows is compiled twice, with and
 * without telling it: without, a stage ends with no call that registers would have to be saved for. */
static inline bool tiles_observed(void)
{
    return __builtin_expect(observed & (MOMENT_BIT(MOMENT_service_ends) | MOMENT_BIT(MOMENT_tile_queued)), 0);
}

/* Only tokens that came in this instant can have larger keys. */
void queue_insert(struct queue *queue, struct token *token)
{
    struct token **link = &queue->head;
    while ((*link)->arrival_ps < now_ps || key_before(*link, token))
        link = &(*link)->next;
    token->next = *link;
    *link = token;
}

static void token_arrived(struct event *event)
{
    struct token *token = container_of(event, struct token, event);
    struct pe *pe = token->command->pe;
    struct token **link = &pe->travelling;
    while (*link != token)
        link = &(*link)->next;
    *link = token->next;
    deferred_end(pe);
    token_enqueue(pe, token, true);
}

static __attribute__((noinline)) void token_leave(struct pe *pe, struct token *token, uint64_t link_ps)
{
    token->next = pe->travelling;
    pe->travelling = token;
    pe_wake(pe);
    token_at(token, time_after(now_ps, link_ps), token_arrived);
}

/* In both cases the PE is woken: the part that the token leaves is free. */
ALWAYS_INLINE void travel(struct pe *pe, struct token *token, uint64_t link_ps, bool watched)
{
    if (link_ps)
        token_leave(pe, token, link_ps);
    else
        token_enqueue(pe, token, watched);
}

static __attribute__((cold, noinline)) void token_travel_watched(struct token *token, uint64_t link_ps)
{
    travel(token->command->pe, token, link_ps, true);
}

void token_travel(struct token *token, uint64_t link_ps)
{
    if (tiles_observed())
        token_travel_watched(token, link_ps);
    else
        travel(token->command->pe, token, link_ps, false);
}

void token_read_slot(struct command *receive)
{
    receive->shapes->stages->amount = receive->ask.bytes;   /* that of the message: only now is it known */
    engine_times(receive);
    struct token *token = token_simple(receive);
    token->dispatched = true;                           /* it was when it came to pe_ipcq */
    token_enqueue(receive->pe, token, true);
}

/* ---- servers */

static bool begin(struct pe *pe, struct server *server, struct token *token)
{
    service_begin(pe, server, token, token->stage->kind);
    service_start(token);
    return true;
}

bool serve_send(struct pe *pe, struct server *server)
{
    struct queue *queue = &pe->direct[STAGE_COMM];
    struct token *before, *token = pe->failed ? NULL : ipcq_next(queue, &before);
    if (!token)
        return false;
    *(before ? &before->next : &queue->head) = token->next;
    if (queue->tail == token)
        queue->tail = before;
    return begin(pe, server, token);
}

/* ---- the same by the model of a user of pe_dma */

unsigned token_channel(const struct token *token)
{
    enum stage_kind stage = token->stage->kind;
    return stage == STAGE_COMM ? KB_SEND : stage == STAGE_DMA_READ ? KB_DMA_READ : KB_DMA_WRITE;
}

uint64_t token_bytes(const struct token *token)
{
    return token->stage->amount;
}

/* Whether a token before this one in its queue has to go before it: of the same command, or a message on the same ring. */
static bool must_wait(const struct token *first, const struct token *token)
{
    for (; first != token; first = first->next)
        if (first->command == token->command
            || (token->stage->kind == STAGE_COMM && ipcq_share(first->command, token->command)))
            return true;
    return false;
}

static struct ARRAY(struct kb_waiting_transfer) choices;
static struct ARRAY(struct token **) links;             /* to these tokens, in their queues */

static void choices_add(const struct pe *pe, struct queue *queue)
{
    for (struct token **link = &queue->head; *link; link = &(*link)->next) {
        struct token *token = *link;
        enum stage_kind stage = token->stage->kind, next = token->stage[1].kind;
        bool slot = stage == STAGE_COMM ? ipcq_has_credits(token->command)
                                       : next == STAGE_NONE || next == stage || pe->free_slots[next];
        *array_add(&links) = link;
        *array_add(&choices) = (struct kb_waiting_transfer){
            token->command->number, token->tile.id, token_bytes(token), !token->direct, link == &queue->head,
            slot && !must_wait(queue->head, token), token->arrival_ps};
    }
}

static void queue_remove(struct queue *queue, struct token **link)
{
    struct token *token = *link;
    *link = token->next;
    if (!token->next)
        queue->tail = link == &queue->head ? NULL : container_of(link, struct token, next);
}

uint32_t own_choice(const char *model, const struct kb_dma_queue *ask, uint32_t choice)
{
    bool there = choice < ask->count;
    if (choice != KB_NONE && !(there && ask->waiting[choice].ready))
        run_failed("%s of %s: it chooses number %" PRIu32 " of %" PRIu32 " that wait for %s at %" PRIu64 " ps, which %s",
                   model, kb_machine_name, choice, ask->count, pe_name(&kb_pe[ask->pe]), ask->at_ps,
                   there ? "is not ready" : "does not exist");
    return choice;
}

bool serve_chosen(struct pe *pe, struct server *server, enum stage_kind stage)
{
    if (pe->failed)
        return false;
    choices.count = links.count = 0;
    choices_add(pe, &pe->queue[stage]);
    choices_add(pe, &pe->direct[stage]);
    struct kb_dma_queue ask = {pe_number(pe), token_channel(*links.at[0]), now_ps, choices.count, choices.at};
    uint32_t choice = pe_dma_choose(&ask);
    if (choice == KB_NONE)
        return false;
    struct token *token = *links.at[choice];
    queue_remove(queue_of(pe, token, token->stage->kind), links.at[choice]);
    return begin(pe, server, token);
}

/* ---- the end of a service, and of a tile */

__attribute__((noinline)) void tile_complete(struct pe *pe, struct token *token)
{
    struct command *command = token->command;
    bool direct = token->direct;
    pe_wake(pe);
    tile_buffers_release(token);
    token_free(token);
    if (direct && command->ask.kind == COMMAND_recv)
        ipcq_slot_read(command);
    scheduler_tile_ended(command);
}

void tile_complete_early(struct token *token)
{
    struct command *command = token->command;
    assert(command->tiles_left > 1);
    command->tiles_left--;
    tile_buffers_release(token);
    token_free(token);
}

ALWAYS_INLINE void stage_ended_made(struct pe *pe, struct token *token, enum stage_kind kind, bool watched)
{
    const struct stage *stage = token->stage;
    service_end(pe, token, kind);
    if (watched)
        observe_service_ends(token);
    token->stage++;
    if (token->stage->kind == STAGE_NONE)
        tile_complete(pe, token);
    else
        travel(pe, token, stage->link_ps, watched);
}

static __attribute__((cold, noinline)) void stage_ended_watched(struct pe *pe, struct token *token)
{
    stage_ended_made(pe, token, token->stage->kind, true);
}

/* Earlier ends come first, which have been deferred. */
static __attribute__((noinline)) void stage_ended_late(struct pe *pe, struct token *token)
{
    deferred_end(pe);
    stage_ended_made(pe, token, token->stage->kind, false);
}

ALWAYS_INLINE void stage_ended(struct pe *pe, struct token *token, enum stage_kind kind)
{
    bool may_defer = kind == STAGE_FETCH || kind == STAGE_GEMM || kind == STAGE_MATH;
    if (tiles_observed())
        stage_ended_watched(pe, token);
    else if (may_defer && pe->deferred)
        stage_ended_late(pe, token);
    else
        stage_ended_made(pe, token, kind, false);
}

/* Whether a read of a composite is done before one that started earlier: it is held until that one ends. */
static bool read_waits(const struct pe *pe, const struct server *server)
{
    for (const struct server *other = pe->servers; other < pe->servers + kb_pe_servers; other++)
        if (other->token && other->token->stage->kind == STAGE_DMA_READ && other->started < server->started
            && other->token->command == server->token->command)
            return true;
    return false;
}

/* A held read of a composite that has nothing to wait for any more; NULL: there is none. */
static struct server *releasable(struct pe *pe, const struct command *command)
{
    for (struct server *server = pe->servers; server < pe->servers + kb_pe_servers; server++)
        if (server->held && server->token->command == command && !read_waits(pe, server))
            return server;
    return NULL;
}

/* Reads of a composite that several servers serve end in the order of their starts. */
static __attribute__((noinline)) void read_ended(struct pe *pe, struct token *token)
{
    struct command *command = token->command;
    token->server->held = read_waits(pe, token->server);
    if (token->server->held)
        return;
    stage_ended(pe, token, STAGE_DMA_READ);
    for (struct server *held; (held = releasable(pe, command));)
        stage_ended(pe, held->token, STAGE_DMA_READ);
}

ALWAYS_INLINE void end_service(struct token *token, enum stage_kind kind)
{
    struct pe *pe = token->command->pe;
    if (kind == STAGE_DMA_READ && token->transfer)
        read_end(token);
    if (kind == STAGE_DMA_READ && kb_attrs.pe_dma_rd_engines > 1)
        read_ended(pe, token);
    else
        stage_ended(pe, token, kind);
}

/* A function for each stage, because its engine and what it keeps busy are constants there. */
#define STAGE(name, part, engine, busy)                                                                                \
    static void name##_ends(struct event *event)                                                                       \
    {                                                                                                                  \
        end_service(container_of(event, struct token, event), STAGE_##name);                                           \
    }
#include "kb/stages.def"
#undef STAGE

void (*const service_end_events[STAGES])(struct event *event) = {
#define STAGE(name, part, engine, busy) [STAGE_##name] = name##_ends,
#include "kb/stages.def"
#undef STAGE
};

void tokens_reset(void)
{
    pool_release(&tokens);
}

const struct handler tile_handlers[] = {
    HANDLER(token_arrived, "tile at its next engine"),
    {0}};
