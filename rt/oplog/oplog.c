/* oplog.c: the op log: a record of every operation that moves or computes data, in data order; and pass 1.
 *
 * Calls of one instant come in the order in which the kernels happened to resume. They wait in a batch until time goes
 * on or their results are needed, and are then sorted into data order, so that pass 1 and the data pass see one order.
 * Then the records are encoded (log.h) and leave memory. Their references stay as long as anything refers to them. */
#include "oplog.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/diag.h"
#include "common/pool.h"
#include "log.h"
#include "machine/pe.h"
#include "sim/event.h"
#include "store/allocator.h"
#include "store/contents.h"
#include "store/written.h"

bool oplog_on;

/* A record that has no place in data order yet. One that is reused keeps the memory of its lists. */
struct oplog_entry {
    struct op_ref *ref, *send;
    void *lists;                                        /* its epilogues, then what it comes after */
    size_t lists_bytes;
    struct tile_stage *tile;                            /* served before the record had its id */
    uint32_t tiles;
    struct op op;                                       /* as much of it as its kind has */
};

#define UP_TO(type, field) (offsetof(type, field) + sizeof ((type *)NULL)->field)

static const size_t op_bytes[] = {[OPKIND_memory] = UP_TO(struct op, copy), [OPKIND_gemm] = UP_TO(struct op, gemm),
                                  [OPKIND_math] = UP_TO(struct op, math)};
_Static_assert(sizeof(struct fill) <= sizeof(struct copy), "a record of a fill fits where one of a copy does");

static struct pool entries[COUNT_OF(op_bytes)];
static struct ARRAY(struct oplog_entry *) batch;        /* the calls of an instant */
static uint64_t calls, settled, interval;               /* operations of the run; interval: the first of this one */
static struct log_reader *replayed;
static uint64_t replayed_count;

/* ---- what an operation reads and writes */

void op_each_view(const struct op *op, void (*f)(const struct view *view, bool writes, void *arg), void *arg)
{
    if (op->kind == OPKIND_gemm) {
        const struct gemm *g = &op->gemm;
        f(&g->a, false, arg);
        f(&g->b, false, arg);
        for (uint32_t i = 0; i < g->epilogues; i++)
            if (g->epilogue[i].has_operand)
                f(&g->epilogue[i].operand, false, arg);
        f(&g->c, true, arg);
    } else if (op->kind == OPKIND_math) {
        for (unsigned i = 0; i < math_views(&op->math); i++)
            f(&op->math.operand[i], false, arg);
        f(&op->math.to, true, arg);
    } else if (op->pe != OP_OF_HOST) {
        f(&op->copy.from, false, arg);
        f(&op->copy.to, true, arg);
    }
}

/* ---- entries */

static void entry_drop(struct oplog_entry *entry)
{
    entry->ref->entry = NULL;
    op_ref_drop(entry->ref);
    op_ref_drop(entry->send);
    entry->tile = NULL;
    entry->tiles = 0;
    pool_give_back(&entries[entry->op.kind], entry);
}

static void copy_lists(struct oplog_entry *entry)
{
    struct op *op = &entry->op;
    size_t epilogues = op->kind == OPKIND_gemm ? op->gemm.epilogues * sizeof *op->gemm.epilogue : 0;
    size_t afters = op->afters * sizeof *op->after;
    if (epilogues + afters > entry->lists_bytes) {
        entry->lists_bytes = 2 * (epilogues + afters);
        entry->lists = arena_alloc(entry->lists_bytes, 1);
    }
    if (epilogues)
        op->gemm.epilogue = memcpy(entry->lists, op->gemm.epilogue, epilogues);
    if (afters)
        op->after = memcpy((char *)entry->lists + epilogues, op->after, afters);
}

static struct oplog_entry *entry_new(const struct op *op)
{
    size_t bytes = op_bytes[op->kind];
    struct oplog_entry *entry = pool_reuse(&entries[op->kind], offsetof(struct oplog_entry, op) + bytes);
    struct op_ref *ref = entry->ref = op_ref_new();
    memcpy(&entry->op, op, bytes);
    copy_lists(entry);
    entry->send = NULL;
    ref->name = op->name;
    ref->pe = op->pe;
    ref->command = op->command;
    ref->kernel = op->kernel;
    ref->file = op->file;
    ref->line = op->line;
    ref->receivers = op->receivers;
    ref->holders += op->receivers;
    ref->entry = entry;
    return entry;
}

static void batch_settle(void);

static bool batch_is_of_now(void)
{
    return batch.at[0]->op.at_ps == now_ps;
}

static void append(struct oplog_entry *entry)
{
    if (batch.count && !batch_is_of_now())
        batch_settle();
    entry->op.at_ps = now_ps;
    entry->op.id = calls++;
    *array_add(&batch) = entry;
}

struct op_ref *oplog_call(const struct op *op)
{
    return entry_new(op)->ref;
}

struct op_ref *oplog_add(const struct op *op)
{
    struct oplog_entry *added = entry_new(op);
    append(added);
    if (op->pe != OP_OF_HOST)
        return added->ref;
    oplog_settle(true, OP_OF_HOST);
    return NULL;
}

static void message_received(const struct command *receive, const struct sender *sender)
{
    if (!receive->ask.record) {                         /* it is of a command stream */
        op_ref_drop(sender->record);
        return;
    }
    struct oplog_entry *entry = receive->ask.record->entry;
    entry->send = sender->record;                         /* with the hold that it had for this receiver */
    append(entry);
}

static void command_dropped(const struct command *command)
{
    op_ref_drop(command->ask.record);
}

struct observer oplog_observer = {
    .name = "op log",
    .command_dropped = command_dropped,
    .message_received = message_received,
};

/* ---- pass 1 */

/* A message gets its buffer when pass 1 comes to its send, and frees it when pass 1 comes to its last receive: in the data
 * pass, in the same order, the buffer holds the same message. */
static void issue_copy(struct oplog_entry *entry)
{
    struct copy *copy = &entry->op.copy;
    if (copy->to.memory == store_messages())
        copy->to.offset = entry->ref->message = allocator_message_take();
    if (entry->send)
        copy->from.offset = entry->send->message;
    contents_copy(&copy->to, &copy->from);
    if (entry->send && --entry->send->receivers == 0)
        allocator_message_free(copy->from.offset);
}

static void issue(struct oplog_entry *entry, bool is_stored)
{
    struct op *op = &entry->op;
    struct maker maker = {op->kernel, {op->name, op->file, op->line}};
    if (op->kind == OPKIND_gemm)
        contents_compute(&op->gemm.c, &maker, op->id);
    else if (op->kind == OPKIND_math)
        contents_compute(&op->math.to, &maker, op->id);
    else if (op->pe != OP_OF_HOST)
        issue_copy(entry);
    else if (is_stored) {
        fill_write(&op->fill);
        written_known(op->fill.tensor);
    } else
        contents_fill(&op->fill);
}

/* ---- data order */

static inline int data_order(const struct op *a, const struct op *b)
{
    if (a->pe != b->pe)
        return a->pe < b->pe ? -1 : 1;
    if (a->command != b->command)
        return a->command < b->command ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int in_data_order(const void *x, const void *y)
{
    return data_order(&(*(struct oplog_entry *const *)x)->op, &(*(struct oplog_entry *const *)y)->op);
}

/* Events fire in the order of PEs, so most batches come in order. */
static bool batch_is_sorted(void)
{
    for (size_t i = 1; i < batch.count; i++)
        if (data_order(&batch.at[i - 1]->op, &batch.at[i]->op) > 0)
            return false;
    return true;
}

static bool batch_has(int64_t pe)
{
    for (uint64_t i = 0; i < batch.count; i++)
        if (batch.at[i]->op.pe == pe)
            return true;
    return false;
}

static void record_services_of(const struct op_ref *op)
{
    log_services(&(struct services){op->id, op->start_ps, op->end_ps, op->node, op->services});
}

/* What the host writes before anything else of an interval goes into the store at once, and the data pass does not repeat
 * it. */
static void settle(struct oplog_entry *entry)
{
    bool is_initial = entry->op.pe == OP_OF_HOST && settled == interval;
    entry->op.id = entry->ref->id = settled++;
    entry->op.sent = entry->send ? 1 + entry->send->id : 0;
    issue(entry, oplog_on && is_initial);
    if (log_filed || (oplog_on && !is_initial))
        log_op(&entry->op);
    for (uint32_t i = 0; i < entry->tiles; i++) {
        entry->tile[i].id = entry->op.id;
        log_tile(&entry->tile[i]);
    }
    if (entry->ref->complete)
        record_services_of(entry->ref);
    if (is_initial) {
        log_begin_interval();
        interval = settled;
    }
    entry_drop(entry);
}

/* A run that ends in here, for lack of memory, has settled none of the rest. */
static void batch_settle(void)
{
    unsigned before = phase_enter(PHASE_oplog);
    uint64_t count = batch.count;
    if (!batch_is_sorted())
        qsort(batch.at, count, sizeof *batch.at, in_data_order);
    batch.count = 0;
    for (uint64_t i = 0; i < count; i++)
        settle(batch.at[i]);
    phase_leave(before);
}

void oplog_settle(bool all, int64_t pe)
{
    if (batch.count && (all || !batch_is_of_now() || batch_has(pe)))
        batch_settle();
}

/* ---- services */

static void service_ends(const struct token *token)
{
    const struct command *command = token->command;
    struct op_ref *op = command->ask.record;
    struct tile_stage stage = {.tile = token->tile.id, .stage = token->stage->index,
                               .node = pe_rank(command->pe, stage_node(token->stage->kind)),
                               .start_ps = token->started_ps, .end_ps = now_ps};
    if (!op)
        return;
    if (op->services++ == 0 || stage.start_ps < op->start_ps) {
        op->start_ps = stage.start_ps;
        op->node = stage.node;
    }
    op->end_ps = stage.end_ps;
    if (!command_is_composite(command->ask.kind))
        return;
    stage.id = op->id;
    if (op->id != NO_ID) {
        log_tile(&stage);
        return;
    }
    struct oplog_entry *entry = op->entry;
    entry->tile = arena_grow(entry->tile, entry->tiles, sizeof *entry->tile);
    entry->tile[entry->tiles++] = stage;
}

static void command_completed(const struct command *command)
{
    struct op_ref *op = command->ask.record;
    if (!op)
        return;
    if (op->services == 0)                              /* a receive that read nothing */
        op->start_ps = op->end_ps = now_ps;
    op->complete = true;
    if (op->id != NO_ID)
        record_services_of(op);
}

struct observer services_observer = {
    .name = "services in the op log",
    .needs_every_event = true,
    .command_completed = command_completed,
    .service_ends = service_ends,
};

/* ---- reservations */

static void reserved(enum resource_kind resource, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    (void)asked_ps;
    log_reservation(&(struct reservation){observed_cause, resource, number, bytes, start_ps, end_ps});
}

struct observer reservations_observer = {
    .name = "reservations in the op log",
    .needs_every_event = true,
    .reserved = reserved,
};

/* ---- reading */

uint64_t oplog_count(void)
{
    return replayed ? replayed_count : settled - interval;
}

void oplog_read(struct oplog_reader *reader)
{
    reader->log = replayed;
    if (replayed)
        return;
    reader->log = malloc(sizeof *reader->log);
    if (!reader->log)
        die("no memory to read the op log:");
    log_read(reader->log);
}

struct op *oplog_next(struct oplog_reader *reader)
{
    struct record record;
    while (reader->log && log_next(reader->log, &record))
        if (record.kind == RECORD_op)
            return record.op;
    if (reader->log != replayed)
        free(reader->log);
    reader->log = NULL;
    return NULL;
}

void oplog_restart(void)
{
    if (oplog_on)
        contents_begin_interval();
    log_begin_interval();
    interval = settled;
}

void oplog_replay(struct log_reader *log, uint64_t operations)
{
    replayed = log;
    replayed_count = operations;
}

void oplog_reset(void)
{
    log_reset();
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        pool_release(&entries[i]);
    batch.count = calls = settled = interval = 0;
}
