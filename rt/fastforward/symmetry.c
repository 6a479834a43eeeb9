/* symmetry.c: who sleeps, and what counts for them when they wake. */
#include "symmetry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "state_copy.h"
#include "base/rates.h"
#include "machine/emitted.h"
#include "machine/stats.h"
#include "common/diag.h"
#include "sim/loop.h"
#include "sim/observer.h"

static uint64_t slept;                                  /* services */
static struct groups groups;
static struct print state;                              /* of the first group */

/* How counts stood when they went to sleep. */
static struct stats stats_then;
static uint64_t *numbers_then, *slice_busy_then, *link_busy_then;   /* by position in the first group */
static struct pe_then {
    const struct command *feeding;
    uint64_t services, dma_ps, compute_ps;
} *pes_then;

/* ---- whether groups stand alike */

static uint32_t slice_of(struct place place)
{
    return (place.sip * kb_shape.cubes + place.cube) * kb_shape.pes + kb_cube_nodes[place.node].index;
}

static uint32_t sram_of(struct place place)
{
    return place.sip * kb_shape.cubes + place.cube;
}

static void put_slice(struct print *print, uint32_t slice)
{
    const struct pseudo_channel *channels = &kb_pseudo_channels[slice * kb_attrs.hbm_ctrl_pcs];
    for (uint64_t i = 0; i < kb_attrs.hbm_ctrl_pcs; i++) {
        put_free(print, channels[i].free_ps);
        put(print, channels[i].open_row);
    }
}

static void put_node(struct print *print, uint32_t rank)
{
    struct place place = rank_place(rank);
    put_free(print, kb_node_free_ps[rank]);
    if (place.cube == OUTSIDE)
        return;
    if (kb_cube_nodes[place.node].kind == NODE_hbm_ctrl)
        put_slice(print, slice_of(place));
    if (kb_cube_nodes[place.node].kind != NODE_sram)
        return;
    put_free(print, kb_sram[sram_of(place)].read_free_ps);
    put_free(print, kb_sram[sram_of(place)].write_free_ps);
}

static void put_group(struct print *print, uint32_t group)
{
    print->labels = groups_labels();
    for (uint32_t i = 0; i < groups.pes && !print->differs; i++) {
        const struct pe *pe = groups.pe[group * groups.pes + i];
        put_pe(print, pe);
        put_free(print, pe->tcm_read_free_ps);
        put_free(print, pe->tcm_write_free_ps);
    }
    for (uint32_t i = 0; i < groups.nodes && !print->differs; i++)
        put_node(print, groups.node[(size_t)group * groups.nodes + i]);
    for (uint32_t i = 0; i < groups.links && !print->differs; i++)
        put_free(print, kb_link_free_ps[groups.link[(size_t)group * groups.links + i]]);
}

/* Whether they all do, and nothing else is under way. */
static bool stand_alike(void)
{
    uint64_t kernel_ps;
    state.at = state.events = 0;
    state.differs = false;
    put_group(&state, 0);
    if (state.differs || state.events * groups.count != event_waiting(&kernel_ps))
        return false;
    for (uint32_t group = 1; group < groups.count; group++) {
        struct print other = {.words = state.words, .count = state.at, .compares = true};
        put_group(&other, group);
        if (other.differs || other.at != other.count)
            return false;
    }
    loop_alarm_ps = kernel_ps;
    return true;
}

/* ---- to sleep */

static void *grown(void *array, size_t count, size_t size)
{
    array = realloc(array, count * size);
    if (!array)
        die("no memory for %zu parts of the machine", count);
    return array;
}

static uint64_t slice_busy(uint32_t rank)
{
    struct place place = rank_place(rank);
    bool is_slice = place.cube != OUTSIDE && kb_cube_nodes[place.node].kind == NODE_hbm_ctrl;
    return is_slice ? kb_hbm[slice_of(place)].busy_ps : 0;
}

static struct pe_then then_of(const struct pe *pe)
{
    return (struct pe_then){pe->feeding, pe->services, pe->dma.total_ps, pe->compute.total_ps};
}

static void take_counts(void)
{
    stats_then = stats;
    numbers_then = grown(numbers_then, groups.nodes, sizeof *numbers_then);
    slice_busy_then = grown(slice_busy_then, groups.nodes, sizeof *slice_busy_then);
    link_busy_then = grown(link_busy_then, groups.links, sizeof *link_busy_then);
    pes_then = grown(pes_then, groups.pes, sizeof *pes_then);
    for (uint32_t i = 0; i < groups.nodes; i++) {
        numbers_then[i] = message_numbers()[groups.node[i]];
        slice_busy_then[i] = slice_busy(groups.node[i]);
    }
    for (uint32_t i = 0; i < groups.links; i++)
        link_busy_then[i] = link_busy_ps[groups.link[i]];
    for (uint32_t i = 0; i < groups.pes; i++)
        pes_then[i] = then_of(groups.pe[i]);
}

bool alike_sleep(struct pe *const *pes, uint32_t count)
{
    if (!groups_find(pes, count, &groups) || !stand_alike())
        return false;
    observer_watch(&symmetry_observer, true);
    take_counts();
    event_drop(groups_follows);
    for (uint32_t i = groups.pes; i < count; i++) {
        groups.pe[i]->asleep = true;
        copy_clear(groups.pe[i]);
    }
    return true;
}

/* ---- awake again */

static void node_wakes(uint32_t to, uint32_t from, uint32_t label)
{
    struct place place = rank_place(to);
    kb_node_free_ps[to] = kb_node_free_ps[from];
    message_numbers()[to] += message_numbers()[from] - numbers_then[label];
    if (place.cube == OUTSIDE)
        return;
    if (kb_cube_nodes[place.node].kind == NODE_sram)
        kb_sram[sram_of(place)] = kb_sram[sram_of(rank_place(from))];
    if (kb_cube_nodes[place.node].kind != NODE_hbm_ctrl)
        return;
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs;
    kb_hbm[slice_of(place)].busy_ps += slice_busy(from) - slice_busy_then[label];
    memcpy(&kb_pseudo_channels[slice_of(place) * pcs], &kb_pseudo_channels[slice_of(rank_place(from)) * pcs],
           pcs * sizeof *kb_pseudo_channels);
}

static void busy_wakes(struct busy *to, const struct busy *from, uint64_t then_ps)
{
    *to = (struct busy){from->servers, from->since_ps, to->total_ps + (from->total_ps - then_ps)};
}

static void counts_wake(struct pe *to, const struct pe *from, const struct pe_then *then)
{
    to->services += from->services - then->services;
    busy_wakes(&to->dma, &from->dma, then->dma_ps);
    busy_wakes(&to->compute, &from->compute, then->compute_ps);
}

static void group_wakes(uint32_t group)
{
    const struct copies copies = {&groups, group};
    const uint32_t *nodes = &groups.node[(size_t)group * groups.nodes];
    const uint32_t *links = &groups.link[(size_t)group * groups.links];
    for (uint32_t i = 0; i < groups.nodes; i++)
        node_wakes(nodes[i], groups.node[i], i);
    for (uint32_t i = 0; i < groups.links; i++) {
        kb_link_free_ps[links[i]] = kb_link_free_ps[groups.link[i]];
        link_busy_ps[links[i]] += link_busy_ps[groups.link[i]] - link_busy_then[i];
    }
    for (uint32_t i = 0; i < groups.pes; i++) {
        struct pe *to = groups.pe[group * groups.pes + i];
        const struct pe *from = groups.pe[i];
        counts_wake(to, from, &pes_then[i]);
        copy_pe(&copies, to, from, pes_then[i].feeding);
        to->asleep = false;
    }
}

/* Before kernels or host programs do what may tell PEs apart. */
static void wake(void)
{
    uint64_t *all = (uint64_t *)&stats;
    const uint64_t *then = (const uint64_t *)&stats_then;
    observer_watch(&symmetry_observer, false);
    loop_alarm_ps = UINT64_MAX;
    slept += (stats.services - stats_then.services) * (groups.count - 1);
    for (size_t i = 0; i < sizeof stats / sizeof *all; i++)
        all[i] = sum(all[i], product(all[i] - then[i], groups.count - 1));
    for (uint32_t group = 1; group < groups.count; group++)
        group_wakes(group);
}

static void kernel_will_act(uint64_t t_ps)
{
    if (t_ps < loop_alarm_ps)
        loop_alarm_ps = t_ps;
}

/* The composites of the PEs that sleep and correspond complete as well. */
static void command_completed(const struct command *command)
{
    uint32_t i = 0;
    if (command->pe->asleep)
        return;
    while (i < groups.pes && groups.pe[i] != command->pe)
        i++;
    assert(i < groups.pes);                             /* nothing else is under way while PEs sleep */
    for (uint32_t group = 1; group < groups.count; group++) {
        struct pe *to = groups.pe[group * groups.pes + i];
        struct command *counterpart = to->feeding;
        counts_wake(to, command->pe, &pes_then[i]);
        to->feeding = NULL;
        counterpart->tiles_left = 0;
        command_complete(counterpart);
    }
    pes_then[i] = then_of(command->pe);
    pes_then[i].feeding = NULL;
}

uint64_t alike_services(void)
{
    return slept;
}

void alike_reset(void)
{
    slept = 0;
    observer_watch(&symmetry_observer, false);
    loop_alarm_ps = UINT64_MAX;
}

struct observer symmetry_observer = {
    .name = "symmetry",
    .alarm_rings = wake,
    .programs_act = wake,
    .kernel_will_act = kernel_will_act,
    .command_completed = command_completed,
};
