/* replay.c: `SIM replay stream.yaml`: runs a recorded command stream. A program of it is a kernel like any other; it
 * walks through its steps. */
#include "replay.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/emitted.h"
#include "launch/host_request.h"
#include "launch/deadlock.h"
#include "launch/launch.h"
#include "machine/pe.h"
#include "report/profile.h"
#include "report/commands.h"
#include "report/result.h"
#include "fastforward/periodic.h"
#include "stream.h"
#include "common/arena.h"
#include "common/diag.h"
#include "report/trace.h"

/* An address as the PE that uses it sees it. */
static uint64_t resolved(const struct stream_address *address, const struct pe *pe)
{
    if (address->is_va)
        return address->value;
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    uint32_t own_pe = address->space == SPACE_SRAM ? 0 : number % kb_shape.pes;
    return address_make(address->space, address->sip == OWN ? cube / kb_shape.cubes : (uint32_t)address->sip,
                        address->cube == OWN ? cube % kb_shape.cubes : (uint32_t)address->cube,
                        address->pe == OWN ? own_pe : (uint32_t)address->pe, address->offset);
}

static void run_program(struct tl *tl, const void *arg)
{
    const struct program *program = arg;
    for (const struct step *step = program->steps; step < program->steps + program->count; step++) {
        struct request ask = step->ask;
        switch (step->kind) {
        case STEP_DELAY:
            kernel_delay(tl, step->delay_ps);
            break;
        case STEP_WAIT:
            for (uint32_t i = 0; i < step->awaited_count; i++)
                kernel_wait(tl, step->awaited[i]);
            break;
        default: {
            for (unsigned i = 0; i < OPERANDS; i++) {
                ask.address[i] = resolved(&step->address[i], tl->pe);
                ask.virtual_address[i] = step->address[i].is_va && kb_attrs.pe_mmu_enabled;
            }
            uint32_t number = kernel_submit(tl, &ask)->number;
            if (step->blocks)
                kernel_wait(tl, number);
        }
        }
    }
}

/* Every PE that some launch targets, by rank. */
static uint32_t *targets(const struct stream *stream, uint32_t *count)
{
    uint32_t pes = pe_count();
    bool *targeted = arena_alloc(pes, sizeof *targeted);
    uint32_t *out = arena_alloc(pes, sizeof *out);
    for (uint32_t i = 0; i < stream->launch_count; i++)
        for (const struct stream_part *p = stream->launches[i].parts;
             p < stream->launches[i].parts + stream->launches[i].count; p++)
            for (uint32_t j = 0; j < p->count; j++)
                targeted[p->pes[j]] = true;
    *count = 0;
    for (uint32_t pe = 0; pe < pes; pe++)
        if (targeted[pe])
            out[(*count)++] = pe;
    return out;
}

static void run_maps(const struct stream *stream)
{
    uint32_t count, *pes = targets(stream, &count);
    for (uint32_t m = 0; count && m < stream->map_count; m++) {
        const struct stream_map *map = &stream->maps[m];
        uint64_t *addresses = arena_alloc(count, sizeof *addresses);
        for (uint32_t i = 0; i < count; i++)
            addresses[i] = resolved(&map->to, &kb_pe[pes[i]]);
        map_request_run(pes, addresses, count, map->va, map->pages);
    }
}

static bool run_memory(const struct stream_memory *memory)
{
    struct memory_request *request = arena_alloc(1, sizeof *request);
    uint64_t *addresses = arena_alloc(memory->count, sizeof *addresses);
    for (uint32_t i = 0; i < memory->count; i++)
        addresses[i] = resolved(&memory->addresses[i], &kb_pe[0]);
    *request = (struct memory_request){.writes = memory->writes, .addresses = addresses, .count = memory->count,
                                       .bytes = memory->bytes};
    return memory_request_run(request);
}

/* True: it was run, and ended well. */
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

static void host(void *arg)
{
    const struct stream *stream = arg;
    bool good = true;
    run_maps(stream);
    for (uint32_t i = 0; good && i < stream->memory_count; i++)
        good = run_memory(&stream->memory[i]);
    for (uint32_t i = 0; i < stream->launch_count; i++)
        good = run_launch(&stream->launches[i], !good);
}

static void fill(struct json *json, void *arg)
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

static void help(void)
{
    puts(
        "usage: SIM replay STREAM.yaml [OPTIONS]\n"
        "\n"
        "Runs a recorded command stream in simulated time.\n"
        "  --json FILE     the result as JSON (- for standard output)\n"
        "  --trace FILE    the trace events, one JSON object a line (- likewise)\n"
        "  --exact-events  simulate every event, skip nothing that repeats itself: same results, more slowly\n"
        "  --profile       where the host's time went, by kind of event, on standard error and in the result\n"
        "Exit status: 0 all ended well, 1 the run failed, 2 wrong usage or stream, 3 error of the host system.");
}

struct replay_options {
    const char *stream, *json, *trace;
};

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static struct replay_options options_read(int argc, char **argv)
{
    static const struct option options[] = {{"json", required_argument, NULL, 'j'},
                                            {"trace", required_argument, NULL, 't'},
                                            {"exact-events", no_argument, NULL, 'e'},
                                            {"profile", no_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct replay_options read = {0};
    steady_on = true;
    argv[0] = (char *)program_name;                     /* getopt_long names it in its messages */
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'j': read.json = optarg; break;
        case 't': read.trace = optarg; break;
        case 'e': steady_on = false; break;
        case 'f': profile_start(); break;
        case 'h': help(); exit(0);
        default: fprintf(stderr, "see %s replay --help\n", program_name); exit(2);
        }
    }
    if (argc - optind != 1)
        usage_error("replay takes one command stream; see %s replay --help", program_name);
    if (read.json && read.trace && !strcmp(read.json, read.trace))
        usage_error("--json and --trace cannot both go to %s",
                    strcmp(read.json, "-") ? read.json : "standard output");
    read.stream = argv[optind];
    return read;
}

int replay_main(int argc, char **argv)
{
    struct replay_options options = options_read(argc, argv);
    struct stream *stream = stream_read(options.stream);
    struct output json = {0};
    finished_on = options.json;
    if (options.json)                                   /* what cannot be written is said before the work */
        json = output_open(options.json);
    if (options.trace)
        trace_open(options.trace);
    machine_init();
    steady_init();
    sim_run(host, stream, 1, launches_deadlocked);
    trace_close();
    if (options.json)
        json_write_output(&json, fill, NULL);
    if (!is_stdout(options.json) && !is_stdout(options.trace))
        print_summary(options.stream);
    if (profile_on)
        profile_print();
    return result_good() ? 0 : 1;
}
