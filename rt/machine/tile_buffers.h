/* tile_buffers.h: the buffers of tiles, in the region of the TCM that the scheduler reserves. */
#ifndef KB_TILE_BUFFERS_H
#define KB_TILE_BUFFERS_H

#include "pe.h"

/* Gives a tile the buffers of its shape, each at the lowest address where it fits, one after the other. Returns false, and
 * gives none, if one fits nowhere. */
bool tile_buffers_take(struct pe *pe, struct token *token);

/* Whether the buffers of a shape would fit, if `without` had given back its own; NULL: as things are. */
bool tile_buffers_fit(const struct pe *pe, const struct tile_shape *shape, const struct token *without);

/* Gives the buffers of a tile back, if it has any. */
void tile_buffers_release(struct token *token);

/* How many bytes they are. */
uint64_t tile_buffers_bytes(const struct token *token);

/* How many buffers a tile has: those of its shape, or none. */
static inline unsigned tile_buffers_count(const struct token *token)
{
    const uint64_t *bytes = token->tile.shape->buffer;
    unsigned count = 0;
    while (token->buffer[0].bytes && count < OPERANDS && bytes[count])
        count++;
    return count;
}

#define tile_buffers_for(buffer, token) \
    for (buffer = (token)->buffer; buffer < (token)->buffer + tile_buffers_count(token); buffer++)

/* Links a buffer into the PE's list by address, where its own address puts it. */
void tile_buffer_link(struct pe *pe, struct buffer *buffer);

#endif
