/* level.c: the operations of one level: gemms as blocks of grids, the others one by one.
 *
 * A level of little work is done by the caller's thread alone: to wake the others would take longer. */
#include "level.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gemm_groups.h"
#include "blas.h"
#include "exec.h"
#include "store/fill.h"
#include "machine/tiling.h"
#include "base/threads.h"
#include "machine/runs.h"
#include "common/diag.h"

struct difference exec_difference;

/* One block of a grid, or one operation. */
struct job {
    const struct op *op;                                /* NULL: */
    const struct grid *grid;
    uint64_t block;
};

struct jobs {
    struct job *job;
    uint64_t count, room;
};

static void *room(uint64_t count, size_t size)
{
    void *at = malloc((count + 1) * size);              /* none is not NULL */
    if (!at)
        die("no memory for %llu jobs of the data pass:", (unsigned long long)count);
    return at;
}

static void add(struct jobs *jobs, struct job job)
{
    if (jobs->count == jobs->room) {
        jobs->room = jobs->room ? 2 * jobs->room : 64;
        jobs->job = realloc(jobs->job, jobs->room * sizeof *jobs->job);
        if (!jobs->job)
            die("no memory for %llu jobs of the data pass:", (unsigned long long)jobs->room);
    }
    jobs->job[jobs->count++] = job;
}

/* ---- checks */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Nothing that comes after a difference is of interest. */
static bool is_checked(const struct op *op)
{
    if (!exec_debug)
        return false;
    pthread_mutex_lock(&mutex);
    bool first = !exec_difference.op || op->id < exec_difference.op->id;
    pthread_mutex_unlock(&mutex);
    return first;
}

static void found(const struct difference *difference)
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
    struct difference difference = recheck_gemm(op);
    found(&difference);
}

/* ---- work */

/* Kept from level to level: most are small and many. In huge pages where the system has them to give. */
static void *scratch_of(unsigned thread)
{
    enum { HUGE_PAGE = 2 << 20 };
    static void *scratch[POOL_MOST_THREADS];
    uint64_t bytes = (grid_scratch_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (!scratch[thread]) {
        scratch[thread] = aligned_alloc(HUGE_PAGE, bytes);
        if (!scratch[thread])
            die("no memory for the blocks of a gemm:");
        madvise(scratch[thread], bytes, MADV_HUGEPAGE);
    }
    return scratch[thread];
}

/* An op may overwrite its operands, so what it should give is found first. */
static void do_math(const struct op *op)
{
    double *expected = is_checked(op) ? recheck_math_expect(&op->math) : NULL;
    exec_math(&op->math);
    if (!expected)
        return;
    struct difference difference = recheck_math(op, expected);
    found(&difference);
}

static void do_copy(const struct copy *copy)
{
    enum { WORTH_POPULATING = 64 << 10 };
    uint64_t span = view_span(&copy->to);
    if (span >= WORTH_POPULATING && view_is_dense(&copy->to))
        store_populate(copy->to.memory, copy->to.offset, span);
    view_copy(IMAGE_BASE, &copy->to, &copy->from);
}

static void do_job(uint64_t i, unsigned thread, void *arg)
{
    const struct job *job = &((const struct jobs *)arg)->job[i];
    const struct op *op = job->op;
    if (!op)
        grid_block(job->grid, job->block, scratch_of(thread));
    else if (op->kind == OPKIND_gemm)
        exec_gemm(&op->gemm, scratch_of(thread));
    else if (op->kind == OPKIND_math)
        do_math(op);
    else if (op->pe == OP_OF_HOST)
        fill_write(&op->fill, IMAGE_BASE);
    else
        do_copy(&op->copy);
}

/* Roughly, in nanoseconds. */
static uint64_t effort(const struct op *op)
{
    enum { PRODUCTS = 32 };                             /* per nanosecond */
    if (op->kind == OPKIND_gemm)
        return op->gemm.c.shape[0] * op->gemm.c.shape[1] * op->gemm.a.shape[1] / PRODUCTS;
    if (op->kind == OPKIND_math)
        return view_elements(op->math.operands ? &op->math.operand[0] : &op->math.to);
    return op->pe == OP_OF_HOST ? 0 : view_elements(&op->copy.to) / 8;
}

static void run(const struct op *const *ops, uint32_t count, struct jobs *jobs)
{
    enum { WORTH_WAKING = 50000 };
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count && sum < WORTH_WAKING; i++)
        sum += effort(ops[i]);
    if (sum >= WORTH_WAKING || exec_debug)
        pool_run(jobs->count, do_job, jobs);
    else
        for (uint64_t i = 0; i < jobs->count; i++)
            do_job(i, 0, jobs);
    if (exec_debug)
        pool_run(count, check_gemm, (void *)ops);
}

/* ---- gemms */

/* Whether it reads what it writes. Its blocks are done in their order then. */
static bool in_place(const struct gemm *g)
{
    bool found = view_overlap(&g->a, &g->c) || view_overlap(&g->b, &g->c);
    for (uint32_t i = 0; i < g->epilogues; i++)
        found |= g->epilogue[i].has_operand && view_overlap(&g->epilogue[i].operand, &g->c);
    return found;
}

static void add_grids(struct jobs *jobs, const struct grid *grids, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t block = 0; block < grid_blocks(&grids[i]); block++)
            add(jobs, (struct job){.grid = &grids[i], .block = block});
}

/* Those that can only be grids by themselves come behind the others, in `alone`. */
void level_run(const struct op *const *ops, uint32_t count)
{
    struct jobs jobs = {0};
    const struct gemm **gemms = room(count, sizeof *gemms), **sorted = room(count, sizeof *sorted);
    struct grid *grids = room(count, sizeof *grids);
    uint64_t together = 0, alone = count;
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i]->kind != OPKIND_gemm || in_place(&ops[i]->gemm))
            add(&jobs, (struct job){.op = ops[i]});
        else if (gemm_is_alone(&ops[i]->gemm))
            gemms[--alone] = &ops[i]->gemm;
        else
            gemms[together++] = &ops[i]->gemm;
        if (ops[i]->kind == OPKIND_gemm)
            blas_open();
    }
    uint64_t made = together ? batch(gemms, together, sorted, grids) : 0;
    for (uint64_t i = alone; i < count; i++)
        grids[made++] = (struct grid){1, 1, &gemms[i]};
    add_grids(&jobs, grids, made);
    run(ops, count, &jobs);
    free(jobs.job), free(gemms), free(sorted), free(grids);
}
