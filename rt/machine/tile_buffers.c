/* tile_buffers.c: a first-fit allocator of the reserved region. The tiles that have buffers are linked by address. */
#include "tile_buffers.h"

#include "base/tables.h"

void tile_buffers_link(struct pe *pe, struct token *token, struct token *below, struct token *above)
{
    token->lower = below;
    token->higher = above;
    *(below ? &below->higher : &pe->lowest) = token;
    if (above)
        above->lower = token;
}

/* Whether a block that begins at `at` is within the region. */
static bool lies_inside(uint64_t at, uint64_t bytes)
{
    return bytes <= kb_attrs.pe_tcm_reserved_bytes && at <= kb_attrs.pe_tcm_reserved_bytes - bytes;
}

bool tile_buffers_fit(const struct pe *pe, uint64_t bytes, const struct token *without)
{
    uint64_t at = 0;
    for (const struct token *token = pe->lowest; token; token = token->higher) {
        if (token == without)
            continue;
        if (token->block - at >= bytes)
            break;
        at = token->block + token->block_bytes;
    }
    return !bytes || lies_inside(at, bytes);
}

bool tile_buffers_take(struct pe *pe, struct token *token, uint64_t bytes)
{
    struct token *below = NULL, *above = pe->lowest;
    uint64_t at = 0;
    if (!bytes)
        return true;
    for (; above && above->block - at < bytes; below = above, above = above->higher)
        at = above->block + above->block_bytes;
    if (!lies_inside(at, bytes))
        return false;
    token->block = at;
    token->block_bytes = bytes;
    tile_buffers_link(pe, token, below, above);
    return true;
}

void tile_buffers_release(struct token *token)
{
    struct pe *pe = token->command->pe;
    if (!token->block_bytes)
        return;
    pe->lacks_room = false;
    *(token->lower ? &token->lower->higher : &pe->lowest) = token->higher;
    if (token->higher)
        token->higher->lower = token->lower;
}
