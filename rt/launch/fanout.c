/* fanout.c: requests of the host: fan-out and aggregation at io_cpu and m_cpu. */
#include "fanout.h"

#include "base/rates.h"
#include "common/arena.h"
#include "machine/emitted.h"

static uint64_t correlations;                           /* given out */

/* ---- legs */

struct leg *leg_of(struct message *message)
{
    return container_of(message, struct leg, data.message);
}

uint32_t leg_leaf(const struct leg *leaf)
{
    return leaf - leaf->fanout->leaves;
}

/* Makes a leg below `above` for each group of the leaves [first, end) that are in the same `cubes` cubes. Returns how
 * many legs there are. */
static uint32_t legs_make(struct fanout *fanout, struct leg *legs, struct leg *above, uint32_t first, uint32_t end,
                          const uint32_t *cube, uint32_t cubes)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        if (i == first || cube[i] / cubes != cube[i - 1] / cubes)
            legs[count++] = (struct leg){.fanout = fanout,
                                        .above = above, .first = i, .cube = cube[i], .failed = NO_LEAF};
        legs[count - 1].end = i + 1;
    }
    if (above)
        above->awaited = count;
    return count;
}

static struct place m_cpu_of(const struct leg *leg)
{
    return place_m_cpu(leg->cube / kb_shape.cubes, leg->cube % kb_shape.cubes);
}

void fanout_plan(struct fanout *fanout, const uint32_t *cube, uint32_t count)
{
    const uint8_t plane = fanout->writes ? kb_shape.plane_of_write : 0;
    fanout->correlation = ++correlations;
    fanout->leaf_count = count;
    fanout->failed = NO_LEAF;
    fanout->cubes = arena_alloc(kb_min(count, cube_count()), sizeof *fanout->cubes);
    fanout->leaves = arena_alloc(count, sizeof *fanout->leaves);
    if (fanout->direct) {
        fanout->awaited = fanout->cube_count = legs_make(fanout, fanout->cubes, NULL, 0, count, cube, 1);
    } else {
        fanout->sips = arena_alloc(kb_min(count, kb_shape.sips), sizeof *fanout->sips);
        fanout->awaited = fanout->sip_count = legs_make(fanout, fanout->sips, NULL, 0, count, cube, kb_shape.cubes);
    }
    for (uint32_t i = 0; i < fanout->sip_count; i++) {
        struct leg *sip = &fanout->sips[i];
        sip->way = way_of(place_host(), place_io_cpu(sip->cube / kb_shape.cubes), plane);
        fanout->cube_count += legs_make(fanout, fanout->cubes + fanout->cube_count, sip, sip->first, sip->end, cube, 1);
    }
    struct cause cause = {0, (uint32_t)fanout->correlation};
    for (uint32_t i = 0; i < fanout->sip_count; i++)
        fanout->sips[i].data.message.cause = cause;
    for (uint32_t i = 0; i < fanout->cube_count; i++) {
        struct leg *leg = &fanout->cubes[i];
        leg->data.message.cause = cause;
        leg->way = way_of(leg->above ? leg->above->way.to : place_host(), m_cpu_of(leg), plane);
        leg->awaited = leg->end - leg->first;
        for (uint32_t j = leg->first; j < leg->end; j++)
            fanout->leaves[j] = (struct leg){.fanout = fanout, .above = leg, .first = j, .end = j + 1, .cube = cube[j],
                                              .failed = NO_LEAF, .data.message.cause = cause,
                                              .way = {.from = leg->way.to, .direction = REQUEST, .plane = plane}};
    }
}

/* The longest latency to the leaves [first, end) of the legs below `top`; NULL: from the host. */
static uint64_t longest_ps(const struct fanout *fanout, const struct leg *top, uint32_t first, uint32_t end)
{
    uint64_t most = 0;
    for (uint32_t i = first; i < end; i++) {
        uint64_t ps = 0;
        for (const struct leg *leg = &fanout->leaves[i]; leg != top; leg = leg->above)
            ps += route_latency_ps(route_of(leg->way));
        most = ps > most ? ps : most;
    }
    return most;
}

uint64_t fanout_latency_ps(const struct fanout *fanout)
{
    return longest_ps(fanout, NULL, 0, fanout->leaf_count);
}

uint64_t leg_latency_ps(const struct leg *leg)
{
    return longest_ps(leg->fanout, leg, leg->first, leg->end);
}

/* ---- the messages of legs */

static void data_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    (void)head_ps;
    data_deliver(data, delivered_ps, container_of(data, struct leg, data)->delivered);
}

static const struct data_kind leg_kind = {.arrived = data_arrived};

static void leg_send(struct leg *leg, struct route *route, bool payload, void (*delivered)(struct message *))
{
    leg->delivered = delivered;
    if (payload)
        data_send(&leg->data, route, payload_of(product(leg->fanout->leaf_bytes, leg->end - leg->first)), now_ps, 0,
                  &leg_kind);
    else
        control_send(&leg->data.message, route, now_ps, delivered);
}

/* ---- up */

/* Counts an answer from below at a node, and merges it with that node's own. Returns true if the node answers now. */
static bool answer_taken(const struct fanout *fanout, uint32_t *awaited, uint32_t *failed, bool answered,
                         uint32_t below)
{
    if (answered)
        return false;
    /* The failure of the lowest rank; with fail_fast there is only the first to come. */
    if (*failed == NO_LEAF || below < *failed)
        *failed = below;
    return --*awaited == 0 || (fanout->fail_fast && *failed != NO_LEAF);
}

static void host_answered(struct message *message)
{
    struct leg *leg = leg_of(message);
    struct fanout *fanout = leg->fanout;
    if (!answer_taken(fanout, &fanout->awaited, &fanout->failed, fanout->answered, leg->failed))
        return;
    if (fanout->done)
        fanout->done(fanout);
    fanout_end(fanout);
}

void fanout_end(struct fanout *fanout)
{
    fanout->answered = true;
    sim_wake(&fanout->waiter);
    if (fanout->ended)
        fanout->ended(fanout->owner);
}

static void leg_answer(struct leg *leg, void (*delivered)(struct message *))
{
    struct route *request = leg->data.message.route;
    bool payload = leg->fanout->reads && leg->failed == NO_LEAF;
    leg->answered = true;
    leg_send(leg, payload ? route_answer(request) : route_back(request), payload, delivered);
}

static void io_cpu_answered(struct message *message)
{
    struct leg *leg = leg_of(message), *above = leg->above;
    if (answer_taken(leg->fanout, &above->awaited, &above->failed, above->answered, leg->failed))
        leg_answer(above, host_answered);
}

static void m_cpu_answer(struct leg *cube)
{
    leg_answer(cube, cube->above ? io_cpu_answered : host_answered);
}

void fanout_leaf_answered(struct leg *leaf, bool failed)
{
    struct leg *above = leaf->above;
    if (answer_taken(leaf->fanout, &above->awaited, &above->failed, above->answered, failed ? leg_leaf(leaf) : NO_LEAF))
        m_cpu_answer(above);
}

void fanout_refused(struct leg *cube)
{
    cube->failed = cube->first;
    m_cpu_answer(cube);
}

/* ---- down */

static void m_cpu_reached(struct message *message)
{
    struct leg *leg = leg_of(message);
    leg->fanout->at_m_cpu(leg);
}

static void io_cpu_reached(struct message *message)
{
    struct leg *leg = leg_of(message);
    struct fanout *fanout = leg->fanout;
    if (fanout->at_io_cpu)
        fanout->at_io_cpu(leg);
    for (uint32_t i = 0; i < fanout->cube_count; i++)
        if (fanout->cubes[i].above == leg)
            leg_send(&fanout->cubes[i], route_of(fanout->cubes[i].way), fanout->writes, m_cpu_reached);
}

void fanout_send(struct fanout *fanout)
{
    for (uint32_t i = 0; fanout->direct && i < fanout->cube_count; i++)
        leg_send(&fanout->cubes[i], route_of(fanout->cubes[i].way), false, m_cpu_reached);
    for (uint32_t i = 0; i < fanout->sip_count; i++)
        leg_send(&fanout->sips[i], route_of(fanout->sips[i].way), fanout->writes, io_cpu_reached);
}

void fanout_wait(struct fanout *fanout)
{
    if (!fanout->answered)
        sim_sleep(&fanout->waiter);
}

uint64_t fanout_count(void)
{
    return correlations;
}

void fanout_reset(void)
{
    correlations = 0;
}

const struct handler fanout_handlers[] = {
    HANDLER(host_answered, "answer at the host"),
    HANDLER(io_cpu_answered, "answer at io_cpu"),
    HANDLER(m_cpu_reached, "request at m_cpu"),
    HANDLER(io_cpu_reached, "request at io_cpu"),
    {0}};
