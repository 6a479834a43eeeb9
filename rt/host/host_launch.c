/* host_launch.c: launches of kernels by a bench, and what becomes of the bench when one does not end well. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "machine/emitted.h"
#include "host_program.h"
#include "launch/launch.h"
#include "common/fail.h"
#include "machine/pe.h"
#include "races/race.h"
#include "common/arena.h"

/* ---- what is asked */

/* The number of a part that has a PE, + 1, for the launch that is being checked. */
static uint32_t *part_of_pe;

/* Every PE exists, is this program's, and is in one part. */
static void check_targets(const struct kb_part *parts, uint32_t part, const char *file, uint32_t line)
{
    const struct kb_pes *pes = &parts[part].pes;
    const char *name = parts[part].kernel->name;
    if (pes->count == 0)
        misuse(file, line, "kb_launch: kernel %s is launched on no PE", name);
    program_check_pes("kb_launch", *pes, file, line);
    for (uint32_t i = 0; i < pes->count; i++) {
        uint32_t other = part_of_pe[pes->pe[i]];
        if (other)
            misuse(file, line, "kb_launch: %s is to run both kernel %s and kernel %s", pe_name(&kb_pe[pes->pe[i]]),
                   parts[other - 1].kernel->name, name);
        part_of_pe[pes->pe[i]] = part + 1;
    }
}

/* A PE runs one kernel at a time. */
static void check_free(const struct kb_part *parts, const char *file, uint32_t line)
{
    for (const struct launch *launch = launches; launch; launch = launch->next)
        for (uint32_t i = 0; launch->status == LAUNCH_RUNNING && i < launch->count; i++) {
            const struct pe *pe = launch->runs[i].tl.pe;
            uint32_t part = part_of_pe[pe_number(pe)];
            if (!launch->runs[i].ended && part)
                misuse(file, line, "kb_launch: %s still runs kernel %s, launched at %s:%u, and cannot run %s yet",
                       pe_name(pe), launch->program, launch->file, (unsigned)launch->line,
                       parts[part - 1].kernel->name);
        }
}

static void check_parts(const struct kb_part *parts, uint32_t count, const char *file, uint32_t line)
{
    host_only("kb_launch", file, line);
    if (!part_of_pe)
        part_of_pe = arena_alloc(pe_count(), sizeof *part_of_pe);
    memset(part_of_pe, 0, pe_count() * sizeof *part_of_pe);
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i].arg && parts[i].kernel->arg_bytes)
            misuse(file, line, "kb_launch: kernel %s is launched without its arguments", parts[i].kernel->name);
        check_targets(parts, i, file, line);
    }
    check_free(parts, file, line);
}

static struct launch_part part_made(const struct kb_part *part)
{
    const struct clocks *known = races_on ? race_launched(part->pes.count) : NULL;
    struct kernel_start *program = arena_alloc(1, sizeof *program);
    void *arg = arena_alloc(1, part->kernel->arg_bytes);
    if (part->kernel->arg_bytes)
        memcpy(arg, part->arg, part->kernel->arg_bytes);
    *program = (struct kernel_start){part->kernel, arg, known};
    return (struct launch_part){part->kernel->name, device_run, program, part->pes.pe, part->pes.count};
}

/* ---- submission and the wait for its end */

kb_future kb_launch_at(const struct kb_part *asked, struct kb_options options, const char *file, uint32_t line)
{
    uint32_t count = 0;
    while (asked[count].kernel)
        count++;
    check_parts(asked, count, file, line);
    if (options.on_failure > KB_FAIL_FAST)
        misuse(file, line, "kb_launch: on_failure number %u is none", (unsigned)options.on_failure);
    struct launch_part *parts = arena_alloc(count, sizeof *parts);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = part_made(&asked[i]);
    if (launch_bad()) {
        launch_skip(parts, count);
        program_ends("kb_launch: refused", launch_outcome(launch_bad()), file, line);
    }
    struct launch_options made = {.fail_fast = options.on_failure == KB_FAIL_FAST, .timed = options.timeout_ns,
                                  .file = file, .line = line};
    if (__builtin_mul_overflow(options.timeout_ns, UINT64_C(1000), &made.timeout_ps))
        misuse(file, line, "kb_launch: a timeout of %" PRIu64 " ns does not fit into simulated time, 2^64 ps",
               options.timeout_ns);
    return launch_submit(parts, count, &made);
}

void kb_wait_at(kb_future future, const char *file, uint32_t line)
{
    host_only("kb_wait", file, line);
    if (!future)
        misuse(file, line, "kb_wait: there is no launch to wait for");
    if (!launch_wait(future))
        program_ends("kb_wait", launch_outcome(future), file, line);
}

void program_wait_for_launches(void)
{
    for (struct launch *launch = launches; launch; launch = launch->next)
        if (!launch_wait(launch))
            program_ends("the end of the bench", launch_outcome(launch), launch->file, launch->line);
}

void host_launch_reset(void)
{
    part_of_pe = NULL;
}
