/* race.c: the race check: what operations did to the bytes of each memory, as long as it can matter.
 *
 * Each access is held against those that overlap it. One that it covers, and that surely ended before, is forgotten: if
 * it is a read of an access that writes, or of the same kind. Whoever would race with that one races with this one as
 * well, or comes after both. When no kernel runs, nothing matters any more. */
#include "race.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "extents.h"
#include "machine/tiling.h"
#include "machine/runs.h"
#include "sim/loop.h"
#include "common/arena.h"

struct access {
    struct extent extent;                               /* first, so that it is found from it */
    struct view view;
    struct racer *racer;
    bool writes;
    struct access *next;                                /* of those that are to be forgotten, or are free */
};

bool races_on;
const struct race *races;

static struct race **last_race;
static uint32_t found, running;                         /* running: PEs with a launch that has not ended */
static struct extent **extents;                         /* by memory */
static struct access *unused;

/* ---- accesses */

static struct access *access_new(void)
{
    enum { CHUNK = 64 };
    if (!unused) {
        struct access *chunk = arena_alloc(CHUNK, sizeof *chunk);
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].next = unused;
            unused = &chunk[i];
        }
    }
    struct access *access = unused;
    unused = access->next;
    return access;
}

static void access_free(struct access *access)
{
    racer_drop(access->racer);
    access->next = unused;
    unused = access;
}

static struct extent **extents_of(uint32_t memory)
{
    if (!extents)
        extents = arena_alloc(memory_count(), sizeof *extents);
    return &extents[memory];
}

static void forget_all(struct extent *extent)
{
    if (!extent)
        return;
    forget_all(extent->left);
    forget_all(extent->right);
    access_free((struct access *)extent);
}

/* Whether a view has every byte of another one, as far as is seen easily. */
static bool covers(const struct access *a, const struct access *b)
{
    bool same = a->extent.begin == b->extent.begin && a->view.dtype == b->view.dtype
                && !memcmp(a->view.shape, b->view.shape, sizeof a->view.shape)
                && !memcmp(a->view.stride, b->view.stride, sizeof a->view.stride);
    return same || (view_is_dense(&a->view) && a->extent.begin <= b->extent.begin && a->extent.end >= b->extent.end);
}

/* ---- races */

static bool same_lines(const struct race *race, const struct origin *a, const struct origin *b)
{
    const struct origin *x = race->side[0].origin, *y = race->side[1].origin;
    return (x->line == a->line && y->line == b->line && !strcmp(x->file, a->file) && !strcmp(y->file, b->file))
           || (x->line == b->line && y->line == a->line && !strcmp(x->file, b->file) && !strcmp(y->file, a->file));
}

static struct raced side_of(const struct access *access)
{
    return (struct raced){origin_hold(access->racer->origin), access->racer->at_ps, access->writes};
}

/* The first one of each pair of lines is kept. */
static void race_add(const struct access *a, const struct access *b, uint64_t first, uint64_t end)
{
    for (const struct race *race = races; race; race = race->next)
        if (same_lines(race, a->racer->origin, b->racer->origin))
            return;
    struct race *race = arena_alloc(1, sizeof *race);
    *race = (struct race){{side_of(a), side_of(b)}, a->view.memory, first, end, NULL};
    if (races)
        *last_race = race;
    else
        races = race;
    last_race = &race->next;
    found++;
}

struct look {
    struct access *made, *gone;
};

/* An access that overlaps the new one. */
static void compare(struct extent *extent, void *arg)
{
    struct look *look = arg;
    struct access *other = (struct access *)extent, *made = look->made;
    bool conflict = made->writes || other->writes;
    uint64_t first, end;
    if (other->racer == made->racer || (!conflict && other->racer->pe != made->racer->pe))
        return;
    if (racer_before(other->racer, made->racer)) {
        if ((made->writes || !other->writes) && covers(made, other)) {
            other->next = look->gone;
            look->gone = other;
        }
    } else if (conflict && views_meet(&other->view, &made->view, &first, &end)) {
        race_add(other, made, first, end);
    }
}

static void touch(const struct view *view, bool writes, void *arg)
{
    struct racer *racer = arg;
    if (view->memory >= memory_count() || view_elements(view) == 0)
        return;                                         /* messages, and what else no kernel can name */
    struct access *made = access_new();
    *made = (struct access){.view = *view, .racer = racer, .writes = writes,
                            .extent = {.begin = view->offset, .end = view->offset + view_span(view)}};
    racer->holders++;
    struct look look = {.made = made};
    struct extent **root = extents_of(view->memory);
    extents_each(*root, made->extent.begin, made->extent.end, compare, &look);
    for (struct access *gone = look.gone, *next; gone; gone = next) {
        next = gone->next;
        extents_remove(root, &gone->extent);
        access_free(gone);
    }
    extents_add(root, &made->extent);
}

/* ---- what kernels and the host do */

void race_called(uint32_t pe, uint32_t number, struct origin *origin, const struct op *op, bool receives)
{
    struct racer *racer = racer_called(pe, number, origin);
    if (receives) {
        racer->received = op->copy.to;
        return;
    }
    op_each_view(op, touch, racer);
    if (op->kind == OPKIND_memory && op->copy.to.memory == store_messages())
        racer_sends(racer);
}

/* It wrote its buffer at some time from its call on, behind all that the message came after. */
static void message_received(const struct command *receive, const struct command *send)
{
    struct racer *racer = receive->ask.record->racer;
    racer_received(racer, send->ask.record->racer);
    touch(&racer->received, true, racer);
    racer_known(racer);
}

static void command_completed(const struct command *command)
{
    if (command->ask.record)
        command->ask.record->end_ps = sim_now_ps();
}

struct observer race_observer = {
    .name = "race check",
    .command_completed = command_completed,
    .message_received = message_received,
};

struct clocks *race_launched(uint32_t pes)
{
    if (running == 0)
        for (uint32_t memory = 0; extents && memory < memory_count(); memory++) {
            forget_all(extents[memory]);
            extents[memory] = NULL;
        }
    running += pes;
    return racers_known_to_host();
}

void race_kernel_ended(uint32_t pe)
{
    racers_kernel_ended(pe);
    running--;
}

struct search {
    struct view byte;
    const struct racer *last;
};

static void look_for_writer(struct extent *extent, void *arg)
{
    struct search *search = arg;
    const struct access *access = (struct access *)extent;
    const struct racer *racer = access->racer;
    if (access->writes && view_overlap(&access->view, &search->byte)
        && (!search->last || racer->at_ps >= search->last->at_ps))
        search->last = racer;
}

struct origin *race_writer(uint32_t memory, uint64_t offset)
{
    struct search search = {view_bytes(memory, offset, 1), NULL};
    extents_each(*extents_of(memory), offset, offset + 1, look_for_writer, &search);
    return search.last ? search.last->origin : NULL;
}

uint32_t races_found(void)
{
    return found;
}

void races_reset(void)
{
    racers_reset();
    extents = NULL;
    unused = NULL;
    races = NULL;
    found = running = 0;
}
