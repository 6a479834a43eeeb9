/* sums.c: how long each reason takes on ways back. Accounts ask for many of them: what is asked is done later, several at
 * a time, because following causes mostly waits for memory.
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

enum { STRIDE = 16, LONG_STRIDE = 1 << DEPTH_BITS, SHORT_BITS = 12, LONG_BITS = 8, FEW_REASONS = 8 };

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

/* What has been summed up at an item that has no shortcut yet. */
struct stretch {
    uint32_t item;                                      /* 0: there is none */
    uint64_t reason_ps[REASONS];
};

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

/* From where a stretch began to an item. There is no shortcut for many reasons or long times. */
__attribute__((noinline)) static void shortcut_make(unsigned stride, const struct stretch *stretch, uint32_t to,
                                                    const uint64_t *reason_ps)
{
    struct shortcut made = {.begin_ps = item_begin_ps(&items[to]), .item = stretch->item, .to = to,
                            .is_long = items[to].depth % LONG_STRIDE == 0};
    for (unsigned reason = 0; reason < REASONS; reason++) {
        uint64_t ps = reason_ps[reason] - stretch->reason_ps[reason];
        if (ps && (made.count == FEW_REASONS || ps > UINT32_MAX)) {
            made.to = 0;
        } else if (ps) {
            made.reasons[made.count] = (uint8_t)reason;
            made.ps[made.count++] = (uint32_t)ps;
        }
    }
    *shortcut_place(stride, stretch->item) = made;
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
    uint64_t wire_ps, last_ps;                          /* on wires; the last wire or node that takes time: */
    bool ends_in_wire;                                  /* which of these */
} spans[1 << SPANS_BITS];

static const struct span *span_of(const struct route *route)
{
    struct span *span = &spans[hash_bits((uintptr_t)route, SPANS_BITS)];
    if (span->route == route)
        return span;
    *span = (struct span){.route = route};
    for (struct traversal along = traversal_of(route->way); traversal_next(&along);) {
        struct control_hop hop = control_hop(&route->way, along.hop);
        span->wire_ps += hop.link_ps;
        if (hop.link_ps || hop.node_ps) {
            span->ends_in_wire = !hop.node_ps;
            span->last_ps = hop.node_ps ? hop.node_ps : hop.link_ps;
        }
    }
    return span;
}

/* ---- a way back */

struct way_back {
    uint64_t from_ps;
    uint64_t reason_ps[REASONS];                        /* so far; they are added `to` at the end */
    uint64_t *to;
    uint32_t item;                                      /* the next one */
    uint8_t edge;                                       /* over which it is reached */
    struct stretch stretches[STRIDES];
};

/* A part of an item; the later ones come first. */
static inline void add(struct way_back *way, uint8_t reason, uint64_t begin_ps, uint64_t end_ps)
{
    begin_ps = begin_ps > way->from_ps ? begin_ps : way->from_ps;
    if (end_ps <= begin_ps)
        return;
    way->reason_ps[way->edge == EDGE_direct ? reason : edge_reasons[way->edge]] += end_ps - begin_ps;
    way->edge = EDGE_direct;
}

/* Over a control message. If it is reached over an edge, that has the last of its parts. */
static void add_control(struct way_back *way, uint64_t wire_ps, uint64_t rest_ps, const struct span *span)
{
    const struct item_about *about = &items_about[way->item];
    bool launch = !about->who.kernel && launch_of(about->who.number);
    if (way->edge != EDGE_direct) {
        way->reason_ps[edge_reasons[way->edge]] += span->last_ps;
        *(span->ends_in_wire ? &wire_ps : &rest_ps) -= span->last_ps;
    }
    way->reason_ps[launch ? REASON_launch : REASON_wire] += wire_ps;
    way->reason_ps[launch ? REASON_launch : REASON_node] += rest_ps;
}

/* What a time has after from_ps. */
static uint64_t after(uint64_t from_ps, uint64_t begin_ps, uint64_t end_ps)
{
    begin_ps = begin_ps > from_ps ? begin_ps : from_ps;
    return end_ps > begin_ps ? end_ps - begin_ps : 0;
}

/* Only a message that was sent before from_ps has its parts looked at. */
__attribute__((noinline)) static void pass_control(struct way_back *way, uint64_t begin_ps, uint64_t end_ps)
{
    const struct route *route = (const struct route *)(uintptr_t)items_about[way->item].at;
    struct span span = *span_of(route);
    uint64_t wire_ps = 0, node_ps = 0, t_ps = begin_ps;
    if (begin_ps >= way->from_ps) {
        add_control(way, span.wire_ps, end_ps - begin_ps - span.wire_ps, &span);
        return;
    }
    for (struct traversal along = traversal_of(route->way); traversal_next(&along);) {
        struct control_hop hop = control_hop(&route->way, along.hop);
        wire_ps += after(way->from_ps, t_ps, t_ps + hop.link_ps);
        t_ps += hop.link_ps;
        node_ps += after(way->from_ps, t_ps, t_ps + hop.node_ps);
        t_ps += hop.node_ps;
    }
    span.last_ps = after(way->from_ps, end_ps - span.last_ps, end_ps);
    add_control(way, wire_ps, node_ps, &span);
}

/* Over an item with a length. */
static inline void pass(struct way_back *way, const struct item *item, uint64_t begin_ps)
{
    enum work work = item->work;
    if (work == WORK_control) {
        pass_control(way, begin_ps, item->end_ps);
    } else if (work == WORK_hop) {
        uint64_t handled_ps = item->end_ps - hop_wire_ps(way->item);
        add(way, REASON_wire, handled_ps, item->end_ps);
        add(way, REASON_node, begin_ps, handled_ps);
    } else {
        add(way, item_reason(item), begin_ps, item->end_ps);
    }
    way->edge = item->edge;
}

/* A stretch ends at an item, and another one begins there. */
static void stretch_turn(struct way_back *way, unsigned stride, uint32_t item)
{
    struct stretch *stretch = &way->stretches[stride];
    if (stretch->item && item_begin_ps(&items[item]) >= way->from_ps)
        shortcut_make(stride, stretch, item, way->reason_ps);
    stretch->item = 0;
    if (shortcut_from(stride, item))
        return;
    stretch->item = item;
    memcpy(stretch->reason_ps, way->reason_ps, sizeof stretch->reason_ps);
}

static bool leads_back(const struct way_back *way, const struct shortcut *shortcut)
{
    return shortcut && shortcut->to && shortcut->begin_ps >= way->from_ps;
}

/* Follows shortcuts from an item that has been passed, whose depth is a multiple of the stride. */
__attribute__((noinline)) static void follow_shortcuts(struct way_back *way, bool is_long)
{
    const uint32_t first = way->item;
    stretch_turn(way, SHORT, first);
    for (;;) {
        const struct shortcut *shortcut = NULL;
        if (is_long) {
            stretch_turn(way, LONG, way->item);
            shortcut = shortcut_from(LONG, way->item);
        }
        if (!leads_back(way, shortcut))
            shortcut = shortcut_from(SHORT, way->item);
        if (!leads_back(way, shortcut))
            break;
        for (unsigned i = 0; i < shortcut->count; i++)
            way->reason_ps[shortcut->reasons[i]] += shortcut->ps[i];
        way->item = shortcut->to;
        is_long = shortcut->is_long;
    }
    if (way->item == first)
        return;
    way->stretches[SHORT].item = 0;
    stretch_turn(way, SHORT, way->item);
    way->edge = items[way->item].edge;
}

/* One item further. Returns false if the way has come to its end. */
static inline bool step(struct way_back *way)
{
    const struct item *item = &items[way->item];
    uint64_t begin_ps = items[item->cause].end_ps;
    if (begin_ps == item->end_ps) {
        way->edge = edge_hands_on(way->edge, item->edge) ? item->edge : way->edge;
    } else {
        pass(way, item, begin_ps);
        if (item->depth % STRIDE == 0) {
            follow_shortcuts(way, item->depth == 0);
            item = &items[way->item];
            begin_ps = item_begin_ps(item);
        }
    }
    way->item = item->cause;
    return way->item && begin_ps > way->from_ps;
}

/* Returns false if there is no way back. */
static bool set_out(struct way_back *way, struct ref end, uint64_t from_ps, uint64_t *to)
{
    any = true;
    way->from_ps = from_ps;
    memset(way->reason_ps, 0, sizeof way->reason_ps);
    way->to = to;
    way->item = end.item;
    way->edge = end.edge;
    way->stretches[SHORT].item = way->stretches[LONG].item = 0;
    return end.item && items[end.item].end_ps > from_ps;
}

static void arrive(const struct way_back *way)
{
    uint64_t *restrict to = way->to;
    for (unsigned reason = 0; reason < REASONS; reason++)
        to[reason] += way->reason_ps[reason];
}

void sums_add(struct ref end, uint64_t from_ps, uint64_t reason_ps[REASONS])
{
    struct way_back way;
    if (!set_out(&way, end, from_ps, reason_ps))
        return;
    while (step(&way))
        ;
    arrive(&way);
}

/* ---- what is asked for later */

enum { ASKED_MOST = 512, WAYS = 8 };

static struct {
    struct asked {
        uint64_t from_ps;
        sums_reasons *reasons_of;
        struct ref end;
        uint32_t number;
    } at[ASKED_MOST];
    unsigned count;
} asked;

void sums_ask(struct ref end, uint64_t from_ps, sums_reasons *reasons_of, uint32_t number)
{
    asked.at[asked.count++] = (struct asked){from_ps, reasons_of, end, number};
    if (asked.count == ASKED_MOST)
        sums_settle();
}

/* Sets out on the next way that was asked for. Returns false if there is none. */
static bool set_out_next(struct way_back *way)
{
    while (asked.count) {
        const struct asked *next = &asked.at[--asked.count];
        if (set_out(way, next->end, next->from_ps, next->reasons_of(next->number)))
            return true;
    }
    return false;
}

/* What the next step from an item needs. */
ALWAYS_INLINE void fetch(uint32_t item)
{
    const struct item *next = &items[item];
    __builtin_prefetch(&items[next->cause]);
    if (next->depth % STRIDE == 0)
        __builtin_prefetch(shortcut_place(SHORT, item));
}

void sums_settle(void)
{
    struct way_back ways[WAYS];
    unsigned count = 0;
    while (count < WAYS && set_out_next(&ways[count]))
        count++;
    while (count)
        for (struct way_back *way = ways; way < ways + count;) {
            if (step(way)) {
                fetch(way->item);                       /* until it is this one's turn again */
                way++;
                continue;
            }
            arrive(way);
            if (!set_out_next(way))
                *way = ways[--count];
        }
}

void sums_begin(void)
{
    if (any) {
        memset(short_ones, 0, sizeof short_ones);
        memset(long_ones, 0, sizeof long_ones);
        memset(spans, 0, sizeof spans);
    }
    any = false;
    asked.count = 0;
}
