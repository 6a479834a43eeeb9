/* token.h: what moves tokens: between the files that a tile passes through. */
#ifndef KB_TOKEN_H
#define KB_TOKEN_H

#include "pe.h"

/* A token for a tile of a command, at its first stage. */
struct token *token_new(struct command *command, const struct tile *tile);

/* For the only tile of a simple command. */
struct token *token_simple(struct command *command);
void token_free(struct token *token);

/* There are none any more, not even free ones. */
void tokens_reset(void);

/* The same for what DMAs have under way (dma.c). */
void transfers_reset(void);

/* Its next event is the end of a service, or of a way, at a part of its PE. */
void token_at(struct token *token, enum node_kind part, uint64_t t_ps, void (*fire)(struct event *));

/* To the queue of its stage, over a link; of 0 ps it is no event. */
void token_travel(struct token *token, uint64_t link_ps);

/* Into the queue of its stage. */
void token_enqueue(struct token *token);

/* Puts a tile's buffers between those that lie below and above; NULL: there are none. */
void buffers_link(struct pe *pe, struct token *token, struct token *below, struct token *above);

/* Gives back the buffers of a tile. */
void buffers_release(struct token *token);

#endif
