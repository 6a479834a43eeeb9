/* exec.c: the data pass: windows of operations in data order, in each of them one topological level after the other.
 *
 * Operations of one level are independent (schedule.h). Which of them are done at once, and how sums are divided,
 * follows from the records alone, so that no bit depends on the number of threads. */
#include "exec.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/progress.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "blas.h"
#include "common/array.h"
#include "common/fail.h"
#include "gemm.h"
#include "gemm_groups.h"
#include "machine/runs.h"
#include "machine/tiling.h"
#include "math.h"
#include "schedule.h"
#include "store/fill.h"
#include "store/written.h"

struct exec_stats exec_stats;
const struct exec_check *exec_check;
struct difference exec_difference;
struct op *(*exec_next)(struct oplog_reader *reader) = oplog_next;
void (*exec_begins)(void);

/* ---- checks */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Operations after a difference are not checked. */
static bool is_checked(const struct op *op)
{
    if (!exec_check)
        return false;
    pthread_mutex_lock(&mutex);
    bool first = !exec_difference.op || op->id < exec_difference.op->id;
    pthread_mutex_unlock(&mutex);
    return first;
}

static void keep_first(const struct difference *difference)
{
    if (!difference->op)
        return;
    pthread_mutex_lock(&mutex);
    if (!exec_difference.op || difference->op->id < exec_difference.op->id)
        exec_difference = *difference;
    pthread_mutex_unlock(&mutex);
}

static void check_gemm(uint64_t i, unsigned thread, void *ops)
{
    const struct op *op = ((const struct op **)ops)[i];
    (void)thread;
    if (op->kind != OPKIND_gemm || !is_checked(op))
        return;
    struct difference difference = exec_check->gemm(op);
    keep_first(&difference);
}

/* ---- tasks */

/* One block of a grid of gemms, or one operation. */
struct task {
    const struct op *op;                                /* NULL: a block of a grid */
    const struct gemm_grid *grid;
    uint64_t block;
};

struct tasks ARRAY(struct task);

/* A thread's scratch for gemms, kept from level to level, since most levels are small. In huge pages if the system has
 * them. */
static void *scratch_of(unsigned thread)
{
    enum { HUGE_PAGE = 2 << 20 };
    static void *scratch[THREADS_MOST];
    uint64_t bytes = (gemm_scratch_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (!scratch[thread]) {
        scratch[thread] = aligned_alloc(HUGE_PAGE, bytes);
        if (!scratch[thread])
            die("no memory for the blocks of a gemm:");
        madvise(scratch[thread], bytes, MADV_HUGEPAGE);
    }
    return scratch[thread];
}

static void do_math(const struct op *op)
{
    void *expected = is_checked(op) ? exec_check->expect_math(&op->math) : NULL;
    math_run(&op->math);
    if (!expected)
        return;
    struct difference difference = exec_check->math(op, expected);
    keep_first(&difference);
}

/* Makes the pages of a result at once: that is faster than one by one, at their first touch. */
static void populate(const struct view *to, uint64_t least_bytes)
{
    uint64_t span = view_span(to);
    if (span >= least_bytes && view_is_dense(to))
        store_populate(to->memory, to->offset, span);
}

static void do_copy(const struct copy *copy)
{
    populate(&copy->to, 64 << 10);
    view_copy(&copy->to, &copy->from);
}

/* A gemm that shares no operand with others often writes pages that nothing has touched before. */
static void do_block(const struct task *task, void *scratch)
{
    const struct gemm_grid *grid = task->grid;
    if (task->block == 0 && grid->rows == 1 && grid->columns == 1)
        populate(&grid->gemm[0]->c, 16 << 10);
    gemm_block(grid, task->block, scratch);
}

/* The data pass that is under way: when it began, 0: none is; operations before this level, and of it. */
static struct {
    double began;
    uint64_t done, level;
} pass;

/* A level may take long: its progress is shown, and it can be ended, after each task of the caller's thread. */
static void show_progress(uint64_t tasks_done, uint64_t tasks)
{
    progress("data pass", pass.done + (uint64_t)((double)pass.level * (double)tasks_done / (double)tasks), oplog_count());
}

static void do_task(uint64_t i, unsigned thread, void *tasks)
{
    const struct task *task = &((const struct tasks *)tasks)->at[i];
    const struct op *op = task->op;
    if (!op)
        do_block(task, scratch_of(thread));
    else if (op->kind == OPKIND_gemm)
        gemm_run(&op->gemm, scratch_of(thread));
    else if (op->kind == OPKIND_math)
        do_math(op);
    else if (op->pe == OP_OF_HOST)
        fill_write(&op->fill);
    else
        do_copy(&op->copy);
}

static void do_shared_task(uint64_t i, unsigned thread, void *tasks)
{
    do_task(i, thread, tasks);
    if (thread == 0)
        show_progress(i, ((const struct tasks *)tasks)->count);
}

/* In nanoseconds, roughly. */
static uint64_t effort(const struct op *op)
{
    enum { PRODUCTS = 32 };                             /* per nanosecond */
    if (op->kind == OPKIND_gemm)
        return op->gemm.c.shape[0] * op->gemm.c.shape[1] * op->gemm.a.shape[1] / PRODUCTS;
    if (op->kind == OPKIND_math)
        return view_elements(op->math.axis != NO_AXIS ? &op->math.operand[0] : &op->math.to);
    return op->pe == OP_OF_HOST ? 0 : view_elements(&op->copy.to) / 8;
}

/* A level of little work is done by the caller's thread alone: waking the others would take longer. */
static void run_tasks(const struct op *const *ops, uint32_t count, struct tasks *tasks)
{
    enum { WORTH_WAKING = 50000 };
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count && sum < WORTH_WAKING; i++)
        sum += effort(ops[i]);
    if (sum >= WORTH_WAKING || exec_check)
        threads_run(tasks->count, do_shared_task, tasks);
    else
        for (uint64_t i = 0; i < tasks->count; i++)
            do_task(i, 0, tasks);
    if (exec_check)
        threads_run(count, check_gemm, (void *)ops);
}

/* ---- a level */

/* Whether a gemm reads what it writes. Its blocks have to be done in their order then. */
static bool is_in_place(const struct gemm *g)
{
    bool found = view_overlap(&g->a, &g->c) || view_overlap(&g->b, &g->c);
    for (uint32_t i = 0; i < g->epilogues; i++)
        found |= g->epilogue[i].has_operand && view_overlap(&g->epilogue[i].operand, &g->c);
    return found;
}

static void *array_of(uint64_t count, size_t size)
{
    void *at = malloc((count + 1) * size);              /* of 0 bytes malloc may return NULL */
    if (!at)
        die("no memory for %llu operations of the data pass:", (unsigned long long)count);
    return at;
}

/* Does operations that are independent of one another, in data order, all of whose views are within reach. Gemms that
 * have to be grids by themselves are collected from the end of `gemms`, the others from its start. */
static void run_level(const struct op *const *ops, uint32_t count)
{
    struct tasks tasks = {0};
    const struct gemm **gemms = array_of(count, sizeof *gemms), **sorted = array_of(count, sizeof *sorted);
    struct gemm_grid *grids = array_of(count, sizeof *grids);
    uint64_t together = 0, alone = count;
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i]->kind != OPKIND_gemm || is_in_place(&ops[i]->gemm))
            *array_add(&tasks) = (struct task){.op = ops[i]};
        else if (gemm_has_k_tile_epilogue(&ops[i]->gemm))
            gemms[--alone] = &ops[i]->gemm;
        else
            gemms[together++] = &ops[i]->gemm;
        if (ops[i]->kind == OPKIND_gemm)
            blas_open();
    }
    uint64_t made = together ? gemm_groups(gemms, together, sorted, grids) : 0;
    for (uint64_t i = alone; i < count; i++)
        grids[made++] = (struct gemm_grid){1, 1, &gemms[i], false};
    for (uint64_t i = 0; i < made; i++)
        for (uint64_t block = 0; block < gemm_blocks(&grids[i]); block++)
            *array_add(&tasks) = (struct task){.grid = &grids[i], .block = block};
    run_tasks(ops, count, &tasks);
    array_free(&tasks);
    free(gemms), free(sorted), free(grids);
}

/* ---- a window */

/* Its operations in data order with their levels; then sorted by level: level l begins at start[l], and ends where the
 * next one begins. */
static struct {
    struct op *op[WINDOW_OPS];
    uint16_t level[WINDOW_OPS];
    const struct op *sorted[WINDOW_OPS];
    uint32_t start[WINDOW_OPS + 2];
} window;

static void reach(const struct view *view, bool writes, void *arg)
{
    (void)arg;
    view_reach(view);
    if (writes)
        written_add(view);
}

/* Returns the number of operations. */
static uint32_t window_read(struct oplog_reader *reader)
{
    uint32_t count = 0;
    schedule_begin();
    while (!schedule_is_full() && (window.op[count] = exec_next(reader))) {
        op_each_view(window.op[count], reach, NULL);
        if (op_is_fill(window.op[count]))
            written_known(window.op[count]->fill.tensor);
        window.level[count] = schedule_level(window.op[count]);
        exec_stats.computes += window.op[count]->kind != OPKIND_memory;
        count++;
    }
    return count;
}

/* Sorts by counting. Returns the highest level. */
static uint32_t window_sort(uint32_t count)
{
    uint32_t levels = 0, *start = window.start;
    memset(start, 0, sizeof window.start);
    for (uint32_t i = 0; i < count; i++) {
        start[window.level[i]]++;
        levels = window.level[i] > levels ? window.level[i] : levels;
    }
    for (uint32_t i = 1; i <= levels + 1; i++)
        start[i] += start[i - 1];
    for (uint32_t i = count; i-- > 0;)
        window.sorted[--start[window.level[i]]] = window.op[i];
    return levels;
}

static void window_run(uint32_t count, uint64_t done)
{
    uint32_t levels = window_sort(count), *start = window.start;
    for (uint32_t i = 1; i <= levels; i++) {
        pass.done = done + start[i];
        pass.level = start[i + 1] - start[i];
        run_level(window.sorted + start[i], start[i + 1] - start[i]);
        show_progress(1, 1);
    }
    for (uint32_t i = 0; i < count; i++)
        if (exec_difference.op != window.op[i])         /* the summary prints it */
            free(window.op[i]);
}

void exec_data_pass(void)
{
    oplog_settle(true, OP_OF_HOST);
    if (exec_begins && oplog_count())
        exec_begins();
    unsigned before = phase_enter(PHASE_data);
    pass.began = clock_seconds();
    struct oplog_reader reader;
    oplog_read(&reader);
    for (uint64_t done = 0, count; (count = window_read(&reader)); done += count)
        window_run((uint32_t)count, done);
    progress_end();
    exec_stats.ops += oplog_count();
    oplog_restart();
    exec_left();
    phase_leave(before);
}

void exec_left(void)
{
    if (pass.began > 0)
        exec_stats.seconds += clock_seconds() - pass.began;
    pass.began = 0;
}

void datapass_reset(void)
{
    exec_stats = (struct exec_stats){0};
    free((void *)exec_difference.op);
    exec_difference = (struct difference){0};
}
