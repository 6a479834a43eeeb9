/* fingerprint.c: what of a PE decides what happens next. */
#include "fingerprint.h"

#include <stdlib.h>

#include "base/address.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "launch/kernel.h"
#include "common/arena.h"
#include "common/diag.h"

static void put_new(struct print *print, uint64_t word)
{
    if (print->at == print->room) {
        print->room = print->room ? 2 * print->room : 4096;
        print->words = realloc(print->words, print->room * sizeof *print->words);
        if (!print->words)
            die("no memory for the state of the machine");
    }
    print->words[print->at++] = word;
}

void put(struct print *print, uint64_t word)
{
    if (!print->compares)
        put_new(print, word);
    else if (print->at == print->count || print->words[print->at++] != word)
        print->differs = true;
}

static void put_function(struct print *print, void (*function)(void))
{
    put(print, (uintptr_t)function);
}

/* Which node it is. */
static void put_rank(struct print *print, uint32_t rank)
{
    put(print, print->labels ? print->labels[rank] : rank);
}

/* How far a time lies behind now. */
static void put_past(struct print *print, uint64_t t_ps)
{
    put(print, now_ps - t_ps);
}

void put_free(struct print *print, uint64_t free_ps)
{
    put(print, free_ps > now_ps ? free_ps - now_ps : 0);
}

static void put_event(struct print *print, const struct event *event)
{
    put(print, event->t_ps - now_ps);
    put_function(print, (void (*)(void))event->fire);
    print->events++;
}

/* ---- tokens */

static void put_transfer(struct print *print, const struct transfer *transfer)
{
    const struct data_message *data = &transfer->data;
    const struct message *message = &data->message;
    put_event(print, &message->event);
    put_rank(print, message->creator);
    put(print, message_age(message));
    put(print, message->way.direction);
    put_rank(print, place_rank(range_place(&transfer->range)));
    if (!data_under_way(data)) {
        put_function(print, (void (*)(void))message->delivered);
        return;
    }
    put_rank(print, data->rank);
    put(print, data->stream_ps);
    put(print, data->drain_ps);
    put_function(print, (void (*)(void))data->arrived);
}

/* Sizes follow from the tile and the stage. */
static void put_token(struct print *print, const struct pe *pe, const struct token *token)
{
    if (token->command != pe->feeding)
        print->differs = true;
    put(print, pe->fed - token->tile.id);
    put(print, token->stage.index);
    put(print, token->block_bytes ? token->block : UINT64_MAX);
}

/* Between two engines, or from the feeder. */
static void put_moving(struct print *print, const struct pe *pe, const struct token *token)
{
    put_token(print, pe, token);
    put_event(print, &token->event);
}

static void put_queue(struct print *print, const struct pe *pe, const struct queue *queue)
{
    for (const struct token *token = queue->head; token; token = token->next) {
        put_token(print, pe, token);
        put_past(print, token->arrival_ps);
    }
    put(print, UINT64_MAX);
}

static void put_server(struct print *print, const struct pe *pe, const struct server *server)
{
    const struct token *token = server->token;
    put(print, token != NULL);
    if (!token)
        return;
    put_token(print, pe, token);
    put_past(print, token->started_ps);
    put(print, pe->services - server->started);
    put(print, server->held);
    if (token->transfer)
        put_transfer(print, token->transfer);
    else if (!server->held)
        put_event(print, &token->event);
}

/* ---- PEs */

/* Whether nothing but tiles of one composite, at physical addresses, is under way on a PE. */
static bool pe_is_fit(const struct pe *pe)
{
    bool fit = pe->feeding && !pe->failed && !pe->submitted && !pe->scheduling;
    for (unsigned operand = 0; fit && operand < OPERANDS; operand++)
        fit = !pe->feeding->ask.virtual_address[operand];
    for (unsigned stage = 0; fit && stage < STAGES; stage++)
        fit = !pe->direct[stage].head;
    return fit;
}

/* What is asked of a PE's feeder, apart from who asks, and where it stands; it is the only composite there. */
static void put_asked(struct print *print, const struct pe *pe)
{
    const struct command *command = pe->feeding;
    const struct request *ask = &command->ask;
    const uint64_t words[] = {pe->fed, command->tiles_left, ask->kind, ask->dtype, ask->out_dtype, ask->pinned[0],
                              ask->pinned[1], ask->op, ask->m, ask->k, ask->n, ask->tile_m, ask->tile_k, ask->tile_n,
                              ask->epilogues};
    if (command->waiting)
        print->differs = true;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        put(print, words[i]);
    for (unsigned operand = 0; operand < OPERANDS; operand++)
        put(print, ask->address[operand] & OFFSET_MASK);
    for (uint32_t i = 0; i < ask->epilogues; i++) {
        put(print, ask->epilogue[i].op);
        put(print, ask->epilogue[i].scope);
    }
}

static void put_composite(struct print *print, const struct pe *pe)
{
    if (print->labels)
        put_asked(print, pe);
    else
        put(print, (uint64_t)pe->kernel->serial << 32 | pe->feeding->number);
}

static void put_busy(struct print *print, const struct busy *busy)
{
    put(print, busy->servers);
    put(print, busy->servers ? now_ps - busy->since_ps : 0);
}

void put_pe(struct print *print, const struct pe *pe)
{
    if (!pe_is_fit(pe)) {
        print->differs = true;
        return;
    }
    put_composite(print, pe);
    for (unsigned stage = 0; stage < STAGES; stage++) {
        put(print, pe->free_slots[stage]);
        put_queue(print, pe, &pe->queue[stage]);
    }
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        put_server(print, pe, &pe->servers[i]);
    for (const struct token *token = pe->travelling; token; token = token->next)
        put_moving(print, pe, token);
    put(print, pe->feed != NULL);
    if (pe->feed)
        put_moving(print, pe, pe->feed);
    put(print, pe->next_feed != NULL);
    put(print, pe->lacks_room);
    put_busy(print, &pe->dma);
    put_busy(print, &pe->compute);
}

/* ---- all tokens of a PE, but those of simple commands */

/* One that acts may give the token away. */
static void each_of_list(struct token *token, void (*act)(struct token *, void *), void *arg)
{
    for (struct token *next; token; token = next) {
        next = token->next;
        act(token, arg);
    }
}

void each_token(const struct pe *pe, void (*act)(struct token *, void *), void *arg)
{
    for (unsigned stage = 0; stage < STAGES; stage++)
        each_of_list(pe->queue[stage].head, act, arg);
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        if (pe->servers[i].token)
            act(pe->servers[i].token, arg);
    each_of_list(pe->travelling, act, arg);
    if (pe->feed)
        act(pe->feed, arg);
    if (pe->next_feed)
        act(pe->next_feed, arg);
}
