/* steady_state.c: the machine's state, written down and compared, and moved on in time.
 *
 * All that decides what happens next is written: what is left out is open rows (steady_rows.c), and what only counts
 * (steady_counts.c). */
#include "steady_state.h"

#include <stdlib.h>

#include "dma.h"
#include "emitted.h"
#include "kernel.h"
#include "text/diag.h"

/* Where state is written to, or compared with what was written. */
struct print {
    uint64_t *words;
    size_t at, count, room;
    bool compares, differs;
    size_t events;                                      /* that wait for what was printed */
};

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

static void put(struct print *print, uint64_t word)
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

/* How far a time lies behind now. */
static void put_past(struct print *print, uint64_t t_ps)
{
    put(print, now_ps - t_ps);
}

/* When a channel is free again: it is, or it will be. */
static void put_free(struct print *print, uint64_t free_ps)
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
    put(print, message->creator);
    put(print, message_age(message));
    put(print, message->way.direction);
    put(print, transfer->range.memory);
    if (!data_under_way(data)) {
        put_function(print, (void (*)(void))message->delivered);
        return;
    }
    put(print, place_rank(data->at));
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

static void put_busy(struct print *print, const struct busy *busy)
{
    put(print, busy->servers);
    put(print, busy->servers ? now_ps - busy->since_ps : 0);
}

static void put_pe(struct print *print, const struct pe *pe)
{
    if (!pe_is_fit(pe))
        print->differs = true;
    put(print, pe->feeding ? (uint64_t)pe->kernel->serial << 32 | pe->feeding->number : 0);
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

/* ---- what PEs share, and every TCM, for others may use it */

static void put_shared(struct print *print)
{
    for (uint32_t i = 0; i < node_count() && !print->differs; i++)
        put_free(print, kb_node_free_ps[i]);
    for (uint64_t i = 0; i < link_count() && !print->differs; i++)
        put_free(print, kb_link_free_ps[i]);
    for (uint64_t i = 0; i < pe_count() * kb_attrs.hbm_ctrl_pcs && !print->differs; i++)
        put_free(print, kb_pseudo_channels[i].free_ps);
    for (uint32_t i = 0; i < kb_shape.sips * kb_shape.cubes; i++) {
        put_free(print, kb_sram[i].read_free_ps);
        put_free(print, kb_sram[i].write_free_ps);
    }
    for (uint32_t i = 0; i < pe_count() && !print->differs; i++) {
        put_free(print, kb_pe[i].tcm_read_free_ps);
        put_free(print, kb_pe[i].tcm_write_free_ps);
    }
}

static void put_machine(struct print *print, struct pe *const *pes, uint32_t count)
{
    uint64_t kernel_ps;
    for (uint32_t i = 0; i < count && !print->differs; i++)
        put_pe(print, pes[i]);
    if (!print->differs && print->events != event_waiting(&kernel_ps))
        print->differs = true;
    put_shared(print);
}

bool state_take(struct state *state, struct pe *const *pes, uint32_t count)
{
    struct print print = {.words = state->words, .room = state->room};
    put_machine(&print, pes, count);
    *state = (struct state){print.words, print.at, print.room};
    return !print.differs;
}

bool state_is(const struct state *state, struct pe *const *pes, uint32_t count)
{
    struct print print = {.words = state->words, .count = state->count, .compares = true};
    put_machine(&print, pes, count);
    return !print.differs && print.at == print.count;
}

/* ---- all tokens of a PE, but those of simple commands */

/* Calls act(token, arg) for each. */
static void each_token(const struct pe *pe, void (*act)(struct token *, void *), void *arg)
{
    for (unsigned stage = 0; stage < STAGES; stage++)
        for (struct token *token = pe->queue[stage].head; token; token = token->next)
            act(token, arg);
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        if (pe->servers[i].token)
            act(pe->servers[i].token, arg);
    for (struct token *token = pe->travelling; token; token = token->next)
        act(token, arg);
    if (pe->feed)
        act(pe->feed, arg);
    if (pe->next_feed)
        act(pe->next_feed, arg);
}

static void take_older(struct token *token, void *oldest)
{
    if (token->tile.id < *(uint64_t *)oldest)
        *(uint64_t *)oldest = token->tile.id;
}

uint64_t state_oldest_tile(const struct pe *pe)
{
    uint64_t oldest = pe->fed;
    each_token(pe, take_older, &oldest);
    return oldest;
}

/* ---- on in time */

struct move {
    uint64_t tiles, ps;
};

static void move_token(struct token *token, void *arg)
{
    const struct move *move = arg;
    token->tile = plan_tile(token->command, token->tile.id + move->tiles);
    token->event.key += move->tiles;
    token->arrival_ps += move->ps;
    token->started_ps += move->ps;
    if (token->transfer)
        transfer_move(token->transfer);
}

/* What is free stays so. */
static void move_free(uint64_t *free_ps, uint64_t d_ps)
{
    if (*free_ps > now_ps)
        *free_ps += d_ps;
}

static void move_shared(uint64_t d_ps)
{
    for (uint32_t i = 0; i < node_count(); i++)
        move_free(&kb_node_free_ps[i], d_ps);
    for (uint64_t i = 0; i < link_count(); i++)
        move_free(&kb_link_free_ps[i], d_ps);
    for (uint64_t i = 0; i < pe_count() * kb_attrs.hbm_ctrl_pcs; i++)
        move_free(&kb_pseudo_channels[i].free_ps, d_ps);
    for (uint32_t i = 0; i < kb_shape.sips * kb_shape.cubes; i++) {
        move_free(&kb_sram[i].read_free_ps, d_ps);
        move_free(&kb_sram[i].write_free_ps, d_ps);
    }
    for (uint32_t i = 0; i < pe_count(); i++) {
        move_free(&kb_pe[i].tcm_read_free_ps, d_ps);
        move_free(&kb_pe[i].tcm_write_free_ps, d_ps);
    }
}

void state_move(struct pe *const *pes, const uint64_t *tiles, uint32_t count, uint64_t d_ps)
{
    for (uint32_t i = 0; i < count; i++) {
        struct move move = {tiles[i], d_ps};
        each_token(pes[i], move_token, &move);
        pes[i]->fed += tiles[i];
        pes[i]->feeding->tiles_left -= tiles[i];
        pes[i]->dma.since_ps += d_ps;
        pes[i]->compute.since_ps += d_ps;
    }
    move_shared(d_ps);
    event_skip(d_ps);
}
