/* instance.c: an instance as a whole, and the table of its calls. */
#include "instance.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "base/unnamed.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "data.h"
#include "datapass/blas.h"
#include "failure.h"
#include "fastforward/fastforward.h"
#include "guest.h"
#include "host/bench.h"
#include "machine/emitted.h"
#include "memory.h"
#include "oplog/oplog.h"
#include "races/race.h"
#include "report/result.h"
#include "requests.h"
#include "saved.h"
#include "session/numbers.h"
#include "session/observers.h"
#include "session/reset.h"
#include "session/simulation.h"
#include "sim/observer.h"
#include "store/fill.h"

static struct {
    struct arena_mark mark;                             /* what a reset keeps of the arena */
    bool used, runs_bench;
    bool data, fast;                                    /* as configured; a run may clear fastforward_on */
    struct host_times times;                            /* of the bench */
} instance;

static const struct watchdog_limits no_limits;

bool instance_is_new(void)
{
    return !instance.used;
}

void instance_is_used(void)
{
    instance.used = true;
}

bool instance_ran_bench(void)
{
    return instance.runs_bench;
}

void instance_write_result(struct json *json)
{
    if (instance.runs_bench)
        simulation_write(json, &instance.times);
    else
        requests_write(json);
}

/* ---- begin and end */

static void set_numbers(const struct kb_sim_config *config)
{
    for (uint64_t i = 0; i < config->set_count; i++)
        numbers_option('K', config->set[i]);
    numbers_options_end();
}

static void begin_run(void)
{
    oplog_on = instance.data;
    fastforward_on = instance.fast;
    instance.used = instance.runs_bench = false;
    observer_watch(&command_rows_observer, true);
}

static enum kb_status begin(struct image_host *host, const struct kb_sim_config *config)
{
    memory_begin(host);
    failure_begin(host, config);
    guest_begin();
    saved_begin(host);
    program_name = kb_machine_name;
    bench_list_name = "kb_sim_describe";
    if (config->data > KB_SIM_DATA_OFF)
        return refuse(KB_WRONG, "data %u: KB_SIM_DATA_VERIFY or KB_SIM_DATA_OFF is needed", config->data);
    if (config->set_count && !config->set)
        return refuse(KB_WRONG, "set is NULL, and set_count is not 0");
    if (config->threads > THREADS_MOST)
        return refuse(KB_WRONG, "threads %u: at most %d", config->threads, THREADS_MOST);
    if (config->reserved)
        return refuse(KB_WRONG, "a reserved field is not 0");
    requests_begin(config);
    observers_init();
    set_numbers(config);
    instance.data = config->data == KB_SIM_DATA_VERIFY;
    instance.fast = !config->exact_events;
    fill_seed = config->seed;
    thread_count = config->threads ? config->threads : 1;
    unnamed_allowed = false;
    simulation_in_points();
    if (instance.data)
        blas_prepare();                                 /* later calls load nothing */
    begin_run();
    instance.mark = arena_mark();
    return KB_OK;
}

static void end(void)
{
    guest_end();
    memory_end();
}

static enum kb_status reset(void)
{
    requests_reset();
    data_reset();
    simulator_reset();
    arena_release(instance.mark);
    errors_forget();
    begin_run();
    return KB_OK;
}

/* The visitor of a trace stays the present one. */
static enum kb_status restore(const char *buffer, uint64_t size)
{
    struct trace_call trace = requests_trace_call();
    enum kb_status status = saved_restore(buffer, size);
    if (status == KB_OK)
        requests_trace(trace.visitor, trace.user);
    return status;
}

/* ---- benches */

static enum kb_status run_bench(const char *bench, const char *const *params, uint64_t count)
{
    if (instance.used)
        return refuse(KB_WRONG, "a bench begins at time 0, but the instance was used: kb_sim_reset makes it new");
    double began = clock_seconds();
    bench_select(bench_find(bench), (int)count, (char *const *)params);
    instance.used = instance.runs_bench = true;
    failure_machine_works();
    enum kb_status status = failure_status(simulation_run(began, &no_limits, &instance.times));
    failure_machine_rests();
    if (status == KB_NO_MEMORY)
        failure_ends();
    return status;
}

/* ---- results */

static enum kb_status text_end(uint64_t size, uint64_t *needed)
{
    *needed = guest_text_end();
    if (size && size < *needed)
        return refuse(KB_TOO_SMALL, "the text has %llu bytes, the buffer %llu", (unsigned long long)*needed,
                      (unsigned long long)size);
    return KB_OK;
}

static void write_result(struct json *json, void *arg)
{
    (void)arg;
    instance_write_result(json);
}

static enum kb_status result_json(char *buffer, uint64_t size, uint64_t *needed)
{
    if (instance_is_new())
        return refuse(KB_WRONG, "there is no result: nothing has run");
    json_write_file(guest_text_begin(buffer, size), write_result, NULL);
    return text_end(size, needed);
}

static void write_memories(struct json *json)
{
    json_array(json, "memories");
    for (uint32_t i = 0; i < memory_count(); i++) {
        uint64_t address = memory_address(i, 0);
        char name[64];
        snprintf(name, sizeof name, "%s", address_name(address));
        name[strcspn(name, "+")] = '\0';
        json_object(json, NULL);
        json_string(json, "name", name);
        json_u64(json, "address", address);
        json_u64(json, "bytes", memory_size(i));
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_pes(struct json *json)
{
    json_array(json, "pes");
    for (uint32_t i = 0; i < pe_count(); i++)
        json_string(json, NULL, pe_name(&kb_pe[i]));
    json_array_end(json);
}

static void write_description(struct json *json, void *arg)
{
    (void)arg;
    json_string(json, "name", kb_machine_name);
    json_string(json, "hash", kb_topology_hash);
    json_string(json, "kbgen", kb_version);
    json_u64(json, "abi", KB_ABI_VERSION);
    json_u64(json, "sips", kb_shape.sips);
    json_u64(json, "cubes_of_a_sip", kb_shape.cubes);
    json_u64(json, "pes_of_a_cube", kb_shape.pes);
    write_pes(json);
    write_memories(json);
    bench_list_write(json);
}

static enum kb_status describe(char *buffer, uint64_t size, uint64_t *needed)
{
    json_write_file(guest_text_begin(buffer, size), write_description, NULL);
    return text_end(size, needed);
}

/* ---- the table */

const struct kb_image kb_image = {
    .abi = KB_ABI_VERSION, .table_bytes = sizeof kb_image,
    .begin = begin, .end = end, .rest = threads_end, .reset = reset, .save = saved_write, .restore = restore,
    .run_bench = run_bench, .result_json = result_json, .describe = describe,
    .run = requests_run, .now_ps = requests_now_ps, .next_ps = requests_next_ps, .poll = requests_poll,
    .poll_pe = requests_poll_pe, .launch = requests_launch, .replay = requests_replay, .program = requests_program,
    .command = requests_command, .program_end = requests_program_end, .map = requests_map, .transfer = data_transfer,
    .poke = data_poke, .peek = data_peek, .tensor = data_tensor, .tensor_set = data_tensor_set,
    .tensor_get = data_tensor_get, .tensor_shard = data_tensor_shard, .stat = requests_stat, .stats = requests_stats,
    .trace = requests_trace,
};
