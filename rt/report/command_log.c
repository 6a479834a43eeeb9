/* command_log.c: the fields of a command by the names that a command stream has for them. */
#include "command_log.h"

#include "base/dtype.h"
#include "base/ops.h"
#include "base/output.h"
#include "common/json.h"
#include "launch/kernel.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "machine/peers.h"

static struct output output;

/* ---- fields */

static void write_address(struct json *json, const char *key, const struct command *command, unsigned operand)
{
    static const char *const spaces[] = {[SPACE_HBM] = "hbm", [SPACE_TCM] = "tcm", [SPACE_SRAM] = "sram"};
    uint64_t address = command->ask.address[operand], space = address >> OFFSET_BITS & 0xf;
    json_object(json, key);
    if (command->ask.virtual_address[operand] || space >= SPACES) {
        json_u64(json, "va", address);
    } else {
        json_string(json, "space", spaces[space]);
        json_u64(json, "sip", address >> 48 & 0xff);
        json_u64(json, "cube", address >> 40 & 0xff);
        json_u64(json, "pe", address >> 56);
        json_u64(json, "offset", address & OFFSET_MASK);
    }
    json_object_end(json);
}

static void write_move(struct json *json, const struct command *command, const char *memory, const char *tcm)
{
    write_address(json, memory, command, OPERAND_A);
    json_u64(json, tcm, command->ask.tcm);
    json_u64(json, "bytes", command->ask.bytes);
    if (command->ask.listed)
        json_u64(json, "runs", command->ask.listed);
    else if (command->ask.runs)
        json_u64(json, "runs", runs_number(command->ask.runs));
}

/* The PE that a send goes to, or a list of them. */
static void write_peers(struct json *json, const char *key, const struct request *ask)
{
    struct pe_list peers = peers_of(ask);
    if (peers.count > 1)
        json_array(json, key);
    for (uint32_t i = 0; i < peers.count; i++)
        json_string(json, peers.count > 1 ? NULL : key, pe_name(&kb_pe[peers.pe[i]]));
    if (peers.count > 1)
        json_array_end(json);
}

static void write_epilogue(struct json *json, const struct request *ask)
{
    json_array(json, "epilogue");
    for (uint32_t i = 0; i < ask->epilogues; i++) {
        json_object(json, NULL);
        json_string(json, "op", op_name(ask->epilogue[i].op));
        json_string(json, "scope", scope_words[ask->epilogue[i].scope]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_gemm_tiles(struct json *json, const struct command *command)
{
    static const char *const operands[] = {"a", "b"};
    const struct request *ask = &command->ask;
    json_string(json, "op", "gemm");
    json_u64_array(json, "tile", (uint64_t[]){ask->tile_m, ask->tile_k, ask->tile_n}, 3);
    json_string(json, "out_dtype", dtype_words[ask->out_dtype]);
    json_array(json, "pinned");
    for (unsigned i = 0; i < 2; i++)
        if (ask->pinned[i])
            json_string(json, NULL, operands[i]);
    json_array_end(json);
    for (unsigned i = 0; i < 2; i++)
        if (!ask->pinned[i])
            write_address(json, operands[i], command, i);
    write_address(json, "c", command, OPERAND_C);
    if (ask->epilogues)
        write_epilogue(json, ask);
}

static void write_math_tiles(struct json *json, const struct command *command)
{
    const struct request *ask = &command->ask;
    json_string(json, "op", "math");
    json_string(json, "fn", op_name(ask->op));
    json_u64(json, "m", ask->m);
    json_u64(json, "n", ask->n);
    json_u64_array(json, "tile", (uint64_t[]){ask->tile_m, ask->tile_n}, 2);
    json_string(json, "dtype", dtype_words[ask->dtype]);
    json_string(json, "out_dtype", dtype_words[ask->out_dtype]);
    write_address(json, "src", command, OPERAND_A);
    write_address(json, "dst", command, OPERAND_C);
}

static void write_gemm(struct json *json, const struct request *ask)
{
    json_u64(json, "m", ask->m);
    json_u64(json, "k", ask->k);
    json_u64(json, "n", ask->n);
    json_string(json, "dtype", dtype_words[ask->dtype]);
}

static void write_fields(struct json *json, const struct command *command)
{
    const struct request *ask = &command->ask;
    switch ((enum command_kind)ask->kind) {
    case COMMAND_load: write_move(json, command, "from", "to"); break;
    case COMMAND_store: write_move(json, command, "to", "from"); break;
    case COMMAND_send:
        write_peers(json, "to", ask);
        json_u64(json, "from", ask->tcm);
        json_u64(json, "bytes", ask->bytes);
        break;
    case COMMAND_recv:
        json_string(json, "from", pe_name(&kb_pe[ask->peer]));
        json_u64(json, "to", ask->tcm);
        break;
    case COMMAND_gemm: write_gemm(json, ask); break;
    case COMMAND_math:
        json_string(json, "op", op_name(ask->op));
        json_u64(json, "elems", ask->n);
        json_string(json, "dtype", dtype_words[ask->dtype]);
        break;
    case COMMAND_gemm_tiles:
        write_gemm(json, ask);
        write_gemm_tiles(json, command);
        break;
    case COMMAND_math_tiles: write_math_tiles(json, command); break;
    case COMMANDS: break;
    }
}

/* ---- records */

/* The number of a launch among those of the run. */
static uint64_t launch_number(const struct launch *launch)
{
    static const struct launch *last;
    static uint64_t number;
    if (launch == last)
        return number;
    number = 0;
    for (const struct launch *before = launches; before != launch; before = before->next)
        number++;
    last = launch;
    return number;
}

static struct json record_begin(uint64_t t_ps, const struct tl *tl)
{
    struct json json;
    json_open(&json, output.file);
    json.one_line = true;
    json_object(&json, NULL);
    json_u64(&json, "t_ps", t_ps);
    json_string(&json, "pe", pe_name(tl->pe));
    json_u64(&json, "launch", launch_number(tl->launch));
    return json;
}

static void record_end(struct json *json)
{
    json_object_end(json);
    json_close(json);
}

static void write_kernel(const char *word, const struct tl *tl)
{
    struct json json = record_begin(now_ps, tl);
    json_string(&json, "do", word);
    record_end(&json);
}

static void kernel_begins(const struct tl *tl)
{
    write_kernel("begin", tl);
}

static void kernel_ends(const struct tl *tl)
{
    write_kernel("end", tl);
}

static void command_completed(const struct command *command)
{
    struct json json = record_begin(command->submitted_ps, command->pe->kernel);
    json_u64(&json, "done_ps", command->complete_ps);
    json_u64(&json, "cmd", command->number);
    json_string(&json, "do", command_words[command->ask.kind]);
    write_fields(&json, command);
    record_end(&json);
}

void command_log_open(const char *path)
{
    output = output_open(path);
    observer_watch(&command_log_observer, true);
}

void command_log_close(void)
{
    if (command_log_observer.watches)
        output_close(&output);
    observer_watch(&command_log_observer, false);
}

struct observer command_log_observer = {
    .name = "log of commands",
    .needs_every_event = true,
    .kernel_begins = kernel_begins,
    .kernel_ends = kernel_ends,
    .command_completed = command_completed,
};
