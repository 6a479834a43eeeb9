/* replay.c: `SIM replay STREAM.yaml`: runs a recorded command stream. A program of it is a kernel that walks through
 * its steps. */
#include "replay.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/fail.h"
#include "fastforward/fastforward.h"
#include "launch/deadlock.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/state.h"
#include "report/profile.h"
#include "report/result.h"
#include "report/trace.h"
#include "report/usage.h"
#include "sim/loop.h"
#include "stream.h"

static int replay_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'j', "json", "FILE", "write the result as JSON; - is standard output"},
    {'t', "trace", "FILE", "write the trace events, one JSON object a line; - is standard output"},
    {'S', "stats", "FILE",
     "write what each node, link, memory channel and engine served, was busy and waited\n"
     "for, as JSON; - is standard output"},
    {'e', "exact-events", NULL, "simulate every event, skip nothing that repeats: same results, more slowly"},
    {'f', "profile", NULL, "report where the host's time went, by kind of event"},
    {0},
};

const struct subcommand replay_subcommand = {
    "replay", "STREAM.yaml", "runs a recorded command stream", "Runs a recorded command stream in simulated time.",
    options, replay_main,
};

/* ---- the kernel */

/* The address for the PE that uses it. */
static uint64_t address_for(const struct stream_address *address, const struct pe *pe)
{
    if (address->is_va)
        return address->va;
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    uint32_t own_pe = address->space == SPACE_SRAM ? 0 : number % kb_shape.pes;
    return address_make(address->space, address->sip == OWN ? cube / kb_shape.cubes : (uint32_t)address->sip,
                        address->cube == OWN ? cube % kb_shape.cubes : (uint32_t)address->cube,
                        address->pe == OWN ? own_pe : (uint32_t)address->pe, address->offset);
}

static void run_program(struct tl *tl, const void *arg)
{
    const struct stream_program *program = arg;
    for (const struct stream_step *step = program->steps; step < program->steps + program->count; step++)
        switch (step->kind) {
        case STEP_DELAY: kernel_delay(tl, step->delay_ps); break;
        case STEP_WAIT:
            for (uint32_t i = 0; i < step->awaited_count; i++)
                kernel_wait(tl, step->awaited[i]);
            break;
        case STEP_COMMAND: {
            struct request ask = step->ask;
            for (unsigned i = 0; i < OPERANDS; i++) {
                ask.address[i] = address_for(&step->address[i], tl->pe);
                ask.virtual_address[i] = step->address[i].is_va && kb_attrs.pe_mmu_enabled;
            }
            uint32_t number = kernel_submit(tl, &ask)->number;
            if (step->blocks)
                kernel_wait(tl, number);
        }
        }
}

/* ---- the host */

/* The PEs that some launch targets, in rank order. */
static uint32_t *all_targets(const struct command_stream *stream, uint32_t *count)
{
    bool *targeted = arena_alloc(pe_count(), sizeof *targeted);
    uint32_t *out = arena_alloc(pe_count(), sizeof *out);
    for (uint32_t i = 0; i < stream->launch_count; i++)
        for (uint32_t p = 0; p < stream->launches[i].count; p++) {
            const struct stream_part *part = &stream->launches[i].parts[p];
            for (uint32_t j = 0; j < part->count; j++)
                targeted[part->pes[j]] = true;
        }
    *count = 0;
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        if (targeted[pe])
            out[(*count)++] = pe;
    return out;
}

/* Maps on all PEs that launches target. */
static void run_maps(const struct command_stream *stream)
{
    uint32_t count, *pes = all_targets(stream, &count);
    for (uint32_t m = 0; count && m < stream->map_count; m++) {
        const struct stream_map *map = &stream->maps[m];
        uint64_t *addresses = arena_alloc(count, sizeof *addresses);
        for (uint32_t i = 0; i < count; i++)
            addresses[i] = address_for(&map->to, &kb_pe[pes[i]]);
        map_request_run(pes, addresses, count, map->va, map->pages);
    }
}

static bool run_memory(const struct stream_memory *memory)
{
    struct memory_request *request = arena_alloc(1, sizeof *request);
    uint64_t *addresses = arena_alloc(memory->count, sizeof *addresses);
    for (uint32_t i = 0; i < memory->count; i++)
        addresses[i] = address_for(&memory->addresses[i], &kb_pe[0]);
    *request = (struct memory_request){.writes = memory->writes, .addresses = addresses, .count = memory->count,
                                       .bytes = memory->bytes};
    return memory_request_run(request);
}

/* Runs a launch, or records that it is skipped. Returns whether it ended well. */
static bool run_launch(const struct stream_launch *launch, bool skip)
{
    struct launch_part *parts = arena_alloc(launch->count, sizeof *parts);
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct stream_part *part = &launch->parts[i];
        parts[i] = (struct launch_part){part->program->name, run_program, part->program, part->pes, part->count};
    }
    if (!skip)
        return launch_wait(launch_submit(parts, launch->count, &launch->options));
    launch_skip(parts, launch->count);
    return false;
}

static void run_host(void *arg)
{
    const struct command_stream *stream = arg;
    bool good = true;
    run_maps(stream);
    for (uint32_t i = 0; good && i < stream->memory_count; i++)
        good = run_memory(&stream->memory[i]);
    for (uint32_t i = 0; i < stream->launch_count; i++)
        good = run_launch(&stream->launches[i], !good);
}

/* ---- the subcommand */

static void write_result(struct json *json, void *arg)
{
    (void)arg;
    result_write(json);
    if (!profile_on)
        return;
    json_object(json, "host");
    json_u64(json, "events", event_fired());
    profile_write(json);
    json_object_end(json);
}

static void print_summary(const char *path)
{
    for (const struct launch *launch = launches; launch; launch = launch->next)
        if (launch->status == LAUNCH_SKIPPED)
            printf("launch %-24s skipped\n", launch->program);
        else
            printf("launch %-24s %5u PEs  submitted %" PRIu64 " ps  done %" PRIu64 " ps%s%s\n", launch->program,
                   (unsigned)launch->count, launch->submitted_ps, launch->done_ps,
                   launch->status == LAUNCH_OK ? "" : "  FAILED: ",
                   launch->status == LAUNCH_OK ? "" : launch_outcome(launch));
    printf("%s on %s: %s, end %" PRIu64 " ps\n", path, kb_machine_name, result_good() ? "ok" : "failed",
           sim_now_ps());
}

static int replay_main(int argc, char **argv)
{
    const char *json_path = NULL, *trace_path = NULL, *stats_path = NULL;
    fastforward_on = true;
    for (int letter; (letter = subcommand_option(&replay_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'j': json_path = optarg; break;
        case 't': trace_path = optarg; break;
        case 'S': stats_path = optarg; break;
        case 'e': fastforward_on = false; break;
        case 'f': profile_start(); break;
        }
    const char *path = subcommand_argument(&replay_subcommand, argc, argv, "one command stream");
    const char *const outputs[][2] = {{"json", json_path}, {"trace", trace_path}, {"stats", stats_path}};
    check_outputs_differ(outputs, COUNT_OF(outputs));
    const struct command_stream *stream = stream_read(path);
    struct output json = {0};
    observer_watch(&command_rows_observer, json_path);
    if (json_path)                                      /* a path that cannot be written is reported before the run */
        json = output_open(json_path);
    if (trace_path)
        trace_open(trace_path);
    if (stats_path)
        usage_open(stats_path);
    machine_init();
    fastforward_init();
    sim_run(run_host, (void *)stream, 1, launches_deadlocked);
    trace_close();
    usage_close();
    if (json_path)
        json_write_output(&json, write_result, NULL);
    if (!is_standard_output(json_path) && !is_standard_output(trace_path) && !is_standard_output(stats_path))
        print_summary(path);
    if (profile_on)
        profile_print();
    return result_good() ? STATUS_GOOD : STATUS_RUN_FAILED;
}
