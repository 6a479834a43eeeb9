/* exec.c: the data pass: windows of operations in data order, in each the levels one after another.
 *
 * Operations of one level depend on one another in no way (depend.h). What of a level is done at once, and how sums are
 * taken apart, follows from the records alone, so that no bit depends on the number of threads. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schedule.h"
#include "level.h"
#include "base/progress.h"
#include "base/stopwatch.h"

struct exec_stats exec_stats;
bool exec_debug;

/* A window, and its operations by level, then in data order: level l begins at start[l], the next one at its end. */
static struct op *window[DEPEND_MOST_OPS];
static uint16_t level[DEPEND_MOST_OPS];
static const struct op *sorted[DEPEND_MOST_OPS];
static uint32_t start[DEPEND_MOST_OPS + 2];

static void reach(const struct view *view, bool writes, void *arg)
{
    (void)writes, (void)arg;
    view_reach(IMAGE_BASE, view);
}

/* How many there are; they are within reach, and have their levels. */
static uint32_t read_window(struct oplog_reader *reader)
{
    uint32_t count = 0;
    depend_begin();
    while (!depend_is_full() && (window[count] = oplog_next(reader))) {
        op_each_view(window[count], reach, NULL);
        level[count] = depend_level(window[count]);
        count++;
    }
    return count;
}

/* The highest level. */
static uint32_t sort_window(uint32_t count)
{
    uint32_t levels = 0;
    memset(start, 0, sizeof start);
    for (uint32_t i = 0; i < count; i++) {
        start[level[i]]++;
        levels = level[i] > levels ? level[i] : levels;
    }
    for (uint32_t i = 1; i <= levels + 1; i++)
        start[i] += start[i - 1];
    for (uint32_t i = count; i-- > 0;)
        sorted[--start[level[i]]] = window[i];
    return levels;
}

static void run_window(uint32_t count, uint64_t done)
{
    uint32_t levels = sort_window(count);
    for (uint32_t i = 1; i <= levels; i++) {
        level_run(sorted + start[i], start[i + 1] - start[i]);
        progress("data pass", done + start[i + 1], oplog_count());
    }
    for (uint32_t i = 0; i < count; i++)
        if (exec_difference.op != window[i])            /* which names it */
            free(window[i]);
}

void exec_data_pass(void)
{
    unsigned before = phase_enter(PHASE_data);
    double began = clock_seconds();
    oplog_settle(true, OP_OF_HOST);
    struct oplog_reader reader;
    oplog_read(&reader);
    for (uint64_t done = 0, count; (count = read_window(&reader)); done += count)
        run_window((uint32_t)count, done);
    progress_end();
    exec_stats.ops += oplog_count();
    oplog_restart();
    exec_stats.seconds += clock_seconds() - began;
    phase_leave(before);
}

void datapass_reset(void)
{
    exec_stats = (struct exec_stats){0};
    free((void *)exec_difference.op);
    exec_difference = (struct difference){0};
}
