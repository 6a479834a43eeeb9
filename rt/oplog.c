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

bool oplog_on;

static struct op **ops;                                 /* of the run: the settled ones, then the batch */
static uint64_t count, settled, interval;               /* interval: the first op of this one */

static void append(struct op *op)
{
    oplog_settle(false, OP_OF_HOST);
    op->at_ps = sim_now_ps();
    op->id = count;
    ops = arena_grow(ops, count, sizeof *ops);
    ops[count++] = op;
}

struct op *oplog_call(const struct op *op)
{
    struct op *called = arena_alloc(1, sizeof *called);
    *called = *op;
    return called;
}

struct op *oplog_add(const struct op *op)
{
    struct op *added = oplog_call(op);
    append(added);
    return added;
}

void oplog_received(struct op *receive, const struct op *send)
{
    receive->sent = send;
    append(receive);
}

/* ---- pass 1 */

static void mark_run(uint64_t offset, uint64_t bytes, void *view)
{
    store_mark(((const struct view *)view)->memory, offset, bytes, true);
}

static void mark(struct view *view)
{
    view_each_run(view, mark_run, view);
}

/* A message gets its place when its send's turn comes in data order, and leaves it when its receive's does; so the data
 * pass finds each place as it was. */
static void issue_copy(struct op *op)
{
    struct copy *copy = &op->copy;
    if (copy->to.memory == store_messages())
        copy->to.offset = room_message_take();
    if (op->sent)
        copy->from.offset = op->sent->copy.to.offset;
    view_copy(IMAGE_NOW, &copy->to, &copy->from);
    if (op->sent)
        room_message_free(copy->from.offset);
}

static void issue(struct op *op)
{
    if (op->kind == OPKIND_gemm)
        mark(&op->gemm.c);
    else if (op->kind == OPKIND_math)
        mark(&op->math.to);
    else if (op->pe == OP_OF_HOST)
        fill_write(&op->fill, IMAGE_NOW);
    else
        issue_copy(op);
}

static int in_data_order(const void *x, const void *y)
{
    const struct op *a = *(struct op *const *)x, *b = *(struct op *const *)y;
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
        return ops[count - 1]->pe == OP_OF_HOST;
    for (uint64_t i = settled; i < count; i++)
        if (ops[i]->pe == pe)
            return true;
    return false;
}

/* What the host writes before anything is logged is in both views at once and needs no replay. */
static bool is_initial(const struct op *op)
{
    return op->pe == OP_OF_HOST && settled == interval;
}

void oplog_settle(bool all, int64_t pe)
{
    if (settled == count || (!all && ops[settled]->at_ps == sim_now_ps() && !batch_has(pe)))
        return;
    unsigned before = phase_enter(PHASE_oplog);
    qsort(ops + settled, count - settled, sizeof *ops, in_data_order);
    for (; settled < count; settled++) {
        ops[settled]->id = settled;
        if (oplog_on && !is_initial(ops[settled]))
            store_part();
        issue(ops[settled]);
        if (is_initial(ops[settled]))
            interval++;
    }
    phase_leave(before);
}

/* ---- what follows */

uint64_t oplog_count(void)
{
    return settled - interval;
}

struct op *oplog_get(uint64_t i)
{
    return ops[interval + i];
}

void oplog_restart(void)
{
    store_join();
    interval = settled;
}

const struct op *oplog_maker(uint32_t memory, uint64_t offset)
{
    for (uint64_t i = settled; i-- > interval;) {
        const struct op *op = ops[i];
        if (op->kind != OPKIND_memory) {
            if (view_holds(op->kind == OPKIND_gemm ? &op->gemm.c : &op->math.to, memory, offset))
                return op;
        } else if (op->pe != OP_OF_HOST && view_holds(&op->copy.to, memory, offset)) {
            offset = view_counterpart(&op->copy.from, &op->copy.to, offset);
            memory = op->copy.from.memory;
        }
    }
    return NULL;
}

void oplog_service_start(struct op *op, uint64_t t_ps, uint32_t node)
{
    if (op->services++ > 0)
        return;
    op->start_ps = t_ps;
    op->node = node;
}

void oplog_service_end(struct op *op, uint64_t t_ps)
{
    op->end_ps = t_ps;
}

void oplog_reset(void)
{
    ops = NULL;
    count = settled = interval = 0;
}
