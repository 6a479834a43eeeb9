/* state.c: the machine's state, written down and compared, and moved on in time. */
#include "state.h"

#include <stdlib.h>

#include "machine/dma.h"
#include "machine/emitted.h"
#include "fingerprint.h"

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
        *free_ps = time_after(*free_ps, d_ps);
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
