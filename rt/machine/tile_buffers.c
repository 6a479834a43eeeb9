/* tile_buffers.c: a first-fit allocator of the reserved region. Buffers are linked by address. */
#include "tile_buffers.h"

#include "base/rates.h"
#include "base/tables.h"

static inline void link_at(struct buffer **link, struct buffer *buffer)
{
    buffer->higher = *link;
    buffer->link = link;
    *link = buffer;
    if (buffer->higher)
        buffer->higher->link = &buffer->higher;
}

void tile_buffer_link(struct pe *pe, struct buffer *buffer)
{
    struct buffer **link = &pe->lowest;
    while (*link && (*link)->at < buffer->at)
        link = &(*link)->higher;
    link_at(link, buffer);
}

/* Whether bytes that begin at `at` are within the region. */
static bool lies_inside(uint64_t at, uint64_t bytes)
{
    return bytes <= kb_attrs.pe_tcm_reserved_bytes && at <= kb_attrs.pe_tcm_reserved_bytes - bytes;
}

static inline bool buffer_take(struct pe *pe, struct buffer *buffer, uint64_t bytes)
{
    struct buffer **link = &pe->lowest;
    uint64_t at = 0;
    for (struct buffer *above = *link; above && above->at - at < bytes; link = &above->higher, above = *link)
        at = above->at + above->bytes;
    if (!lies_inside(at, bytes))
        return false;
    buffer->at = at;
    buffer->bytes = bytes;
    link_at(link, buffer);
    return true;
}

static inline void buffer_release(struct buffer *buffer)
{
    *buffer->link = buffer->higher;
    if (buffer->higher)
        buffer->higher->link = buffer->link;
}

/* ---- more than one */

static __attribute__((noinline)) bool take_all(struct pe *pe, struct token *token)
{
    const uint64_t *bytes = token->tile.shape->buffer;
    for (unsigned i = 0; i < OPERANDS && bytes[i]; i++) {
        if (buffer_take(pe, &token->buffer[i], bytes[i]))
            continue;
        while (i--)
            buffer_release(&token->buffer[i]);
        token->buffer[0].bytes = 0;
        return false;
    }
    return true;
}

static __attribute__((noinline)) void release_all(struct token *token)
{
    struct buffer *buffer;
    tile_buffers_for(buffer, token)
        buffer_release(buffer);
}

/* ---- those of a tile */

bool tile_buffers_take(struct pe *pe, struct token *token)
{
    const uint64_t *bytes = token->tile.shape->buffer;
    if (bytes[1])
        return take_all(pe, token);
    return !bytes[0] || buffer_take(pe, &token->buffer[0], bytes[0]);
}

void tile_buffers_release(struct token *token)
{
    if (!token->buffer[0].bytes)
        return;
    token->command->pe->lacks_room = false;
    if (token->tile.shape->buffer[1])
        release_all(token);
    else
        buffer_release(&token->buffer[0]);
}

uint64_t tile_buffers_bytes(const struct token *token)
{
    uint64_t bytes = 0;
    const struct buffer *buffer;
    tile_buffers_for(buffer, token)
        bytes += buffer->bytes;
    return bytes;
}

/* ---- as if a token had given its buffers back */

static bool is_of(const struct buffer *buffer, const struct token *token)
{
    return token && buffer >= token->buffer && buffer < token->buffer + OPERANDS;
}

/* Moves an address up, behind a buffer that bytes there would overlap. Returns whether it did. */
static bool moves_behind(uint64_t *at, uint64_t bytes, const struct buffer *buffer)
{
    if (*at >= buffer->at + buffer->bytes || buffer->at >= sum(*at, bytes))
        return false;
    *at = buffer->at + buffer->bytes;
    return true;
}

bool tile_buffers_fit(const struct pe *pe, const struct tile_shape *shape, const struct token *without)
{
    struct buffer own[OPERANDS];
    for (unsigned count = 0; count < OPERANDS && shape->buffer[count]; count++) {
        uint64_t at = 0, bytes = shape->buffer[count];
        for (bool moved = true; moved;) {
            moved = false;
            for (const struct buffer *buffer = pe->lowest; buffer; buffer = buffer->higher)
                moved |= !is_of(buffer, without) && moves_behind(&at, bytes, buffer);
            for (const struct buffer *buffer = own; buffer < own + count; buffer++)
                moved |= moves_behind(&at, bytes, buffer);
        }
        if (!lies_inside(at, bytes))
            return false;
        own[count] = (struct buffer){.at = at, .bytes = bytes};
    }
    return true;
}
