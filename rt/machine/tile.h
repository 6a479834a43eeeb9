/* tile.h: the life of a tile, as tile.c has it in order: queue, service, next queue, completion. */
#ifndef KB_TILE_H
#define KB_TILE_H

#include "pe.h"

/* A token for a tile of a command, at its first stage. */
struct token *token_new(struct command *command, const struct tile *tile);

/* A token for the only tile of a simple command. */
struct token *token_simple(struct command *command);

void token_free(struct token *token);

/* Sets the token's event, at a part of its PE; makes it due at t_ps. */
void token_set(struct token *token, enum node_kind part, void (*fire)(struct event *));
void token_at(struct token *token, enum node_kind part, uint64_t t_ps, void (*fire)(struct event *));

/* Sends the token over a PE-internal link to the queue of its stage; at once if the link takes 0 ps. */
void token_travel(struct token *token, uint64_t link_ps);

/* Puts a receive, whose slot is full, into the queue of direct reads. */
void token_read_slot(struct command *receive);

/* ---- services */

/* Makes a service end at t_ps, by an event. */
void service_until(struct token *token, uint64_t t_ps);

/* Ends a service now, in place. */
void service_ended(struct token *token);

/* The event of the end of a service. */
void service_event(struct event *event);

/* ---- the parts of a PE's Issue step. Each call starts at most one service, and returns whether it did. Inline tests
 * find out first whether there is anything to do: mostly there is not. */

/* Starts the first eligible token of two stages, which may be the same. */
bool serve_waiting(struct pe *pe, struct server *server, enum stage_kind later, enum stage_kind earlier);

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

/* A server of two stages, which may be the same, takes the earliest arrival, and of equal ones that of the later
 * stage. */
static inline bool serve(struct pe *pe, struct server *server, enum stage_kind later, enum stage_kind earlier)
{
    if (!(pe->waiting & (waiting_bits(later) | waiting_bits(earlier))) || server->token)
        return false;
    return later == STAGE_COMM ? serve_send(pe, server) : serve_waiting(pe, server, later, earlier);
}

/* The same if pe_dma has a model of a user. */
static inline bool serve_modelled(struct pe *pe, struct server *server, enum stage_kind later, enum stage_kind earlier)
{
    if (stage_node(later) != NODE_pe_dma)
        return serve(pe, server, later, earlier);
    return (pe->waiting & waiting_bits(later)) && !server->token && serve_chosen(pe, server, later);
}

/* Forgets all tokens. */
void tokens_reset(void);

extern const struct handler tile_handlers[];

#endif
