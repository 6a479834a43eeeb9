/* tile_buffers.h: the buffers of tiles, in the region of the TCM that the scheduler reserves. */
#ifndef KB_TILE_BUFFERS_H
#define KB_TILE_BUFFERS_H

#include "pe.h"

/* Gives a tile a block of buffers at the lowest address where it fits. Returns false if it fits nowhere. */
bool tile_buffers_take(struct pe *pe, struct token *token, uint64_t bytes);

/* Whether a block would fit somewhere, if `without` had given back its own; NULL: as things are. */
bool tile_buffers_fit(const struct pe *pe, uint64_t bytes, const struct token *without);

/* Gives the buffers of a tile back, if it has any. */
void tile_buffers_release(struct token *token);

/* Links a tile that has buffers into the PE's list by address, between two neighbours; NULL: there is none. */
void tile_buffers_link(struct pe *pe, struct token *token, struct token *below, struct token *above);

#endif
