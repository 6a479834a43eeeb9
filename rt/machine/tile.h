/* tile.h: the life of a tile, as tile.c has it in order: queue, service, next queue, completion. */
#ifndef KB_TILE_H
#define KB_TILE_H

#include "common/pool.h"
#include "pe.h"

extern struct pool tokens;                              /* all of them */

/* A token for a tile of a command, at its first stage. */
static inline struct token *token_new(struct command *command, const struct tile *tile)
{
    struct token *token = pool_reuse(&tokens, sizeof *token);
    token->event.key = tile->id + 1;
    token->command = command;
    token->tile = *tile;
    token->stage = tile->shape->stages;
    token->buffer[0].bytes = 0;
    token->transfer = NULL;
    token->direct = !command_is_composite(command->ask.kind);
    token->dispatched = false;
    return token;
}

/* A token for the only tile of a simple command. */
struct token *token_simple(struct command *command);

void token_free(struct token *token);

/* Makes the token's event due at t_ps, at the part that serves its stage. */
static inline void token_at(struct token *token, uint64_t t_ps, void (*fire)(struct event *))
{
    token->event.order = token->stage->order;
    token->event.fire = fire;
    event_at(&token->event, t_ps);
}

/* Sends the token over a PE-internal link to the queue of its stage; at once if the link takes 0 ps. */
void token_travel(struct token *token, uint64_t link_ps);

/* Puts a receive, whose slot is full, into the queue of direct reads. */
void token_read_slot(struct command *receive);

/* ---- services */

/* The events of the ends of services, one for each stage. */
extern void (*const service_end_events[STAGES])(struct event *event);

/* Makes the service of a token's stage end at t_ps, by an event. */
static inline void service_until(struct token *token, enum stage_kind stage, uint64_t t_ps)
{
    token_at(token, t_ps, service_end_events[stage]);
}

/* Ends a service now, in place. */
static inline void service_ended(struct token *token)
{
    service_end_events[token->stage->kind](&token->event);
}

/* The last service of a tile has ended. */
void tile_complete(struct pe *pe, struct token *token);

/* The same of a tile that is not the last of its composite to be complete. The Issue step visits the PE. */
void tile_complete_early(struct token *token);

/* ---- parts of a PE's Issue step: each starts at most one service, and returns whether it did (the others: service.h) */

/* The server of sends takes the first whose ring has a free slot. */
bool serve_send(struct pe *pe, struct server *server);

/* The server takes the token that the model of a user of pe_dma chooses. */
bool serve_chosen(struct pe *pe, struct server *server, enum stage_kind stage);

/* Ends the run with a message if a model chooses what does not wait or is not ready; else returns the choice. */
struct kb_dma_queue;
uint32_t own_choice(const char *model, const struct kb_dma_queue *ask, uint32_t choice);

/* The channel of pe_dma that serves a token's stage, an enum kb_channel, and how many bytes it moves. */
unsigned token_channel(const struct token *token);
uint64_t token_bytes(const struct token *token);

/* Forgets all tokens. */
void tokens_reset(void);

extern const struct handler tile_handlers[];

#endif
