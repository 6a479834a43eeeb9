/* oplog_dump.c: `SIM oplog FILE`: an op log as JSON lines. show_summary.c sums it up.
 *
 * When an operation was served stands behind its record: a first reading finds that for all of them, a second one
 * prints. */
#include "oplog_dump.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "base/dtype.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "common/json.h"
#include "base/ops.h"
#include "machine/tiling.h"
#include "show_summary.h"
#include "common/arena.h"
#include "common/diag.h"

static const char *const kinds[] = {[OPKIND_memory] = "memory", [OPKIND_gemm] = "gemm", [OPKIND_math] = "math"};
static const char *const scopes[SCOPES] = {[SCOPE_K_TILE] = "k_tile", [SCOPE_OUTPUT_TILE] = "output_tile",
                                           [SCOPE_ONCE] = "once"};
static const char *const relations[RELATIONS] = {[RELATION_eq] = "eq", [RELATION_ne] = "ne", [RELATION_lt] = "lt",
                                                 [RELATION_le] = "le", [RELATION_gt] = "gt", [RELATION_ge] = "ge"};

/* ---- what an operation does */

static void write_numbers(struct json *json, const char *key, const uint64_t *numbers, uint32_t count)
{
    json_array(json, key);
    for (uint32_t i = 0; i < count; i++)
        json_u64(json, NULL, numbers[i]);
    json_array_end(json);
}

static void write_view(struct json *json, const char *key, const struct view *view)
{
    json_object(json, key);
    if (view->memory == store_messages())
        json_string(json, "at", arena_printf("message+0x%" PRIx64, view->offset));
    else if (view->memory == store_staging())
        json_string(json, "at", arena_printf("staging+0x%" PRIx64, view->offset));
    else
        json_string(json, "at", address_name(memory_address(view->memory, view->offset)));
    json_string(json, "dtype", dtype_words[view->dtype]);
    write_numbers(json, "shape", view->shape, view->rank);
    write_numbers(json, "stride", view->stride, view->rank);
    json_object_end(json);
}

static void write_epilogue(struct json *json, const struct gemm_epilogue *e)
{
    json_object(json, NULL);
    json_string(json, "op", op_name(e->op));
    json_string(json, "scope", scopes[e->scope]);
    if (e->has_operand)
        write_view(json, "operand", &e->operand);
    if (e->has_scalar)
        json_double(json, "scalar", e->scalar);
    json_object_end(json);
}

static void write_gemm(struct json *json, const struct gemm *gemm)
{
    write_view(json, "a", &gemm->a);
    write_view(json, "b", &gemm->b);
    write_view(json, "c", &gemm->c);
    json_string(json, "acc", dtype_is_float(gemm->a.dtype) ? "f32" : "i32");
    write_numbers(json, "tile", (uint64_t[]){gemm->tile_m, gemm->tile_k, gemm->tile_n}, 3);
    json_array(json, "epilogues");
    for (uint32_t i = 0; i < gemm->epilogues; i++)
        write_epilogue(json, &gemm->epilogue[i]);
    json_array_end(json);
}

static void write_math(struct json *json, const struct math *math)
{
    json_array(json, "in");
    for (unsigned i = 0; i < math_views(math); i++)
        write_view(json, NULL, &math->operand[i]);
    json_array_end(json);
    if (math->has_scalar)
        json_double(json, "scalar", math->scalar);
    if (math->op == OP_cmp)
        json_string(json, "relation", relations[math->relation]);
    if (math->axis != NO_AXIS)
        json_u64(json, "axis", (uint64_t)math->axis);
    write_view(json, "to", &math->to);
}

static void write_fill(struct json *json, const struct fill *fill)
{
    static const char *const fills[] = {[KB_CONSTANT] = "constant", [KB_UNIFORM] = "uniform", [KB_NORMAL] = "normal",
                                        [KB_GIVEN] = "given"};
    json_string(json, "tensor", fill->tensor->name);
    json_string(json, "fill", fills[fill->kind]);
    if (fill->kind != KB_GIVEN)
        json_double(json, "x", fill->x);
    if (fill->kind == KB_UNIFORM || fill->kind == KB_NORMAL)
        json_double(json, "y", fill->y);
}

static void write_params(struct json *json, const struct op *op)
{
    json_object(json, "params");
    if (op->kind == OPKIND_gemm)
        write_gemm(json, &op->gemm);
    else if (op->kind == OPKIND_math)
        write_math(json, &op->math);
    else if (op->pe == OP_OF_HOST)
        write_fill(json, &op->fill);
    else
        write_view(json, "from", &op->copy.from), write_view(json, "to", &op->copy.to);
    json_object_end(json);
}

/* ---- what a first reading finds of each operation, by id */

static struct found {
    uint64_t command;                                   /* command_key */
    struct services served;
} *found;
static uint64_t ops;
static uint64_t *by_command;                            /* their ids, in the order of commands */

static int compare_commands(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    if (found[x].command != found[y].command)
        return found[x].command < found[y].command ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void sort_by_command(void)
{
    by_command = arena_alloc(ops, sizeof *by_command);
    for (uint64_t i = 0; i < ops; i++)
        by_command[i] = i;
    qsort(by_command, ops, sizeof *by_command, compare_commands);
}

/* The ids of a command's operations. */
static void write_ids(struct json *json, uint64_t command)
{
    uint64_t low = 0, high = ops;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (found[by_command[middle]].command < command)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < ops && found[by_command[low]].command == command; low++)
        json_u64(json, NULL, by_command[low]);
}

/* ---- lines */

static void line_begin(struct json *json)
{
    json_open(json, stdout);
    json->one_line = true;
    json_object(json, NULL);
}

static void line_end(struct json *json)
{
    json_object_end(json);
    json_close(json);
}

/* `served`: all 0 where no service is known. */
static void print_op(const struct op *op, const struct services *served)
{
    struct json json;
    line_begin(&json);
    json_u64(&json, "op", op->id);
    json_string(&json, "op_kind", kinds[op->kind]);
    json_string(&json, "op_name", op->name);
    json_u64(&json, "called_ps", op->at_ps);
    if (served->end_ps) {
        json_u64(&json, "t_start", served->start_ps);
        json_u64(&json, "t_end", served->end_ps);
        json_u64(&json, "services", served->services);
    }
    json_string(&json, "component", served->services ? place_name(rank_place(served->node)) : NULL);
    json_string(&json, "pe", op->pe == OP_OF_HOST ? "host" : pe_name(&kb_pe[op->pe]));
    if (op->pe != OP_OF_HOST)
        json_u64(&json, "command", op->command);
    json_string(&json, "kernel", op->kernel);
    json_string(&json, "file", op->file);
    json_u64(&json, "line", op->line);
    json_array(&json, "depends");
    for (uint32_t i = 0; i < op->afters; i++)
        write_ids(&json, command_key(op->serial, op->after[i]));
    if (op->sent)
        json_u64(&json, NULL, op->sent - 1);
    json_array_end(&json);
    write_params(&json, op);
    line_end(&json);
}

static void print_tile(const struct tile_stage *tile)
{
    struct json json;
    line_begin(&json);
    json_u64(&json, "of", tile->id);
    json_u64(&json, "tile", tile->tile);
    json_u64(&json, "stage", tile->stage);
    json_string(&json, "component", place_name(rank_place(tile->node)));
    json_u64(&json, "t_start", tile->start_ps);
    json_u64(&json, "t_end", tile->end_ps);
    line_end(&json);
}

static void print_content(const struct content *content)
{
    struct json json;
    line_begin(&json);
    json_string(&json, "tensor", content->tensor->name);
    json_string(&json, "hash", arena_printf("%016" PRIx64, content->hash));
    line_end(&json);
}


/* The records of one command stand side by side; the engines know one of them, whose services are those of all. */
static void share(uint64_t from, uint64_t to)
{
    if (found[from].served.end_ps && !found[to].served.end_ps && found[from].command == found[to].command)
        found[to].served = found[from].served;
}

static void look_through(struct log_reader *reader)
{
    struct record record;
    bool named = false;
    while (log_next(reader, &record)) {
        if (record.kind == RECORD_op) {
            named |= record.op->afters > 0;
            found = arena_grow(found, ops, sizeof *found);
            found[ops++] = (struct found){.command = command_key(record.op->serial, record.op->command)};
            free(record.op);
        } else if (record.kind == RECORD_services) {
            found[record.services.id].served = record.services;
        }
    }
    for (uint64_t i = ops; i-- > 1;)
        share(i, i - 1);
    for (uint64_t i = 1; i < ops; i++)
        share(i - 1, i);
    if (named)
        sort_by_command();
}

static void print_all(struct log_reader *reader)
{
    struct record record;
    while (log_next(reader, &record)) {
        if (record.kind == RECORD_op) {
            print_op(record.op, &found[record.op->id].served);
            free(record.op);
        } else if (record.kind == RECORD_tile) {
            print_tile(&record.tile);
        } else if (record.kind == RECORD_content) {
            print_content(&record.content);
        }
    }
}

static void help(void)
{
    puts("usage: SIM oplog FILE [OPTIONS]\n"
         "\n"
         "Prints the op log that `run --oplog FILE` left, a JSON object a line, in data order: operations, behind\n"
         "composites the stages of their tiles (\"of\": the operation), at last the hash of what each tensor holds.\n"
         "  --summary       how many operations of each name and line, what they move and compute, how long they take\n"
         "Exit status: 0 good, 2 wrong usage, or a file that is damaged or of another machine, 3 error of the host.");
}

int show_main(int argc, char **argv)
{
    static const struct option options[] = {{"summary", no_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
                                            {0}};
    bool summary = false;
    argv[0] = (char *)program_name;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (option) {
        case 's': summary = true; break;
        case 'h': help(); return 0;
        default: fprintf(stderr, "see %s oplog --help\n", program_name); return 2;
        }
    if (argc - optind != 1)
        usage_error("oplog takes one op log; see %s oplog --help", program_name);
    struct log_reader reader;
    struct log_head head = log_read_file(&reader, argv[optind]);
    if (summary) {
        show_summary(&reader, &head);
        return 0;
    }
    look_through(&reader);
    log_read_file(&reader, argv[optind]);
    print_all(&reader);
    return 0;
}
