/* path.c: follows causes back. */
#include "path.h"

#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/fabric.h"

struct segments ARRAY(struct segment);

/* The way back so far. */
struct walk {
    uint64_t from_ps;
    struct segments *segments;
    uint8_t edge;                                       /* over which the next item is reached, */
    struct subject held_up;                             /* from this one */
};

/* The launches by request, as far as somebody has asked. */
static struct {
    struct ARRAY(const struct launch *) by_request;
    const struct launch *last;                          /* that is in it */
} known;

const struct launch *launch_of(uint32_t request)
{
    const struct launch *next = known.last ? known.last->next : launches;
    for (; next; next = next->next) {
        while (known.by_request.count <= next->fanout.correlation)
            *array_add(&known.by_request) = NULL;
        known.by_request.at[next->fanout.correlation] = known.last = next;
    }
    return request < known.by_request.count ? known.by_request.at[request] : NULL;
}

void launches_forget(void)
{
    known.by_request.count = 0;
    known.last = NULL;
}

/* `reason` is that of an item which is reached directly. */
static void emit(struct walk *walk, uint32_t item, enum work work, uint8_t reason, uint64_t at, uint64_t begin_ps, uint64_t end_ps)
{
    struct segment segment = {begin_ps > walk->from_ps ? begin_ps : walk->from_ps, end_ps, .work = work,
                              .edge = walk->edge, .at = at, .who = items_about[item].who, .held_up = walk->held_up};
    if (segment.end_ps <= segment.begin_ps)
        return;
    segment.reason = walk->edge != EDGE_direct ? edge_reasons[walk->edge] : reason;
    *array_add(walk->segments) = segment;
    walk->edge = EDGE_direct;
}

/* The wires and nodes of a control message, last first. */
static void emit_control(struct walk *walk, uint32_t item)
{
    static struct ARRAY(struct segment) parts;
    const struct item_about *about = &items_about[item];
    const struct route *route = (const struct route *)(uintptr_t)about->at;
    bool launch = !about->who.kernel && launch_of(about->who.number);
    uint64_t t_ps = item_begin_ps(&items[item]);
    parts.count = 0;
    for (struct traversal along = traversal_of(route_way(route)); traversal_next(&along);) {
        struct control_hop hop = control_hop(&along.way, along.hop);
        uint64_t wire_ps = t_ps + hop.link_ps, node_ps = wire_ps + hop.node_ps;
        *array_add(&parts) = (struct segment){t_ps, wire_ps, .work = WORK_wire,
                                              .at = place_at(RESOURCE_LINK, along.hop.link)};
        *array_add(&parts) = (struct segment){wire_ps, node_ps, .work = WORK_node,
                                              .at = place_at(RESOURCE_NODE, along.rank)};
        t_ps = node_ps;
    }
    for (size_t i = parts.count; i-- > 0;)
        emit(walk, item, parts.at[i].work, launch ? REASON_launch : work_reasons[parts.at[i].work], parts.at[i].at,
             parts.at[i].begin_ps, parts.at[i].end_ps);
}

/* The wires and nodes of a head, last first. */
static void emit_hops(struct walk *walk, uint32_t number)
{
    uint64_t from_ps = item_begin_ps(&items[number]);
    for (struct hop_part part = hop_parts_end(number); hop_part_before(&part, from_ps);) {
        enum work work = part.is_wire ? WORK_wire : WORK_node;
        uint64_t at = part.is_wire ? place_at(RESOURCE_LINK, step_link(*part.step))
                                   : place_at(RESOURCE_NODE, target_rank(step_target(part.step)));
        emit(walk, number, work, work_reasons[work], at, part.begin_ps, part.end_ps);
        if (walk->edge == EDGE_direct)
            walk->held_up = items_about[number].who;
    }
}

/* Over an item of no length. */
static void hand_on(struct walk *walk, uint32_t number)
{
    const struct item *item = &items[number];
    if (!edge_hands_on(walk->edge, item->edge))
        return;
    walk->edge = item->edge;
    walk->held_up = items_about[number].who;
}

static bool has_length(uint32_t item)
{
    return item_begin_ps(&items[item]) != items[item].end_ps;
}

/* One item of the way back. Behind an item with a length, the way does not depend on what comes after it. */
static void pass(struct walk *walk, uint32_t number)
{
    const struct item *item = &items[number];
    if (!has_length(number)) {
        hand_on(walk, number);
        return;
    }
    if (item->work == WORK_control)
        emit_control(walk, number);
    else if (item->work == WORK_hop || item->work == WORK_handled)
        emit_hops(walk, number);
    else
        emit(walk, number, item->work, item_reason(item), items_about[number].at, item_begin_ps(item), item->end_ps);
    walk->edge = item->edge;
    walk->held_up = items_about[number].who;
}

void reasons_write(struct json *json, const char *key, const uint64_t reason_ps[REASONS])
{
    json_object(json, key);
    for (unsigned reason = 0; reason < REASONS; reason++)
        if (reason_ps[reason])
            json_u64(json, reason_names[reason], reason_ps[reason]);
    json_object_end(json);
}

struct path path_to(struct ref end, uint64_t from_ps)
{
    struct segments all = {0};
    struct walk walk = {from_ps, &all, end.edge, {.tile = NO_TILE, .stage = NO_STAGE}};
    for (uint32_t i = end.item; i && items[i].end_ps > from_ps; i = items[i].cause)
        pass(&walk, i);
    for (size_t i = 0; i < all.count / 2; i++) {
        struct segment swapped = all.at[i];
        all.at[i] = all.at[all.count - 1 - i];
        all.at[all.count - 1 - i] = swapped;
    }
    uint64_t end_ps = items[end.item].end_ps;
    return (struct path){all.at, all.count, from_ps, end_ps > from_ps ? end_ps : from_ps};
}

void path_free(struct path *path)
{
    path->segments = array_freed(path->segments);
    path->count = 0;
}

const char *path_wrong(const struct path *path)
{
    uint64_t t_ps = path->begin_ps, sum_ps = 0;
    for (size_t i = 0; i < path->count; i++) {
        const struct segment *segment = &path->segments[i];
        if (segment->begin_ps != t_ps)
            return arena_printf("a segment begins at %" PRIu64 " ps, the one before ends at %" PRIu64 " ps",
                                segment->begin_ps, t_ps);
        t_ps = segment->end_ps;
        sum_ps += segment->end_ps - segment->begin_ps;
    }
    if (sum_ps != path->end_ps - path->begin_ps || t_ps != path->end_ps)
        return arena_printf("its segments add up to %" PRIu64 " ps, it goes from %" PRIu64 " to %" PRIu64 " ps", sum_ps,
                            path->begin_ps, path->end_ps);
    return items_broken ? arena_printf("%" PRIu64 " causes do not end when what they cause begins", items_broken) : NULL;
}

const char *segment_place(const struct segment *segment, const char **channel)
{
    unsigned kind = place_resource(segment->at);
    uint64_t number = place_number(segment->at);
    struct place sram = {number / kb_shape.cubes, number % kb_shape.cubes, cube_sram()};
    *channel = kind == RESOURCE_TCM_READ || kind == RESOURCE_SRAM_READ ? "read"
             : kind == RESOURCE_TCM_WRITE || kind == RESOURCE_SRAM_WRITE ? "write"
             : kind == RESOURCE_PSEUDO_CHANNEL ? arena_printf("%" PRIu64, number % kb_attrs.hbm_ctrl_pcs) : NULL;
    switch (kind) {
    case RESOURCE_NODE: return arena_printf("%s", place_name(rank_place((uint32_t)number)));
    case RESOURCE_LINK: {
        struct link_ends ends = link_ends(number);
        const char *from = arena_printf("%s", place_name(ends.from));
        return arena_printf("%s -> %s", from, place_name(ends.to));
    }
    case RESOURCE_PSEUDO_CHANNEL: return arena_printf("%s", place_name(slice_place(number / kb_attrs.hbm_ctrl_pcs)));
    case RESOURCE_HBM_MODEL: return arena_printf("%s", place_name(slice_place(number)));
    case RESOURCE_SRAM_READ:
    case RESOURCE_SRAM_WRITE:
    case RESOURCE_SRAM_MODEL: return arena_printf("%s", place_name(sram));
    default: return arena_printf("%s", place_name(place_pe((uint32_t)number, NODE_pe_tcm)));
    }
}
