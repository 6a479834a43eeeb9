/* result.c: what a run gives, as JSON. */
#include "result.h"

#include "emitted.h"
#include "launch.h"
#include "output.h"
#include "pe.h"

const char *pe_name(const struct pe *pe)
{
    static char name[48];
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    snprintf(name, sizeof name, "sip%u.cube%u.pe%u", (unsigned)(cube / kb_shape.cubes), (unsigned)(cube % kb_shape.cubes),
             (unsigned)(number % kb_shape.pes));
    return name;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void write_metrics(struct json *json, uint64_t dma_ps, uint64_t compute_ps)
{
    json_u64(json, "dma_ps", dma_ps);
    json_u64(json, "compute_ps", compute_ps);
}

static void write_pe(struct json *json, const struct kernel_run *run)
{
    json_object(json, NULL);
    json_string(json, "id", pe_name(run->tl.pe));
    json_string(json, "status", "ok");
    json_u64(json, "start_ps", run->start_ps);
    json_u64(json, "end_ps", run->end_ps);
    write_metrics(json, run->dma_ps, run->compute_ps);
    json_object_end(json);
}

static void write_command(struct json *json, const struct command *command)
{
    static const char *const words[COMMANDS] = {
#define COMMAND(name, word) word,
#include "kb/commands.def"
#undef COMMAND
    };
    json_object(json, NULL);
    json_string(json, "pe", pe_name(command->pe));
    json_u64(json, "n", command->number);
    json_string(json, "do", words[command->ask.kind]);
    json_u64(json, "submitted_ps", command->submitted_ps);
    json_u64(json, "complete_ps", command->complete_ps);
    json_object_end(json);
}

static void write_launch(struct json *json, const struct launch *launch)
{
    uint64_t exec_ps = 0, dma_ps = 0, compute_ps = 0;
    for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++) {
        exec_ps = most(exec_ps, run->end_ps - run->start_ps);
        dma_ps = most(dma_ps, run->dma_ps);
        compute_ps = most(compute_ps, run->compute_ps);
    }
    json_object(json, NULL);
    json_string(json, "program", launch->program);
    json_string(json, "status", "ok");
    json_u64(json, "submitted_ps", launch->submitted_ps);
    json_u64(json, "start_ps", launch->start_ps);
    json_u64(json, "done_ps", launch->done_ps);
    json_u64(json, "pe_exec_ps", exec_ps);
    write_metrics(json, dma_ps, compute_ps);
    json_array(json, "pes");
    for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++)
        write_pe(json, run);
    json_array_end(json);
    json_array(json, "commands");
    for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++)
        for (const struct command *command = run->tl.first; command; command = command->next)
            write_command(json, command);
    json_array_end(json);
    json_object_end(json);
}

void result_write(struct json *json)
{
    uint64_t end_ps = 0;
    for (const struct launch *launch = launches; launch; launch = launch->next)
        end_ps = launch->done_ps;
    json_string(json, "system", kb_machine_name);
    json_u64(json, "end_ps", end_ps);
    json_array(json, "launches");
    for (const struct launch *launch = launches; launch; launch = launch->next)
        write_launch(json, launch);
    json_array_end(json);
}

void json_write_file(const char *path, void (*fill)(struct json *, void *), void *arg)
{
    struct output output = output_open(path);
    struct json json;
    json_open(&json, output.file);
    json_object(&json, NULL);
    fill(&json, arg);
    json_object_end(&json);
    json_close(&json);
    output_close(&output);
}
