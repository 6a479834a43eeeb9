/* pe.c: the PEs of the machine: names, set-up, and which of them the Issue step visits. */
#include "pe.h"

#include <stdio.h>
#include <string.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "emitted.h"
#include "sim/loop.h"

uint32_t pe_number(const struct pe *pe)
{
    return pe - kb_pe;
}

const char *pe_name(const struct pe *pe)
{
    static char names[4][48];
    static unsigned turn;
    char *name = names[turn++ % 4];
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    char *end = name_numbered(name, "sip", cube / kb_shape.cubes);
    end = name_numbered(end, ".cube", cube % kb_shape.cubes);
    *name_numbered(end, ".pe", number % kb_shape.pes) = 0;
    return name;
}

bool pe_numbered(const char *name, uint32_t *number)
{
    unsigned sip, cube, pe;
    if (sscanf(name, "sip%3u.cube%3u.pe%3u", &sip, &cube, &pe) != 3 || sip >= kb_shape.sips || cube >= kb_shape.cubes
        || pe >= kb_shape.pes)
        return false;
    *number = (sip * kb_shape.cubes + cube) * kb_shape.pes + pe;
    return !strcmp(name, pe_name(&kb_pe[*number]));
}

/* ---- the Issue step */

/* PEs that were woken since the last Issue step, by rank: as many as are due. */
static struct pe **woken;

static void issue(void)
{
    phase_enter(PHASE_issue);
    /* What one PE starts does not wake another in the same instant: every fabric link takes time. */
    struct pe **pe = woken, **end = woken + loop_issue.due;
    do {
        pe_issue(*pe);
        (*pe)->waits_for_issue = false;
    } while (++pe < end);
    loop_issue.due = 0;
}

void pes_init(void)
{
    woken = arena_alloc(pe_count(), sizeof *woken);
    loop_issue = (struct issue){.step = issue};
    for (uint32_t i = 0; i < pe_count(); i++) {
        struct pe *pe = &kb_pe[i];
        pe->rank = place_rank(place_pe(i, NODE_pe_cpu));
        pe->servers = &kb_servers[i * (size_t)kb_pe_servers];
#define STAGE(name, part, engine, busy) pe->free_slots[STAGE_##name] = kb_attrs.part##_queue_depth;
#include "kb/stages.def"
#undef STAGE
    }
}

void pe_wake_first(struct pe *pe)
{
    pe->waits_for_issue = true;
    uint32_t at = loop_issue.due++;
    for (; at > 0 && woken[at - 1] > pe; at--)
        woken[at] = woken[at - 1];
    woken[at] = pe;
}
