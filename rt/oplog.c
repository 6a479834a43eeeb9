/* oplog.c: the record of everything that moves or makes data.
 *
 * Calls of one instant come in the order in which the kernels happened to resume. They wait in a batch until time goes
 * on or somebody looks, and are then put into data order: so that pass 1 and the data pass see one order. */
#include "oplog.h"

#include <stdlib.h>

#include "plan.h"
#include "room.h"
#include "sim.h"
#include "stopwatch.h"
#include "text/base.h"
#include "text/diag.h"

bool oplog_on;

/* A record with the call that it comes from, and those of what it depends on. */
struct entry {
    struct op op;
    struct origin *origin, *send, **after;
};

static struct entry **ops;                              /* of the run: the settled ones, then the batch */
static uint64_t count, settled, interval;               /* interval: the first op of this one */

static void append(struct entry *entry)
{
    oplog_settle(false, OP_OF_HOST);
    entry->op.at_ps = sim_now_ps();
    entry->op.id = count;
    ops = arena_grow(ops, count, sizeof *ops);
    ops[count++] = entry;
}

static struct entry *entry_new(const struct op *op)
{
    struct entry *entry = arena_alloc(1, sizeof *entry);
    entry->op = *op;
    entry->op.afters = 0;
    entry->origin = origin_new();
    *entry->origin = (struct origin){.id = NO_ID, .name = op->name, .pe = op->pe, .command = op->command,
                                     .kernel = op->kernel, .file = op->file, .line = op->line, .holders = 2,
                                     .entry = entry};
    return entry;
}

struct origin *oplog_call(const struct op *op)
{
    return entry_new(op)->origin;
}

struct origin *oplog_add(const struct op *op)
{
    struct entry *added = entry_new(op);
    append(added);
    return added->origin;
}

void oplog_received(struct origin *receive, struct origin *send)
{
    struct entry *entry = receive->entry;
    entry->send = origin_hold(send);
    append(entry);
}

void oplog_depends(struct origin *op, struct origin *on)
{
    if (!op || !on)
        return;
    struct entry *entry = op->entry;
    entry->after = arena_grow(entry->after, entry->op.afters, sizeof *entry->after);
    entry->after[entry->op.afters++] = origin_hold(on);
}

/* ---- pass 1 */

struct marking {
    uint32_t memory;
    struct origin *maker;
};

static void mark_run(uint64_t offset, uint64_t bytes, void *arg)
{
    const struct marking *marking = arg;
    store_mark(marking->memory, offset, bytes, marking->maker);
}

static void mark(const struct view *view, struct origin *maker)
{
    view_each_run(view, mark_run, &(struct marking){view->memory, maker});
}

/* A message gets its place when its send's turn comes in data order, and leaves it when its receive's does; so the data
 * pass finds each place as it was. */
static void issue_copy(struct entry *entry)
{
    struct copy *copy = &entry->op.copy;
    if (copy->to.memory == store_messages())
        copy->to.offset = entry->origin->message = room_message_take();
    if (entry->send)
        copy->from.offset = entry->send->message;
    view_copy(IMAGE_NOW, &copy->to, &copy->from);
    if (entry->send)
        room_message_free(copy->from.offset);
}

static void issue(struct entry *entry)
{
    struct op *op = &entry->op;
    if (op->kind == OPKIND_gemm)
        mark(&op->gemm.c, entry->origin);
    else if (op->kind == OPKIND_math)
        mark(&op->math.to, entry->origin);
    else if (op->pe == OP_OF_HOST)
        fill_write(&op->fill, IMAGE_NOW);
    else
        issue_copy(entry);
}

static int in_data_order(const void *x, const void *y)
{
    const struct op *a = &(*(struct entry *const *)x)->op, *b = &(*(struct entry *const *)y)->op;
    if (a->pe != b->pe)
        return a->pe < b->pe ? -1 : 1;
    if (a->command != b->command)
        return a->command < b->command ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Whatever follows an op of the host settles it first: it can only be the last of a batch. */
static bool batch_has(int64_t pe)
{
    if (pe == OP_OF_HOST)
        return ops[count - 1]->op.pe == OP_OF_HOST;
    for (uint64_t i = settled; i < count; i++)
        if (ops[i]->op.pe == pe)
            return true;
    return false;
}

/* What the host writes before anything is logged is in both views at once and needs no replay. */
static bool is_initial(const struct op *op)
{
    return op->pe == OP_OF_HOST && settled == interval;
}

/* What it depends on has its id by now, or is a receive that has not completed. */
static void give_ids(struct entry *entry)
{
    uint64_t *after = arena_alloc(entry->op.afters, sizeof *after);
    uint32_t afters = 0;
    for (uint32_t i = 0; i < entry->op.afters; i++)
        if (entry->after[i]->id != NO_ID)
            after[afters++] = 1 + entry->after[i]->id;
    entry->op.id = entry->origin->id = settled;
    entry->op.sent = entry->send ? 1 + entry->send->id : 0;
    entry->op.after = after;
    entry->op.afters = afters;
}

void oplog_settle(bool all, int64_t pe)
{
    if (settled == count || (!all && ops[settled]->op.at_ps == sim_now_ps() && !batch_has(pe)))
        return;
    unsigned before = phase_enter(PHASE_oplog);
    qsort(ops + settled, count - settled, sizeof *ops, in_data_order);
    for (; settled < count; settled++) {
        struct entry *entry = ops[settled];
        give_ids(entry);
        if (oplog_on && !is_initial(&entry->op))
            store_part();
        issue(entry);
        if (is_initial(&entry->op))
            interval++;
    }
    phase_leave(before);
}

/* ---- what follows */

uint64_t oplog_count(void)
{
    return settled - interval;
}

void oplog_read(struct oplog_reader *reader)
{
    reader->next = interval;
}

struct op *oplog_next(struct oplog_reader *reader)
{
    if (reader->next == settled)
        return NULL;
    struct op *op = malloc(sizeof *op);
    if (!op)
        die("no memory for a record of the op log:");
    *op = ops[reader->next++]->op;
    return op;
}

void oplog_restart(void)
{
    store_join();
    interval = settled;
}

void oplog_service_start(struct origin *op, uint64_t t_ps, uint32_t node)
{
    if (op->services++ > 0)
        return;
    op->start_ps = t_ps;
    op->node = node;
}

void oplog_service_end(struct origin *op, uint64_t t_ps)
{
    op->end_ps = t_ps;
}

void oplog_reset(void)
{
    origins_reset();
    ops = NULL;
    count = settled = interval = 0;
}
