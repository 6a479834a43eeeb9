/* result.c: what a run gives, as JSON.
 *
 * A command is freed when it is complete, and a run may have very many. What its row of the JSON needs is kept in chunks
 * of rows; a chunk whose commands are all complete goes to a spool: memory up to a bound, then a temporary file. */
#include "result.h"

#include <stdlib.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/diag.h"
#include "common/pool.h"
#include "kb/arith.h"
#include "launch/host_request.h"
#include "launch/kernel.h"
#include "launch/launch.h"
#include "launch/watchdog.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "oplog/spool.h"
#include "sim/observer.h"

/* ---- rows of commands */

enum { ROWS = 64, SPOOL_MEMORY_BYTES = 4 << 20 };

struct command_row {
    uint64_t submitted_ps;
    uint64_t complete_ps;                               /* NOT_COMPLETE until it is */
    uint8_t kind;
};

#define NOT_COMPLETE UINT64_MAX

struct row_chunk {
    struct command_row *rows;                           /* ROWS of them, of row_pool; NULL: they are in the spool, */
    uint64_t place;                                     /* at this position */
    uint32_t complete;
};

/* The rows of one kernel on one PE, by number of the command. */
struct kernel_rows {
    struct row_chunk *chunk;
    uint32_t chunks;
};

static struct ARRAY(struct kernel_rows) kernels;        /* by serial number of the kernel */
static struct pool row_pool;
static struct spool spool = {.limit = SPOOL_MEMORY_BYTES, .what = "the rows of commands"};

static struct kernel_rows *rows_of(const struct tl *tl)
{
    while (kernels.count <= tl->serial)
        *array_add(&kernels) = (struct kernel_rows){0};
    return &kernels.at[tl->serial];
}

static void chunk_add(struct kernel_rows *rows)
{
    rows->chunk = arena_grow(rows->chunk, rows->chunks, sizeof *rows->chunk);
    rows->chunk[rows->chunks++] = (struct row_chunk){.rows = pool_take(&row_pool, ROWS * sizeof(struct command_row))};
}

static void command_submitted(const struct command *command)
{
    struct kernel_rows *rows = rows_of(command->pe->kernel);
    if (command->number % ROWS == 0)
        chunk_add(rows);
    rows->chunk[command->number / ROWS].rows[command->number % ROWS] =
        (struct command_row){command->submitted_ps, NOT_COMPLETE, command->ask.kind};
}

static void command_completed(const struct command *command)
{
    struct row_chunk *chunk = &rows_of(command->pe->kernel)->chunk[command->number / ROWS];
    chunk->rows[command->number % ROWS].complete_ps = command->complete_ps;
    if (++chunk->complete < ROWS)
        return;
    chunk->place = spool_append(&spool, chunk->rows, ROWS * sizeof *chunk->rows);
    pool_give_back(&row_pool, chunk->rows);
    chunk->rows = NULL;
}

static struct command_row command_row(const struct tl *tl, uint32_t number)
{
    static struct command_row read[ROWS];               /* the chunk that was read last */
    static uint64_t place;
    const struct row_chunk *chunk = &rows_of(tl)->chunk[number / ROWS];
    if (chunk->rows)
        return chunk->rows[number % ROWS];
    if (number % ROWS == 0 || place != chunk->place)
        spool_read(&spool, chunk->place, read, sizeof read);
    place = chunk->place;
    return read[number % ROWS];
}

void result_commands(void (*each)(const struct command_row_read *row, void *arg), void *arg)
{
    for (const struct launch *launch = launches; launch; launch = launch->next)
        for (uint32_t i = 0; i < launch->count; i++) {
            const struct tl *tl = &launch->runs[i].tl;
            for (uint32_t number = 0; number < tl->commands; number++) {
                struct command_row row = command_row(tl, number);
                each(&(struct command_row_read){tl, number, row.kind, row.complete_ps != NOT_COMPLETE, row.submitted_ps, row.complete_ps},
                     arg);
            }
        }
}

void command_rows_reset(void)
{
    spool_clear(&spool);
    array_free(&kernels);
    pool_release(&row_pool);
}

struct observer command_rows_observer = {
    .name = "rows of commands",
    .command_submitted = command_submitted,
    .command_completed = command_completed,
};

/* ---- JSON */

/* A time; null if it has not come. */
static void write_time(struct json *json, const char *key, bool happened, uint64_t t_ps)
{
    if (happened)
        json_u64(json, key, t_ps);
    else
        json_null(json, key);
}

/* `pe`: the PE that failed; NULL in a row of that PE. */
static void write_failure(struct json *json, const struct failure *failure, const struct pe *pe)
{
    json_object(json, "failure");
    if (pe)
        json_string(json, "pe", pe_name(pe));
    json_string(json, "code", fault_names[failure->code]);
    json_string(json, "node", place_name(failure->node));
    json_u64(json, "t_ps", failure->t_ps);
    json_object_end(json);
}

/* A launch is reported as it was at the end of the instant in which the host had its answer or gave it up. Its kernels
 * may run on after that, beside other launches. */
static uint64_t until_ps(const struct launch *launch)
{
    return launch->status == LAUNCH_RUNNING ? sim_now_ps() : launch->done_ps;
}

static bool has_started(const struct kernel_run *run)
{
    return run->started && run->start_ps <= until_ps(run->tl.launch);
}

static bool has_ended(const struct kernel_run *run)
{
    return run->ended && run->end_ps <= until_ps(run->tl.launch);
}

static uint64_t exec_ps(const struct kernel_run *run)
{
    return !has_started(run) ? 0 : (has_ended(run) ? run->end_ps : until_ps(run->tl.launch)) - run->start_ps;
}

static void write_pe(struct json *json, const struct kernel_run *run)
{
    bool failed = run->tl.failure.set && has_ended(run);
    json_object(json, NULL);
    json_string(json, "id", pe_name(run->tl.pe));
    json_string(json, "status", failed ? "failed" : has_ended(run) ? "ok" : "running");
    write_time(json, "start_ps", has_started(run), run->start_ps);
    write_time(json, "end_ps", has_ended(run), run->end_ps);
    json_u64(json, "dma_ps", run_dma_ps(run, sim_now_ps()));
    json_u64(json, "compute_ps", run_compute_ps(run, sim_now_ps()));
    if (failed)
        write_failure(json, &run->tl.failure, NULL);
    json_object_end(json);
}

static bool is_submitted(const struct tl *tl, uint32_t number)
{
    return number < tl->commands && command_row(tl, number).submitted_ps <= until_ps(tl->launch);
}

static bool is_complete(const struct tl *tl, uint32_t number)
{
    uint64_t complete_ps = command_row(tl, number).complete_ps;
    return complete_ps != NOT_COMPLETE && complete_ps <= until_ps(tl->launch);
}

static void write_command(struct json *json, const char *pe, const struct tl *tl, uint32_t number)
{
    struct command_row row = command_row(tl, number);
    json_object(json, NULL);
    json_string(json, "pe", pe);
    json_u64(json, "n", number);
    json_string(json, "do", command_words[row.kind]);
    json_u64(json, "submitted_ps", row.submitted_ps);
    write_time(json, "complete_ps", is_complete(tl, number), row.complete_ps);
    json_object_end(json);
}

static void write_waiting(struct json *json, const struct launch *launch)
{
    json_array(json, "waiting");
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct kernel_run *run = &launch->runs[i];
        if (has_ended(run))
            continue;
        json_object(json, NULL);
        json_string(json, "pe", pe_name(run->tl.pe));
        json_array(json, "commands");
        for (uint32_t number = 0; command_rows_observer.watches && is_submitted(&run->tl, number); number++)
            if (!is_complete(&run->tl, number))
                json_u64(json, NULL, number);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_metrics(struct json *json, const struct launch *launch)
{
    uint64_t exec = 0, dma = 0, compute = 0;
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct kernel_run *run = &launch->runs[i];
        exec = kb_max(exec, exec_ps(run));
        dma = kb_max(dma, run_dma_ps(run, sim_now_ps()));
        compute = kb_max(compute, run_compute_ps(run, sim_now_ps()));
    }
    json_u64(json, "pe_exec_ps", exec);
    json_u64(json, "dma_ps", dma);
    json_u64(json, "compute_ps", compute);
}

/* The number of a request, and the answer of each m_cpu, which gathers those of its cube. */
static void write_responses(struct json *json, const struct fanout *fanout)
{
    json_u64(json, "request", fanout->correlation);
    json_array(json, "responses");
    for (uint32_t i = 0; i < fanout->cube_count; i++) {
        const struct leg *cube = &fanout->cubes[i];
        json_object(json, NULL);
        json_u64(json, "correlation_id", fanout->correlation);
        json_u64(json, "request_id", i);
        json_string(json, "src_cube", arena_printf("sip%u.cube%u", (unsigned)(cube->cube / kb_shape.cubes),
                                                   (unsigned)(cube->cube % kb_shape.cubes)));
        json_double(json, "src_pe", -1);            /* gathered, of all PEs */
        if (cube->answered)
            json_bool(json, "success", cube->failed == NO_LEAF);
        else
            json_null(json, "success");
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_launch(struct json *json, const struct launch *launch, bool with_ids)
{
    static const char *const statuses[] = {
        [LAUNCH_RUNNING] = "running", [LAUNCH_OK] = "ok",             [LAUNCH_FAILED] = "failed",
        [LAUNCH_TIMEOUT] = "timeout", [LAUNCH_DEADLOCK] = "deadlock", [LAUNCH_SKIPPED] = "skipped",
    };
    bool submitted = launch->status != LAUNCH_SKIPPED;
    json_object(json, NULL);
    json_string(json, "program", launch->program);
    json_string(json, "status", statuses[launch->status]);
    write_time(json, "submitted_ps", submitted, launch->submitted_ps);
    write_time(json, "start_ps", launch->begun && launch->start_ps <= until_ps(launch), launch->start_ps);
    write_time(json, "done_ps", submitted && launch->status != LAUNCH_RUNNING, launch->done_ps);
    write_metrics(json, launch);
    json_array(json, "pes");
    for (uint32_t i = 0; i < launch->count; i++)
        write_pe(json, &launch->runs[i]);
    json_array_end(json);
    json_array(json, "commands");
    for (uint32_t i = 0; command_rows_observer.watches && i < launch->count; i++) {
        const struct tl *tl = &launch->runs[i].tl;
        const char *pe = pe_name(tl->pe);
        for (uint32_t number = 0; is_submitted(tl, number); number++)
            write_command(json, pe, tl, number);
    }
    json_array_end(json);
    if (launch->failed)
        write_failure(json, &launch->failed->tl.failure, launch->failed->tl.pe);
    if (launch->status == LAUNCH_TIMEOUT || launch->status == LAUNCH_DEADLOCK)
        write_waiting(json, launch);
    if (with_ids && submitted)
        write_responses(json, &launch->fanout);
    json_object_end(json);
}

static void write_memory_request(struct json *json, const struct memory_request *request, bool with_ids)
{
    json_object(json, NULL);
    json_string(json, "do", request->writes ? "write" : "read");
    json_string(json, "status", request->failure.set ? "failed" : "ok");
    json_u64(json, "submitted_ps", request->submitted_ps);
    json_u64(json, "done_ps", request->done_ps);
    json_u64(json, "xfer_ps", request->xfer_ps);
    if (request->failure.set)
        write_failure(json, &request->failure, NULL);
    if (with_ids)
        write_responses(json, &request->fanout);
    json_object_end(json);
}

bool result_good(void)
{
    for (const struct memory_request *request = memory_requests; request; request = request->next)
        if (request->failure.set)
            return false;
    for (const struct launch *launch = launches; launch; launch = launch->next)
        if (launch->status != LAUNCH_OK)
            return false;
    return true;
}

void result_write(struct json *json, uint64_t end_ps, bool with_ids)
{
    json_string(json, "system", kb_machine_name);
    json_u64(json, "end_ps", end_ps);
    if (memory_requests) {
        json_array(json, "memory");
        for (const struct memory_request *request = memory_requests; request; request = request->next)
            write_memory_request(json, request, with_ids);
        json_array_end(json);
    }
    json_array(json, "launches");
    for (const struct launch *launch = launches; launch; launch = launch->next)
        write_launch(json, launch, with_ids);
    json_array_end(json);
}

void result_write_launch(struct json *json, uint64_t i, bool with_ids)
{
    const struct launch *launch = launches;
    for (; launch && i; i--)
        launch = launch->next;
    if (launch)
        write_launch(json, launch, with_ids);
}

void result_write_memory(struct json *json, uint64_t i, bool with_ids)
{
    const struct memory_request *request = memory_requests;
    for (; request && i; i--)
        request = request->next;
    if (request)
        write_memory_request(json, request, with_ids);
}

void result_write_interruption(struct json *json)
{
    if (!watchdog_ended())
        return;
    json_bool(json, "interrupted", true);
    json_string(json, "ended_by", watchdog_ended());
}

static void write_object(FILE *file, bool one_line, void (*fill)(struct json *, void *), void *arg)
{
    struct json json;
    json_open(&json, file);
    json.one_line = one_line;
    json_object(&json, NULL);
    fill(&json, arg);
    json_object_end(&json);
    json_close(&json);
}

void json_write_file(FILE *file, void (*fill)(struct json *, void *), void *arg)
{
    write_object(file, false, fill, arg);
}

/* Writes in large blocks: a result with a row for each command has megabytes. Nothing may have been written before. */
void json_write_output(struct output *output, void (*fill)(struct json *, void *), void *arg)
{
    enum { BLOCK_BYTES = 1 << 16 };
    char *block = output->file == stdout ? NULL : malloc(BLOCK_BYTES);
    if (block)
        setvbuf(output->file, block, _IOFBF, BLOCK_BYTES);
    write_object(output->file, false, fill, arg);
    output_close(output);
    free(block);
}

void json_write_line(const struct output *output, void (*fill)(struct json *, void *), void *arg)
{
    write_object(output->file, true, fill, arg);
    if (fflush(output->file) || ferror(output->file))
        die("cannot write %s:", output->path);
}
