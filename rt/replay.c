/* replay.c: `SIM replay stream.yaml`: runs a recorded command stream. A program of it is a kernel like any other; it walks
 * through its steps. */
#include "replay.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emitted.h"
#include "launch.h"
#include "pe.h"
#include "result.h"
#include "stream.h"
#include "text/base.h"
#include "text/diag.h"
#include "trace.h"

/* An address as the PE that uses it sees it. */
static uint64_t resolved(const struct stream_address *address, const struct pe *pe)
{
    if (address->physical)
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
    struct command **commands = arena_alloc(program->commands + 1, sizeof *commands);
    uint32_t submitted = 0;
    for (const struct step *step = program->steps; step < program->steps + program->count; step++) {
        struct request ask = step->ask;
        switch (step->kind) {
        case STEP_DELAY:
            kernel_delay(tl, step->delay_ps);
            break;
        case STEP_WAIT:
            for (uint32_t i = 0; i < step->awaited_count; i++)
                kernel_wait(tl, commands[step->awaited[i]]);
            break;
        default:
            for (unsigned i = 0; i < OPERANDS; i++)
                ask.address[i] = resolved(&step->address[i], tl->pe);
            commands[submitted] = kernel_submit(tl, &ask);
            if (step->blocks)
                kernel_wait(tl, commands[submitted]);
            submitted++;
        }
    }
}

static void host(void *arg)
{
    const struct stream *stream = arg;
    for (const struct stream_launch *launch = stream->launches; launch < stream->launches + stream->launch_count; launch++) {
        struct launch_part *parts = arena_alloc(launch->count, sizeof *parts);
        for (uint32_t i = 0; i < launch->count; i++) {
            const struct stream_part *part = &launch->parts[i];
            parts[i] = (struct launch_part){part->program->name, run_program, part->program, part->pes, part->count};
        }
        launch_wait(launch_submit(parts, launch->count));
    }
}

static void fill(struct json *json, void *arg)
{
    (void)arg;
    result_write(json);
}

static void print_summary(const char *path)
{
    uint64_t end_ps = 0;
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        printf("launch %-24s %5u PEs  start %" PRIu64 " ps  done %" PRIu64 " ps\n", launch->program, (unsigned)launch->count,
               launch->start_ps, launch->done_ps);
        end_ps = launch->done_ps;
    }
    printf("%s on %s: end %" PRIu64 " ps\n", path, kb_machine_name, end_ps);
}

static void help(void)
{
    puts("usage: SIM replay STREAM.yaml [--json FILE] [--trace FILE]\n"
         "\n"
         "Runs a recorded command stream in simulated time.\n"
         "  --json FILE    the result as JSON (- for standard output)\n"
         "  --trace FILE   the trace events, one JSON object a line (- for standard output)\n"
         "Exit status: 0 all launches ended well, 1 the run failed, 2 wrong usage or stream, 3 error of the host system.");
}

int replay_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", required_argument, NULL, 'j'}, {"trace", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *json = NULL, *trace = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            json = optarg;
            break;
        case 't':
            trace = optarg;
            break;
        case 'h':
            help();
            return 0;
        default:
            return 2;
        }
    }
    if (argc - optind != 1)
        usage_error("replay takes one command stream; see replay --help");
    struct stream *stream = stream_read(argv[optind]);
    if (trace)
        trace_open(trace);
    sim_init();
    if (!sim_run(host, stream)) {
        fprintf(stderr, "%s: deadlock at %" PRIu64 " ps: a launch waits, and nothing is due any more\n", program_name, sim_now_ps());
        return 1;
    }
    trace_close();
    if (json)
        json_write_file(json, fill, NULL);
    if (!json || strcmp(json, "-"))
        print_summary(argv[optind]);
    return 0;
}
