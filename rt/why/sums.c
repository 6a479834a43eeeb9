/* sums.c: how long each reason takes on ways back. Accounts ask for many of them, most of one item or of a few.
 *
 * Kernels and engines wait for the same chains, again and again. So an item whose depth is a multiple of STRIDE has a
 * shortcut to the next such item behind it: the sums of those between them, that one included, once a way has passed all of
 * them. The same for a long stride. Tables keep the latest, each in a cache line; another one keeps what control messages take
 * on their routes. */
#include "sums.h"

#include <string.h>

#include "common/hash.h"
#include "machine/fabric.h"
#include "machine/service.h"
#include "path.h"

/* ---- shortcuts */

enum { SHORT, LONG, STRIDES };

enum { STRIDE = 16, LONG_STRIDE = 1 << DEPTH_BITS, SHORT_BITS = 12, LONG_BITS = 10, FEW_REASONS = 8 };

_Static_assert(LONG_STRIDE % STRIDE == 0, "a long stride begins and ends where a short one does");

static struct shortcut {
    uint64_t begin_ps;                                  /* of `to` */
    uint32_t item, to;                                  /* item 0: free; to 0: there is none from this item */
    uint8_t count, reasons[FEW_REASONS];
    bool is_long;                                       /* `to` is where a long stride begins */
    uint32_t ps[FEW_REASONS];
} short_ones[1 << SHORT_BITS] __attribute__((aligned(64))), long_ones[1 << LONG_BITS] __attribute__((aligned(64)));

_Static_assert(sizeof(struct shortcut) == 64, "a shortcut is a cache line");

static bool any;                                        /* way back was followed: the tables are not empty */

/* Times of reasons. Those that are not in the set are 0. */
struct part {
    uint64_t reason_ps[REASONS];
    uint32_t set;                                       /* a bit for each reason */
};

_Static_assert(REASONS <= 32, "a bit of a set for each reason");

static inline struct shortcut *shortcut_place(unsigned stride, uint32_t item)
{
    return stride == SHORT ? &short_ones[hash_bits(item, SHORT_BITS)] : &long_ones[hash_bits(item, LONG_BITS)];
}

/* NULL: there is none yet. */
static inline const struct shortcut *shortcut_from(unsigned stride, uint32_t item)
{
    const struct shortcut *shortcut = shortcut_place(stride, item);
    return shortcut->item == item ? shortcut : NULL;
}

/* What a stretch from an item to another one has. There is no shortcut for many reasons or long times. */
__attribute__((noinline)) static void shortcut_make(unsigned stride, uint32_t item, uint32_t to, const struct part *part)
{
    struct shortcut made = {.begin_ps = item_begin_ps(&items[to]), .item = item, .to = to,
                            .is_long = items[to].depth % LONG_STRIDE == 0};
    for (uint32_t left = part->set; left; left &= left - 1) {
        unsigned reason = (unsigned)__builtin_ctz(left);
        uint64_t ps = part->reason_ps[reason];
        if (made.count == FEW_REASONS || ps > UINT32_MAX) {
            made.to = 0;
            break;
        }
        made.reasons[made.count] = (uint8_t)reason;
        made.ps[made.count++] = (uint32_t)ps;
    }
    *shortcut_place(stride, item) = made;
}

static void forget_collected(struct shortcut *of, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (of[i].item && !items_has_kept(of[i].item))
            of[i].item = 0;
}

void sums_collected(void)
{
    forget_collected(short_ones, 1 << SHORT_BITS);
    forget_collected(long_ones, 1 << LONG_BITS);
}

/* ---- control messages */

enum { SPANS_BITS = 11 };

/* What a control message takes on a route. */
static struct span {
    const struct route *route;                          /* NULL: free */
    uint64_t wire_ps, node_ps, last_ps;                 /* last: the last wire or node that takes time: */
    bool ends_in_wire;                                  /* which of these */
} spans[1 << SPANS_BITS];

/* What a time has after from_ps. */
static inline uint64_t after(uint64_t from_ps, uint64_t begin_ps, uint64_t end_ps)
{
    begin_ps = begin_ps > from_ps ? begin_ps : from_ps;
    return end_ps > begin_ps ? end_ps - begin_ps : 0;
}

/* What a message that was sent at begin_ps takes after from_ps. */
static struct span span_after(const struct route *route, uint64_t begin_ps, uint64_t from_ps)
{
    struct span span = {.route = route};
    uint64_t t_ps = begin_ps;
    for (struct traversal along = traversal_of(route_way(route)); traversal_next(&along);) {
        struct control_hop hop = control_hop(&along.way, along.hop);
        uint64_t wire_ps = after(from_ps, t_ps, t_ps + hop.link_ps);
        t_ps += hop.link_ps;
        uint64_t node_ps = after(from_ps, t_ps, t_ps + hop.node_ps);
        t_ps += hop.node_ps;
        span.wire_ps += wire_ps;
        span.node_ps += node_ps;
        if (wire_ps || node_ps) {
            span.ends_in_wire = !node_ps;
            span.last_ps = node_ps ? node_ps : wire_ps;
        }
    }
    return span;
}

static struct span *span_of(const struct route *route)
{
    struct span *span = &spans[hash_bits((uintptr_t)route, SPANS_BITS)];
    if (span->route != route)
        *span = span_after(route, 0, 0);
    return span;
}

/* ---- a way back: the sums of its items from the last one on. What adds to sums returns for which reasons, as a set. */

static inline uint32_t add(uint64_t *sums, unsigned reason, uint64_t ps)
{
    sums[reason] += ps;
    return UINT32_C(1) << reason;
}

/* The reason of what is reached over an edge. */
static inline unsigned reason_over(unsigned edge, unsigned reason)
{
    return edge == EDGE_direct ? reason : edge_reasons[edge];
}

/* Over a control message. If it is reached over an edge, that has the last of its parts. */
__attribute__((noinline)) static uint32_t pass_control(uint64_t *sums, uint32_t number, unsigned edge, uint64_t from_ps)
{
    const struct item_about *about = &items_about[number];
    const struct route *route = (const struct route *)(uintptr_t)about->at;
    uint64_t begin_ps = item_begin_ps(&items[number]);
    struct span span = begin_ps >= from_ps ? *span_of(route) : span_after(route, begin_ps, from_ps);
    bool launch = !about->who.kernel && launch_of(about->who.number);
    uint32_t set = 0;
    if (edge != EDGE_direct) {
        set = add(sums, edge_reasons[edge], span.last_ps);
        *(span.ends_in_wire ? &span.wire_ps : &span.node_ps) -= span.last_ps;
    }
    set |= add(sums, launch ? REASON_launch : REASON_wire, span.wire_ps);
    return set | add(sums, launch ? REASON_launch : REASON_node, span.node_ps);
}

/* Over what a head does after from_ps. If it is reached over an edge, that has the last of its parts. */
__attribute__((noinline)) static uint32_t pass_hops(uint64_t *sums, uint32_t number, unsigned edge, uint64_t from_ps)
{
    const struct item *item = &items[number];
    bool is_known = item->detail != LONG_WIRES && item_begin_ps(item) >= from_ps;   /* how much of it are wires */
    uint64_t wires_ps = item->detail;
    uint32_t set = 0;
    for (struct hop_part part = hop_parts_end(number); hop_part_before(&part, from_ps);) {
        uint64_t ps = part.end_ps - part.begin_ps;
        if (!ps)
            continue;
        set |= add(sums, reason_over(edge, part.is_wire ? REASON_wire : REASON_node), ps);
        edge = EDGE_direct;
        wires_ps -= part.is_wire ? ps : 0;
        if (is_known)
            return set | add(sums, REASON_wire, wires_ps) | add(sums, REASON_node, part.begin_ps - from_ps - wires_ps);
    }
    return set;
}

static inline bool is_of_head(enum work work)
{
    return work == WORK_hop || work == WORK_handled;
}

/* The end of an item that begins before from_ps: there the way ends. */
__attribute__((noinline)) static uint32_t pass_last(uint64_t *sums, uint32_t number, unsigned edge, uint64_t from_ps)
{
    const struct item *item = &items[number];
    if (item->work == WORK_control)
        return pass_control(sums, number, edge, from_ps);
    if (is_of_head(item->work))
        return pass_hops(sums, number, edge, from_ps);
    return add(sums, reason_over(edge, item_reason(item)), item->end_ps - from_ps);
}

/* Over an item with a length that begins at from_ps or later. */
static inline uint32_t pass(uint64_t *sums, uint32_t number, unsigned edge, uint64_t begin_ps)
{
    const struct item *item = &items[number];
    enum work work = item->work;
    uint64_t ps = item->end_ps - begin_ps, wires_ps = item->detail;
    if (work == WORK_control)
        return pass_control(sums, number, edge, 0);
    if (!is_of_head(work))
        return add(sums, reason_over(edge, item_reason(item)), ps);
    if (edge != EDGE_direct || wires_ps == LONG_WIRES)
        return pass_hops(sums, number, edge, begin_ps);
    uint32_t set = wires_ps ? add(sums, REASON_wire, wires_ps) : 0;
    return wires_ps < ps ? set | add(sums, REASON_node, ps - wires_ps) : set;
}

/* The way back that is followed, from the first item on whose depth is a multiple of the stride. */
static struct {
    uint64_t from_ps, *to;
    uint32_t stretches[STRIDES];                        /* where they began, at items that have no shortcut yet; 0: there is
                                                           none */
    struct part part;                                   /* passed since the last such item; empty between two ways, like */
    struct part of_long;                                /* that of the long stretch up to there */
} way;

/* Adds the part that has been passed to the sums. */
__attribute__((noinline)) static void settle(void)
{
    for (uint32_t left = way.part.set; left; left &= left - 1) {
        unsigned reason = (unsigned)__builtin_ctz(left);
        way.to[reason] += way.part.reason_ps[reason];
        way.of_long.reason_ps[reason] += way.part.reason_ps[reason];
        way.part.reason_ps[reason] = 0;
    }
    way.of_long.set |= way.part.set;
    way.part.set = 0;
}

/* A stretch ends at an item, and another one begins there. */
static inline void stretch_turn(unsigned stride, uint32_t item, const struct part *part)
{
    if (way.stretches[stride])
        shortcut_make(stride, way.stretches[stride], item, part);
    way.stretches[stride] = shortcut_from(stride, item) ? 0 : item;
}

static bool leads_back(const struct shortcut *shortcut)
{
    return shortcut && shortcut->to && shortcut->begin_ps >= way.from_ps;
}

/* Follows shortcuts from an item that has been passed, whose depth is a multiple of the stride. Returns to which they lead,
 * which is passed too. */
__attribute__((noinline)) static uint32_t follow_shortcuts(uint32_t item)
{
    const uint32_t first = item;
    bool is_long = items[item].depth == 0;
    stretch_turn(SHORT, item, &way.part);
    settle();
    for (;;) {
        const struct shortcut *shortcut = NULL;
        if (is_long) {
            stretch_turn(LONG, item, &way.of_long);
            memset(&way.of_long, 0, sizeof way.of_long);
            shortcut = shortcut_from(LONG, item);
        }
        if (!leads_back(shortcut))
            shortcut = shortcut_from(SHORT, item);
        if (!leads_back(shortcut))
            break;
        for (unsigned i = 0; i < shortcut->count; i++) {
            way.to[shortcut->reasons[i]] += shortcut->ps[i];
            way.of_long.set |= add(way.of_long.reason_ps, shortcut->reasons[i], shortcut->ps[i]);
        }
        item = shortcut->to;
        is_long = shortcut->is_long;
    }
    if (item != first)
        way.stretches[SHORT] = shortcut_from(SHORT, item) ? 0 : item;
    return item;
}

void sums_add(struct ref end, uint64_t from_ps, uint64_t reason_ps[REASONS])
{
    uint32_t number = end.item, set = 0;
    unsigned edge = end.edge;
    uint64_t *sums = reason_ps;                         /* those of way.part once there are shortcuts to look for */
    if (items[number].end_ps <= from_ps)
        return;
    any = true;
    for (;; number = items[number].cause) {
        const struct item *item = &items[number];
        uint64_t begin_ps = item_begin_ps(item);
        if (begin_ps < from_ps) {
            set |= pass_last(sums, number, edge, from_ps);
            break;
        }
        if (begin_ps == item->end_ps) {
            edge = edge_hands_on((uint8_t)edge, item->edge) ? item->edge : edge;
            continue;
        }
        set |= pass(sums, number, edge, begin_ps);
        edge = item->edge;
        if (begin_ps == from_ps)
            break;
        if (item->depth % STRIDE == 0) {
            way.from_ps = from_ps;
            way.to = reason_ps;
            way.part.set = sums != reason_ps ? set : 0;
            number = follow_shortcuts(number);
            edge = items[number].edge;
            sums = way.part.reason_ps;
            set = 0;
            if (item_begin_ps(&items[number]) == from_ps)
                break;
        }
    }
    if (sums == reason_ps)
        return;
    way.part.set = set;
    settle();
    memset(&way.of_long, 0, sizeof way.of_long);
    way.stretches[SHORT] = way.stretches[LONG] = 0;
}

void sums_begin(void)
{
    if (any) {
        memset(short_ones, 0, sizeof short_ones);
        memset(long_ones, 0, sizeof long_ones);
        memset(spans, 0, sizeof spans);
    }
    any = false;
}
