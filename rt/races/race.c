/* race.c: the race check: the accesses of operations to the bytes of each memory, as long as they can matter.
 *
 * Each access is compared with those that overlap it. An older one that it covers and that surely ended before is
 * forgotten, if it reads or if the new one writes: whoever would race with the older one races with the new one as well,
 * or comes after both. When no kernel runs, no access matters any more. */
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "common/arena.h"
#include "common/fail.h"
#include "common/interval_map.h"
#include "common/pool.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "sim/loop.h"

struct access {
    struct interval interval;                           /* from the first byte of the view to its last */
    struct view view;
    struct hb_op *op;
    bool writes;
    struct access *next;                                /* to be forgotten */
};

bool races_on;
const struct race *races;

static struct {
    bool given;                                         /* by the option */
    uint64_t operations;                                /* that are compared at most; 0: off */
} asked;

static struct {
    struct race **last;                                 /* where the next race is linked */
    uint32_t found;
    uint64_t compared, others;                          /* operations of kernels; others: after the check had ended */
    uint32_t running;                                   /* PEs with a launch that has not ended */
    struct interval_map *accesses;                      /* by memory */
    struct pool pool;
} check;

/* ---- accesses */

static struct interval_map *accesses_of(uint32_t memory)
{
    if (!check.accesses)
        check.accesses = arena_alloc(memory_count(), sizeof *check.accesses);
    return &check.accesses[memory];
}

static void access_free(struct access *access)
{
    hb_drop(access->op);
    pool_give_back(&check.pool, access);
}

static void tree_free(struct interval *tree)
{
    if (!tree)
        return;
    tree_free(tree->left);
    tree_free(tree->right);
    access_free((struct access *)tree);
}

/* Whether an access, dense or not, has every byte of another one, as far as that is seen without walking over their views. */
static bool covers(const struct access *a, bool dense, const struct access *b)
{
    bool same = a->interval.begin == b->interval.begin && a->view.dtype == b->view.dtype
                && !memcmp(a->view.shape, b->view.shape, sizeof a->view.shape)
                && !memcmp(a->view.stride, b->view.stride, sizeof a->view.stride);
    return same || (dense && a->interval.begin <= b->interval.begin
                    && a->interval.end >= b->interval.end);
}

/* ---- races */

static bool same_lines(const struct race *race, const struct op_ref *a, const struct op_ref *b)
{
    const struct op_ref *x = race->side[0].op, *y = race->side[1].op;
    return (x->line == a->line && y->line == b->line && !strcmp(x->file, a->file) && !strcmp(y->file, b->file))
           || (x->line == b->line && y->line == a->line && !strcmp(x->file, b->file) && !strcmp(y->file, a->file));
}

static struct race_side side_of(const struct access *access)
{
    return (struct race_side){op_ref_hold(access->op->op), access->op->called_ps, access->writes};
}

/* Of each pair of lines the first race is kept. */
static void race_add(const struct access *a, const struct access *b, uint64_t first, uint64_t end)
{
    for (const struct race *race = races; race; race = race->next)
        if (same_lines(race, a->op->op, b->op->op))
            return;
    struct race *race = arena_alloc(1, sizeof *race);
    *race = (struct race){{side_of(a), side_of(b)}, a->view.memory, first, end, NULL};
    if (races)
        *check.last = race;
    else
        races = race;
    check.last = &race->next;
    check.found++;
}

struct comparison {
    struct access *made, *forgotten;
    bool dense;                                         /* the view of the one that is made */
};

/* Compares the new access with one that overlaps it. */
static void compare(struct interval *interval, void *arg)
{
    struct comparison *comparison = arg;
    struct access *other = (struct access *)interval, *made = comparison->made;
    bool conflict = made->writes || other->writes;
    uint64_t first, end;
    if (other->op == made->op || (!conflict && other->op->pe != made->op->pe))
        return;
    if (happens_before(other->op, made->op)) {
        if ((made->writes || !other->writes) && covers(made, comparison->dense, other)) {
            other->next = comparison->forgotten;
            comparison->forgotten = other;
        }
    } else if (conflict && views_meet(&other->view, &made->view, &first, &end)) {
        race_add(other, made, first, end);
    }
}

static void access_add(const struct view *view, bool writes, void *arg)
{
    if (view->memory >= memory_count() || view_elements(view) == 0)
        return;                                         /* messages, and what else no kernel can name */
    struct access *made = pool_take(&check.pool, sizeof *made);
    *made = (struct access){.view = *view, .op = hb_hold(arg), .writes = writes,
                            .interval = {.begin = view->offset, .end = view->offset + view_span(view)}};
    struct comparison comparison = {.made = made, .dense = view_is_dense(view)};
    struct interval_map *accesses = accesses_of(view->memory);
    interval_each(accesses, made->interval.begin, made->interval.end, compare, &comparison);
    for (struct access *access = comparison.forgotten, *next; access; access = next) {
        next = access->next;
        interval_remove(accesses, &access->interval);
        access_free(access);
    }
    interval_add(accesses, &made->interval);
}

/* ---- on and off */

void races_option(const char *text)
{
    char *end = "";
    asked.given = true;
    errno = 0;
    asked.operations = !strcmp(text, "on") ? UINT64_MAX : !strcmp(text, "off") ? 0 : strtoull(text, &end, 10);
    if (*end || errno || !strchr("0123456789o", *text) || !*text)
        usage_error("--races %s: on, off, or a number of operations is needed", text);
}

void races_begin(bool data)
{
    if (!asked.given)
        asked.operations = data ? RACES_OPERATIONS : 0;
    races_on = asked.operations > 0;
    observer_watch(&race_observer, races_on);
}

static void accesses_forget(void)
{
    for (uint32_t memory = 0; check.accesses && memory < memory_count(); memory++) {
        tree_free(check.accesses[memory].root);
        check.accesses[memory].root = NULL;
    }
}

static void stop(void)
{
    races_on = false;
    accesses_forget();
    hb_stop();
}

/* ---- what kernels and the host do */

void race_called(uint32_t pe, uint32_t number, struct op_ref *ref, const struct op *op, bool receives)
{
    if (check.compared == asked.operations) {
        stop();
        race_not_called();
        return;
    }
    check.compared++;
    struct hb_op *called = hb_called(pe, number, ref);
    if (receives) {
        called->writes = op->copy.to;
        return;
    }
    op_each_view(op, access_add, called);
    if (op->kind == OPKIND_memory && op->copy.to.memory == store_messages())
        hb_sends(called, op->receivers);
}

void race_not_called(void)
{
    check.others++;
}

/* The receive wrote its buffer at some time after its call, and after all that comes before its message. */
static void message_received(const struct command *receive, const struct sender *sender)
{
    if (!races_on)
        return;
    struct hb_op *op = receive->ask.record->hb;
    hb_received(op, sender->record->hb);
    access_add(&op->writes, true, op);
    hb_compared(op);
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

struct vector_clock *race_launched(uint32_t pes)
{
    if (check.running == 0)
        accesses_forget();
    check.running += pes;
    return hb_known_to_host();
}

void race_kernel_ended(uint32_t pe)
{
    hb_kernel_ended(pe);
    check.running--;
}

struct search {
    struct view byte;
    const struct hb_op *last;
};

static void find_writer(struct interval *interval, void *arg)
{
    struct search *search = arg;
    const struct access *access = (struct access *)interval;
    if (access->writes && view_overlap(&access->view, &search->byte)
        && (!search->last || access->op->called_ps >= search->last->called_ps))
        search->last = access->op;
}

struct op_ref *race_writer(uint32_t memory, uint64_t offset)
{
    struct search search = {view_bytes(memory, offset, 1), NULL};
    interval_each(accesses_of(memory), offset, offset + 1, find_writer, &search);
    return search.last ? search.last->op : NULL;
}

uint32_t races_found(void)
{
    return check.found;
}

void races_reset(void)
{
    races_on = false;
    hb_reset();
    pool_release(&check.pool);
    memset(&check, 0, sizeof check);
    races = NULL;
}

/* ---- the report */

static void print_side(FILE *out, const struct race_side *side)
{
    const struct op_ref *op = side->op;
    fprintf(out, "               %s by %s, command %" PRIu32 " of kernel %s on %s, called at %" PRIu64 " ps",
            side->writes ? "written" : "read", op->name, op->command, op->kernel, pe_name(&kb_pe[op->pe]), side->called_ps);
    if (op->end_ps)
        fprintf(out, ", complete at %" PRIu64 " ps", op->end_ps);
    fprintf(out, ", at %s:%" PRIu32 "\n", op->file, op->line);
}

static bool is_incomplete(void)
{
    return check.compared && check.others;
}

void races_print(FILE *out)
{
    for (const struct race *race = races; race; race = race->next) {
        fprintf(out, "RACE         %" PRIu64 " bytes from %s on are used in no order:\n", race->end - race->first,
                address_name(memory_address(race->memory, race->first)));
        print_side(out, &race->side[0]);
        print_side(out, &race->side[1]);
    }
    if (is_incomplete())
        fprintf(out, "races        not looked for after the first %" PRIu64 " of %" PRIu64 " operations; in all: "
                "--races on\n", check.compared, check.compared + check.others);
}

static void write_side(struct json *json, const struct race_side *side)
{
    const struct op_ref *op = side->op;
    json_object(json, NULL);
    json_string(json, "op", op->name);
    json_string(json, "access", side->writes ? "write" : "read");
    json_string(json, "pe", pe_name(&kb_pe[op->pe]));
    json_string(json, "kernel", op->kernel);
    json_u64(json, "n", op->command);
    json_string(json, "file", op->file);
    json_u64(json, "line", op->line);
    json_u64(json, "called_ps", side->called_ps);
    if (op->end_ps)
        json_u64(json, "complete_ps", op->end_ps);
    json_object_end(json);
}

void races_write(struct json *json)
{
    if (!races_on && !is_incomplete())
        return;
    json_object(json, "race_check");
    json_u64(json, "operations", check.compared + check.others);
    json_u64(json, "compared", check.compared);
    json_object_end(json);
    json_array(json, "races");
    for (const struct race *race = races; race; race = race->next) {
        json_object(json, NULL);
        json_string(json, "first", address_name(memory_address(race->memory, race->first)));
        json_u64(json, "bytes", race->end - race->first);
        json_array(json, "ops");
        write_side(json, &race->side[0]);
        write_side(json, &race->side[1]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}
