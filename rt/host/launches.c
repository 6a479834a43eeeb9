/* launches.c: kb_launch and kb_wait: what a bench asks for is checked, and submitted as one launch. */
#include "launches.h"

#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "device/device.h"
#include "host.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "races/race.h"

/* By PE, for the launch that is checked: 1 + the number of the part that targets it, or 0. */
static struct ARRAY(uint32_t) part_of_pe;

/* Checks that all PEs of a part exist, belong to this rank, and are in no other part. */
static void check_targets(struct call_site call, const struct kb_part *parts, uint32_t part)
{
    const struct kb_pes *pes = &parts[part].pes;
    const char *name = parts[part].kernel->name;
    if (pes->count == 0)
        misuse_of(call, "kernel %s is launched on no PE", name);
    host_check_pes(call, *pes);
    for (uint32_t i = 0; i < pes->count; i++) {
        uint32_t *taken = &part_of_pe.at[pes->pe[i]];
        if (*taken)
            misuse_of(call, "%s is to run both kernel %s and kernel %s", pe_name(&kb_pe[pes->pe[i]]),
                      parts[*taken - 1].kernel->name, name);
        *taken = part + 1;
    }
}

/* Checks that none of the PEs still runs a kernel. */
static void check_idle(struct call_site call, const struct kb_part *parts)
{
    for (const struct launch *launch = launches; launch; launch = launch->next)
        for (uint32_t i = 0; launch->status == LAUNCH_RUNNING && i < launch->count; i++) {
            const struct pe *pe = launch->runs[i].tl.pe;
            uint32_t part = part_of_pe.at[pe_number(pe)];
            if (!launch->runs[i].ended && part)
                misuse_of(call, "%s still runs kernel %s, launched at %s:%u, and cannot run %s yet", pe_name(pe),
                          launch->program, launch->file, (unsigned)launch->line, parts[part - 1].kernel->name);
        }
}

static void check_parts(struct call_site call, const struct kb_part *parts, uint32_t count)
{
    array_reserve(&part_of_pe, pe_count());
    memset(part_of_pe.at, 0, pe_count() * sizeof *part_of_pe.at);
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i].arg && parts[i].kernel->arg_bytes)
            misuse_of(call, "kernel %s is launched without its arguments", parts[i].kernel->name);
        check_targets(call, parts, i);
    }
    check_idle(call, parts);
}

struct launch_part launches_part(const struct kb_part *part)
{
    struct kernel_start *start = arena_alloc(1, sizeof *start);
    void *arg = arena_alloc(1, part->kernel->arg_bytes);
    if (part->kernel->arg_bytes)
        memcpy(arg, part->arg, part->kernel->arg_bytes);
    *start = (struct kernel_start){part->kernel, arg, races_on ? race_launched(part->pes.count) : NULL};
    return (struct launch_part){.program = part->kernel->name, .body = device_run, .arg = start,
                                .pes = part->pes.pe, .count = part->pes.count};
}

_Static_assert((int)KB_START_CUBE == START_CUBE && (int)KB_START_FREE == START_FREE, "one enumeration for benches");

kb_future kb_launch_at(const struct kb_part *asked, struct kb_options options, const char *file, uint32_t line)
{
    struct call_site call = {"kb_launch", file, line};
    uint32_t count = 0;
    host_only(call);
    while (asked[count].kernel)
        count++;
    check_parts(call, asked, count);
    if (options.on_failure > KB_FAIL_FAST)
        misuse_of(call, "there is no on_failure number %u", (unsigned)options.on_failure);
    if (options.start > KB_START_FREE)
        misuse_of(call, "there is no start number %u", (unsigned)options.start);
    struct launch_part *parts = arena_alloc(count, sizeof *parts);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = launches_part(&asked[i]);
    if (launch_bad())
        launch_skip(parts, count);
    host_check_launches(call);
    struct launch_options made = {.fail_fast = options.on_failure == KB_FAIL_FAST, .timed = options.timeout_ns,
                                  .start = (enum launch_start)options.start, .file = file, .line = line};
    if (__builtin_mul_overflow(options.timeout_ns, UINT64_C(1000), &made.timeout_ps))
        misuse_of(call, "a timeout of %" PRIu64 " ns does not fit into simulated time, 2^64 ps", options.timeout_ns);
    observe_host_calls(file, line);
    return launch_submit(parts, count, &made);
}

void kb_wait_at(kb_future future, const char *file, uint32_t line)
{
    struct call_site call = {"kb_wait", file, line};
    host_only(call);
    if (!future)
        misuse_of(call, "there is no launch to wait for");
    if (!launch_wait(future))
        host_stop(call, launch_outcome(future));
}

void launches_wait(void)
{
    for (struct launch *launch = launches; launch; launch = launch->next)
        if (!launch_wait(launch))
            host_stop((struct call_site){"the end of the bench", launch->file, launch->line}, launch_outcome(launch));
}
