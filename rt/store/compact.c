/* compact.c: many pieces become few.
 *
 *     pieces of one source, of one length or a few times it    a list of places in the source
 *     a patch that results cover, if wanted                    a result
 *     results side by side, if wanted                          one of them
 */
#include "compact.h"

#include "kb/arith.h"
#include "places.h"

/* ---- lists */

/* The most parts of a list, the fewest pieces of one, the most parts that a piece becomes. A list that has the most is not made
 * again when more parts follow it. */
enum { LIST_MOST = PLACES_MOST, LIST_LEAST = 8, OF_PIECE_MOST = 16 };

/* Parts of one length that lie one behind the other, from places of one source. */
struct parts {
    uint32_t tag;                                       /* that a piece of a part has */
    union origin source;
    uint64_t bytes, count;                              /* bytes: of each part */
    uint64_t lowest, highest, unit;                     /* of their places in the source; unit: divides what those differ by */
    uint64_t pieces;                                    /* that they are, or would be if they were in no list */
};

struct listed {
    uint32_t holders;
    struct parts parts;
    struct places places;                               /* of each part, in units from the lowest on */
};

static struct pool lists;

void listed_hold(struct listed *listed)
{
    listed->holders++;
}

void listed_drop(struct listed *listed)
{
    if (--listed->holders)
        return;
    origin_drop(listed->parts.tag, listed->parts.source);
    places_drop(&listed->places);
    pool_give_back(&lists, listed);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t left = a % b;
        a = b;
        b = left;
    }
    return a;
}

/* The parts of a piece: some of those of a list; or a few of this length, one behind the other in the source; or one. Their
 * count is 0 if the piece cannot be in a list. */
static struct parts parts_of(const struct piece *piece, uint64_t length)
{
    uint64_t bytes = piece->interval.end - piece->interval.begin, at = piece->offset, count = 1;
    enum piece_kind kind = piece_kind(piece);
    if (kind == PIECE_listed) {
        struct parts parts = piece->source.listed->parts;
        parts.count = at % parts.bytes || bytes % parts.bytes ? 0 : bytes / parts.bytes;
        parts.pieces = parts.count;
        return parts;
    }
    if (kind != PIECE_stored && kind != PIECE_filled)
        return (struct parts){0};
    if (bytes % length == 0 && bytes / length <= OF_PIECE_MOST)
        count = bytes / length;
    return (struct parts){piece->interval.tag, piece->source, bytes / count, count, at, at + bytes - bytes / count,
                          count > 1 ? length : 0, 1};
}

/* The parts from a piece on that can be one list, as many as there are. */
static struct parts parts_from(const struct interval_map *map, const struct piece *piece)
{
    struct parts all = parts_of(piece, UINT64_MAX);
    while (all.count) {
        const struct interval *last = &piece->interval;
        piece = (const struct piece *)interval_find(map, last->end);
        if (!piece || piece->interval.begin != last->end)
            break;
        struct parts parts = parts_of(piece, all.bytes);
        if (!parts.count || parts.tag != all.tag || parts.source.any != all.source.any || parts.bytes != all.bytes
            || all.count + parts.count > LIST_MOST)
            break;
        uint64_t apart = kb_max(parts.lowest, all.lowest) - kb_min(parts.lowest, all.lowest);
        all.unit = common_divisor(common_divisor(apart, parts.unit), all.unit);
        all.lowest = kb_min(all.lowest, parts.lowest);
        all.highest = kb_max(all.highest, parts.highest);
        all.count += parts.count;
        all.pieces += parts.pieces;
    }
    return all;
}

/* Adds the places of a piece's parts to a list. Returns where the next ones will be. */
static uint32_t *places_add(uint32_t *place, const struct piece *piece, const struct parts *all)
{
    static const uint32_t successive[OF_PIECE_MOST] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const struct parts parts = parts_of(piece, all->bytes);
    const uint32_t *of = successive;
    if (piece_kind(piece) == PIECE_listed)
        of = places_read(&piece->source.listed->places, piece->offset / parts.bytes, parts.count, place);
    uint64_t unit = kb_max(all->unit, 1);
    uint32_t from = (uint32_t)((parts.lowest - all->lowest) / unit), units = (uint32_t)(parts.unit / unit);
    for (uint64_t i = 0; i < parts.count; i++)
        place[i] = from + of[i] * units;
    return place + parts.count;
}

static void make_list(struct interval_map *map, uint64_t begin, const struct parts *all)
{
    struct piece piece = {.interval = {.begin = begin, .end = begin + all->count * all->bytes, .tag = piece_tag(PIECE_listed, 0)}};
    struct listed *listed = pool_reuse(&lists, sizeof *listed);
    *listed = (struct listed){1, *all, places_new(all->count)};
    origin_hold(all->tag, all->source);
    uint32_t *place = listed->places.at;
    piece_for(map, one, begin, piece.interval.end)
        place = places_add(place, one, all);
    places_keep(&listed->places);
    piece.source.listed = listed;
    interval_set(map, &piece.interval);
    listed_drop(listed);
}

void listed_read(const struct listed *listed, uint64_t offset, uint64_t bytes, uint8_t *to)
{
    enum { SOME = 128 };
    const struct parts *all = &listed->parts;
    for (uint64_t end = offset + bytes; offset < end;) {
        uint32_t read[SOME];
        uint64_t i = offset / all->bytes, count = kb_min(kb_ceil_div(end, all->bytes) - i, SOME);
        const uint32_t *place = places_read(&listed->places, i, count, read);
        for (uint64_t j = 0; j < count; j++) {
            uint64_t within = offset % all->bytes, some = kb_min(all->bytes - within, end - offset);
            const struct piece part = {.interval = {.end = all->bytes, .tag = all->tag},
                                       .offset = all->lowest + place[j] * all->unit, .source = all->source};
            piece_read(&part, within, some, to);
            to += some;
            offset += some;
        }
    }
}

void lists_reset(void)
{
    pool_release(&lists);
    places_reset();
}

/* ---- fewer pieces */

/* Makes a piece a result, if it is of a patch of results, and the results that follow it directly part of it. Returns where it ends
 * then. */
static uint64_t make_result(struct interval_map *map, const struct piece *piece)
{
    struct piece made = *piece;
    struct pending result;
    if (piece_kind(piece) == PIECE_patched && patch_is_result(piece->source.patch, true, &result)) {
        made.interval.tag = piece_tag(PIECE_result, 0);
        made.offset = result.operation;
        made.source.maker = result.maker;
    }
    while (piece_kind(&made) == PIECE_result) {
        const struct interval *next = interval_find(map, made.interval.end);
        if (!next || next->begin > made.interval.end || tag_kind(next->tag) != PIECE_result)
            break;
        made.interval.end = next->end;
    }
    if (made.interval.tag != piece->interval.tag || made.interval.end > piece->interval.end)
        interval_set(map, &made.interval);
    return made.interval.end;
}

void pieces_compact(struct interval_map *map, bool joins_results)
{
    uint64_t at = 0;
    for (const struct piece *piece; (piece = (const struct piece *)interval_find(map, at));) {
        struct parts all = parts_from(map, piece);
        uint64_t begin = piece->interval.begin;
        at = kb_max(begin + all.count * all.bytes, piece->interval.end);
        if (all.count == 0 && joins_results)
            at = make_result(map, piece);
        else if (all.pieces >= LIST_LEAST && at > piece->interval.end && (all.highest - all.lowest) / kb_max(all.unit, 1) <= UINT32_MAX)
            make_list(map, begin, &all);
    }
}
