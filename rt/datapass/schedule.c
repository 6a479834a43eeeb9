/* schedule.c: the levels of the operations of a window. */
#include "schedule.h"

#include <string.h>

#include "base/hash.h"
#include "spans.h"

/* A view of more runs counts as all bytes from its first to its last. */
enum { MOST_RUNS = 4096, MOST_BYTES = 32 << 20 };

static uint16_t levels[DEPEND_MOST_OPS];                /* of the window's operations */
static uint64_t commands[DEPEND_MOST_OPS];              /* command_key of each */
static uint32_t count;
static uint16_t top, floor_level;                       /* the highest so far; whatever comes is above the floor */

/* ---- what is named: filled when somebody names a command */

enum { SLOTS_LOG2 = 16, SLOTS = 1 << SLOTS_LOG2 };      /* twice as many as operations */

/* By command: 1 + the position of its operation of the highest level; 0: free. */
static uint16_t slots[SLOTS];
static uint32_t filled;                                 /* operations that are there */

static void table_clear(void)
{
    if (filled)
        memset(slots, 0, sizeof slots);
    filled = 0;
}

static uint16_t *slot_of(uint64_t command)
{
    uint32_t at = hash_bits(command, SLOTS_LOG2);
    while (slots[at] && commands[slots[at] - 1] != command)
        at = (at + 1) % SLOTS;
    return &slots[at];
}

static void table_fill(void)
{
    for (; filled < count; filled++) {
        uint16_t *slot = slot_of(commands[filled]);
        if (!*slot || levels[*slot - 1] < levels[filled])
            *slot = (uint16_t)(filled + 1);
    }
}

/* ---- a window */

void depend_begin(void)
{
    spans_clear();
    table_clear();
    count = 0;
    top = floor_level = 0;
}

bool depend_is_full(void)
{
    return count == DEPEND_MOST_OPS || spans_bytes() > MOST_BYTES;
}

/* ---- the bytes of a view */

struct visit {
    const struct view *view;
    bool writes;
    uint16_t level;                                     /* that it has, or that it needs at least so far */
};

static void ask_run(uint64_t offset, uint64_t bytes, void *arg)
{
    struct visit *visit = arg;
    struct levels found = spans_ask(visit->view->memory, offset, offset + bytes);
    uint16_t before = visit->writes ? found.accessed : found.written;
    if (visit->level <= before)
        visit->level = before + 1;
}

static void raise_run(uint64_t offset, uint64_t bytes, void *arg)
{
    struct visit *visit = arg;
    struct levels to = {.written = visit->writes ? visit->level : 0, .accessed = visit->level};
    spans_raise(visit->view->memory, offset, offset + bytes, to);
}

/* Bytes that a view has again and again count once. */
static void each_run(struct visit *visit, void (*f)(uint64_t offset, uint64_t bytes, void *arg))
{
    struct view once = *visit->view;
    uint64_t run = 1, elements;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        once.shape[axis] = once.stride[axis] == 0 && once.shape[axis] > 1 ? 1 : once.shape[axis];
    for (unsigned axis = VIEW_RANK; axis-- > 0 && (once.stride[axis] == run || once.shape[axis] == 1);)
        run *= once.shape[axis];
    elements = view_elements(&once);
    if (elements > MOST_RUNS * run)
        f(once.offset, view_span(&once), visit);
    else if (elements > 0)
        view_each_run(&once, f, visit);
}

static void ask(const struct view *view, bool writes, void *arg)
{
    uint16_t *level = arg;
    struct visit visit = {view, writes, *level};
    each_run(&visit, ask_run);
    *level = visit.level;
}

static void put(const struct view *view, bool writes, void *arg)
{
    struct visit visit = {view, writes, *(uint16_t *)arg};
    each_run(&visit, raise_run);
}

/* ---- levels */

/* Whoever is not in the window was done before it, or is a receive that completes behind the operation. */
static uint16_t above_named(const struct op *op, uint16_t level)
{
    if (op->afters)
        table_fill();
    for (uint32_t i = 0; i < op->afters; i++) {
        uint16_t named = *slot_of(command_key(op->serial, op->after[i]));
        if (named && level <= levels[named - 1])
            level = levels[named - 1] + 1;
    }
    return level;
}

uint16_t depend_level(const struct op *op)
{
    uint16_t level = floor_level + 1;
    if (op->kind == OPKIND_memory && op->pe == OP_OF_HOST) {
        level = floor_level = top + 1;                  /* a fill is between all before and all after it */
    } else {
        level = above_named(op, level);
        op_each_view(op, ask, &level);
        op_each_view(op, put, &level);
    }
    top = level > top ? level : top;
    commands[count] = command_key(op->serial, op->command);
    return levels[count++] = level;
}
