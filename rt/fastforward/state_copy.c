/* state_copy.c: the state of a PE as that of another one, in the names of its own. */
#include "state_copy.h"

#include <string.h>

#include "machine/dma.h"
#include "machine/emitted.h"
#include "common/arena.h"
#include "machine/token.h"

/* A copy under way: which token is which one's. */
struct copying {
    const struct copies *copies;
    struct pe *to;
    const struct pe *from;
    struct command *composite;                          /* of `to`; NULL: it is complete */
};

uint32_t copies_node(uint32_t rank, const void *arg)
{
    const struct copies *copies = arg;
    return copies->groups->node[(size_t)copies->to * copies->groups->nodes + groups_labels()[rank]];
}

/* ---- away */

static void token_drop(struct token *token, void *arg)
{
    (void)arg;
    if (token->transfer)
        transfer_free(token->transfer);
    token_free(token);
}

void copy_clear(struct pe *pe)
{
    each_token(pe, token_drop, NULL);
}

/* ---- tokens */

/* Its next event, at the same time. */
static void event_copied(const struct copying *c, struct token *to, const struct token *from)
{
    uint32_t rank = copies_node(event_rank(&from->event), c->copies);
    event_set(&to->event, event_order(rank, CLASS_SERVICE, to->command->number), from->event.key, from->event.fire);
    event_at(&to->event, from->event.t_ps);
}

static void transfer_copied(const struct copying *c, struct token *to, const struct transfer *from)
{
    struct transfer *transfer = transfer_new(to, &from->range);
    transfer_move(transfer);
    data_counterpart(&transfer->data, &from->data, copies_node, c->copies);
}

static struct token *token_copied(const struct copying *c, const struct token *from)
{
    struct token *to = token_new(c->composite, &from->tile);
    to->stage = from->stage;
    to->following = from->following;
    to->arrival_ps = from->arrival_ps;
    to->started_ps = from->started_ps;
    to->parts = from->parts;
    to->end_ps = from->end_ps;
    to->dispatched = from->dispatched;
    to->block = from->block;
    to->block_bytes = from->block_bytes;
    return to;
}

static void queue_copied(const struct copying *c, struct queue *to, const struct queue *from)
{
    *to = (struct queue){0};
    for (const struct token *token = from->head; token; token = token->next) {
        struct token *copy = token_copied(c, token);
        *(to->head ? &to->tail->next : &to->head) = copy;
        to->tail = copy;
        copy->next = NULL;
    }
}

static void server_copied(const struct copying *c, struct server *to, const struct server *from)
{
    const struct token *token = from->token;
    *to = (struct server){.started = c->to->services - (c->from->services - from->started), .held = from->held};
    if (!token)
        return;
    to->token = token_copied(c, token);
    to->token->server = to;
    if (token->transfer)
        transfer_copied(c, to->token, token->transfer);
    else if (!from->held)
        event_copied(c, to->token, token);
}

/* A token between two engines, or on its way from the feeder. */
static struct token *moving_copied(const struct copying *c, const struct token *from)
{
    struct token *to = token_copied(c, from);
    event_copied(c, to, from);
    return to;
}

static void travelling_copied(const struct copying *c)
{
    struct token **link = &c->to->travelling;
    for (const struct token *token = c->from->travelling; token; token = token->next) {
        *link = moving_copied(c, token);
        link = &(*link)->next;
    }
    *link = NULL;
}

/* ---- buffers: tokens by address */

static void place_buffers(struct token *token, void *arg)
{
    struct pe *pe = arg;
    struct token *below = NULL, *above = pe->lowest;
    if (!token->block_bytes)
        return;
    for (; above && above->block < token->block; below = above, above = above->higher)
        ;
    buffers_link(pe, token, below, above);
}

/* ---- */

void copy_pe(const struct copies *copies, struct pe *to, const struct pe *from, const struct command *composite)
{
    const struct copying c = {copies, to, from, to->feeding};
    for (unsigned stage = 0; stage < STAGES; stage++) {
        queue_copied(&c, &to->queue[stage], &from->queue[stage]);
        to->free_slots[stage] = from->free_slots[stage];
    }
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        server_copied(&c, &to->servers[i], &from->servers[i]);
    travelling_copied(&c);
    to->feed = from->feed ? moving_copied(&c, from->feed) : NULL;
    to->next_feed = from->next_feed ? token_copied(&c, from->next_feed) : NULL;
    if (composite)
        c.composite->tiles_left = composite->tiles_left;
    to->feeding = from->feeding ? c.composite : NULL;
    to->fed = from->fed;
    to->last_tile = from->last_tile;
    to->waiting = from->waiting;
    to->lacks_room = from->lacks_room;
    to->tcm_read_free_ps = from->tcm_read_free_ps;
    to->tcm_write_free_ps = from->tcm_write_free_ps;
    to->lowest = NULL;
    each_token(to, place_buffers, to);
}
