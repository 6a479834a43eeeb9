/* oplog_dump.c: `SIM oplog FILE`: an op log as JSON lines, or summed up. */
#include "oplog_dump.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/dtype.h"
#include "base/human.h"
#include "base/ops.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "common/json.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "machine/stats.h"
#include "machine/tiling.h"
#include "oplog/log.h"
#include "report/resource.h"

static int oplog_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'s', "summary", NULL,
     "sum up by name and by line: how many operations, what they move and compute,\n"
     "how long they are served"},
    {0},
};

const struct subcommand oplog_subcommand = {
    "oplog", "FILE", "prints an op log as JSON lines, or its --summary",
    "Prints the op log that `run --oplog FILE` wrote, one JSON object a line, in data order: operations; behind each\n"
    "composite the stages of its tiles (\"of\" is the operation); with --trace-all what was reserved for it (\"ops\");\n"
    "at the end the hash of what each tensor holds.",
    options, oplog_main,
};

/* ---- what an operation does, as JSON */

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
    json_u64_array(json, "shape", view->shape, view->rank);
    json_u64_array(json, "stride", view->stride, view->rank);
    json_object_end(json);
}

static void write_gemm(struct json *json, const struct gemm *gemm)
{
    write_view(json, "a", &gemm->a);
    write_view(json, "b", &gemm->b);
    write_view(json, "c", &gemm->c);
    json_string(json, "acc", dtype_is_float(gemm->a.dtype) ? "f32" : "i32");
    json_u64_array(json, "tile", (uint64_t[]){gemm->tile_m, gemm->tile_k, gemm->tile_n}, 3);
    json_array(json, "epilogues");
    for (const struct gemm_epilogue *e = gemm->epilogue; e < gemm->epilogue + gemm->epilogues; e++) {
        json_object(json, NULL);
        json_string(json, "op", op_name(e->op));
        json_string(json, "scope", scope_words[e->scope]);
        if (e->has_operand)
            write_view(json, "operand", &e->operand);
        if (e->has_scalar)
            json_double(json, "scalar", e->scalar);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_math(struct json *json, const struct math *math)
{
    static const char *const relations[RELATIONS] = {[RELATION_eq] = "eq", [RELATION_ne] = "ne", [RELATION_lt] = "lt",
                                                     [RELATION_le] = "le", [RELATION_gt] = "gt", [RELATION_ge] = "ge"};
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
    if (op->kind == OPKIND_gemm) {
        write_gemm(json, &op->gemm);
    } else if (op->kind == OPKIND_math) {
        write_math(json, &op->math);
    } else if (op->pe == OP_OF_HOST) {
        write_fill(json, &op->fill);
    } else {
        write_view(json, "from", &op->copy.from);
        write_view(json, "to", &op->copy.to);
    }
    json_object_end(json);
}

/* ---- JSON lines
 *
 * An operation's record is in the log before the services of its command, which are known later. A first reading
 * collects them for all operations; a second one prints. */

/* What the first reading finds of an operation. */
struct served_op {
    uint64_t command;                                   /* command_key */
    struct services served;                             /* all 0 if no service is known */
};

struct command_op {
    uint64_t command, id;
};

struct op_index {
    struct ARRAY(struct served_op) ops;                 /* by id */
    struct command_op *by_command;                      /* sorted; NULL: no record names a command */
};

static int compare_command_ops(const void *a, const void *b)
{
    const struct command_op *x = a, *y = b;
    if (x->command != y->command)
        return x->command < y->command ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The records of one command are adjacent. The engines know one of them, whose services are those of all. */
static void share_services(const struct served_op *from, struct served_op *to)
{
    if (from->served.end_ps && !to->served.end_ps && from->command == to->command)
        to->served = from->served;
}

static struct op_index read_index(struct log_reader *reader)
{
    struct op_index index = {0};
    struct record record;
    bool depends = false;                               /* a record names a command */
    while (log_next(reader, &record)) {
        if (record.kind == RECORD_op) {
            depends |= record.op->afters > 0;
            *array_add(&index.ops) = (struct served_op){
                .command = command_key(record.op->serial, record.op->command)};
            free(record.op);
        } else if (record.kind == RECORD_reservation) {
            depends = true;
        } else if (record.kind == RECORD_services) {
            index.ops.at[record.services.id].served = record.services;
        }
    }
    size_t count = index.ops.count;
    for (size_t i = count; i-- > 1;)
        share_services(&index.ops.at[i], &index.ops.at[i - 1]);
    for (size_t i = 1; i < count; i++)
        share_services(&index.ops.at[i - 1], &index.ops.at[i]);
    if (!depends)
        return index;
    index.by_command = arena_alloc(count, sizeof *index.by_command);
    for (size_t i = 0; i < count; i++)
        index.by_command[i] = (struct command_op){index.ops.at[i].command, i};
    qsort(index.by_command, count, sizeof *index.by_command, compare_command_ops);
    return index;
}

/* The position in by_command of a command's first operation, or of the one that would be behind it. */
static size_t first_op(const struct op_index *index, uint64_t command)
{
    size_t low = 0, high = index->ops.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->by_command[middle].command < command)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_op_of(const struct op_index *index, size_t position, uint64_t command)
{
    return position < index->ops.count && index->by_command[position].command == command;
}

/* Writes the ids of a command's operations. */
static void write_ids(struct json *json, const struct op_index *index, uint64_t command)
{
    for (size_t i = first_op(index, command); is_op_of(index, i, command); i++)
        json_u64(json, NULL, index->by_command[i].id);
}

static void write_op(struct json *json, const struct op_index *index, const struct op *op)
{
    static const char *const kinds[] = {[OPKIND_memory] = "memory", [OPKIND_gemm] = "gemm", [OPKIND_math] = "math"};
    const struct services *served = &index->ops.at[op->id].served;
    json_u64(json, "op", op->id);
    json_string(json, "op_kind", kinds[op->kind]);
    json_string(json, "op_name", op->name);
    json_u64(json, "called_ps", op->at_ps);
    if (served->end_ps) {
        json_u64(json, "t_start", served->start_ps);
        json_u64(json, "t_end", served->end_ps);
        json_u64(json, "services", served->services);
    }
    json_string(json, "component", served->services ? place_name(rank_place(served->node)) : NULL);
    json_string(json, "pe", op->pe == OP_OF_HOST ? "host" : pe_name(&kb_pe[op->pe]));
    if (op->pe != OP_OF_HOST)
        json_u64(json, "command", op->command);
    if (op->request)
        json_u64(json, "request", op->request);
    json_string(json, "kernel", op->kernel);
    json_string(json, "file", op->file);
    json_u64(json, "line", op->line);
    json_array(json, "depends");
    for (uint32_t i = 0; i < op->afters; i++)
        write_ids(json, index, command_key(op->serial, op->after[i]));
    if (op->sent)
        json_u64(json, NULL, op->sent - 1);
    json_array_end(json);
    write_params(json, op);
}

static void write_tile(struct json *json, const struct tile_stage *tile)
{
    json_u64(json, "of", tile->id);
    json_u64(json, "tile", tile->tile);
    json_u64(json, "stage", tile->stage);
    json_string(json, "component", place_name(rank_place(tile->node)));
    json_u64(json, "t_start", tile->start_ps);
    json_u64(json, "t_end", tile->end_ps);
}

/* Whether it is printed: not if it was for a command that is not in the log, nor if the machine has no such resource. */
static bool is_shown(const struct op_index *index, const struct reservation *reservation)
{
    uint64_t command = command_key(reservation->cause.kernel, reservation->cause.number);
    if (reservation->number >= resource_count(reservation->resource))
        return false;
    return !reservation->cause.kernel || is_op_of(index, first_op(index, command), command);
}

/* Names the operations of its command, or the request of the host. */
static void write_reservation(struct json *json, const struct op_index *index, const struct reservation *reservation)
{
    struct cause cause = reservation->cause;
    if (cause.kernel) {
        json_array(json, "ops");
        write_ids(json, index, command_key(cause.kernel, cause.number));
        json_array_end(json);
    } else {
        json_u64(json, "request", cause.number);
    }
    resource_write(json, "component", reservation->resource, reservation->number);
    json_u64(json, "bytes", reservation->bytes);
    json_u64(json, "t_start", reservation->start_ps);
    json_u64(json, "t_end", reservation->end_ps);
}

static void print_lines(struct log_reader *reader, const struct op_index *index)
{
    struct record record;
    while (log_next(reader, &record)) {
        struct json json;
        bool is_reservation = record.kind == RECORD_reservation && is_shown(index, &record.reservation);
        if (record.kind != RECORD_op && record.kind != RECORD_tile && record.kind != RECORD_content && !is_reservation)
            continue;
        json_open(&json, stdout);
        json.one_line = true;
        json_object(&json, NULL);
        if (record.kind == RECORD_op) {
            write_op(&json, index, record.op);
            free(record.op);
        } else if (record.kind == RECORD_tile) {
            write_tile(&json, &record.tile);
        } else if (record.kind == RECORD_reservation) {
            write_reservation(&json, index, &record.reservation);
        } else {
            json_string(&json, "tensor", record.content.tensor->name);
            json_string(&json, "hash", arena_printf("%016" PRIx64, record.content.hash));
        }
        json_object_end(&json);
        json_close(&json);
    }
}

/* ---- the summary */

/* The operations of a name; in the table by line, of a name and line of a kernel or bench. */
struct summary_row {
    const char *name, *kernel, *file;
    uint32_t line;
    uint64_t count, bytes, time_ps;                     /* time: from the first service to the end of the last */
    double flops;
};

enum { BY_NAME, BY_LINE, TABLES };

struct op_summary {
    struct ARRAY(struct summary_row) tables[TABLES];
    struct ARRAY(struct summary_place {
        uint32_t row[TABLES];
    }) places;                                          /* of each operation, for its services, which are known later */
    uint64_t tiles;
    bool good;                                          /* the run ended well */
};

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static size_t find_row(struct op_summary *s, unsigned table, const struct summary_row *like)
{
    for (size_t i = 0; i < s->tables[table].count; i++) {
        const struct summary_row *row = &s->tables[table].at[i];
        if (row->line == like->line && same(row->name, like->name) && same(row->kernel, like->kernel)
            && same(row->file, like->file))
            return i;
    }
    *array_add(&s->tables[table]) = *like;
    return s->tables[table].count - 1;
}

/* Bytes that an operation reads and writes. */
static uint64_t op_bytes(const struct op *op)
{
    if (op->kind == OPKIND_gemm)
        return view_bytes_of(&op->gemm.a) + view_bytes_of(&op->gemm.b) + view_bytes_of(&op->gemm.c);
    if (op->kind == OPKIND_memory)
        return op->pe != OP_OF_HOST ? view_bytes_of(&op->copy.to)
                                    : op->fill.tensor->elements * dtype_bytes[op->fill.tensor->dtype];
    uint64_t bytes = view_bytes_of(&op->math.to);
    for (unsigned i = 0; i < math_views(&op->math); i++)
        bytes += view_bytes_of(&op->math.operand[i]);
    return bytes;
}

static double op_flops(const struct op *op)
{
    if (op->kind == OPKIND_math)
        return (double)view_elements(op->math.axis == NO_AXIS ? &op->math.to : &op->math.operand[0]);
    return op->kind == OPKIND_memory ? 0 : 2.0 * (double)view_elements(&op->gemm.c) * (double)op->gemm.a.shape[1];
}

static void count_op(struct op_summary *s, const struct op *op)
{
    const struct summary_row likes[TABLES] = {
        [BY_NAME] = {.name = op->name},
        [BY_LINE] = {.name = op->name, .kernel = op->kernel, .file = op->file, .line = op->line}};
    struct summary_place *place = array_add(&s->places);
    for (unsigned table = 0; table < TABLES; table++) {
        size_t i = find_row(s, table, &likes[table]);
        struct summary_row *row = &s->tables[table].at[i];
        place->row[table] = (uint32_t)i;
        row->count++;
        row->bytes += op_bytes(op);
        row->flops += op_flops(op);
    }
}

static int most_first(const void *x, const void *y)
{
    const struct summary_row *a = x, *b = y;
    if (a->time_ps != b->time_ps)
        return a->time_ps > b->time_ps ? -1 : 1;
    return a->count != b->count ? (a->count > b->count ? -1 : 1) : strcmp(a->name, b->name);
}

static void print_table(struct op_summary *s, unsigned table)
{
    struct summary_row *rows = s->tables[table].at;
    size_t count = s->tables[table].count;
    printf("\n%12s  %-12s %-12s %-12s %s\n", "operations", "bytes", "computed", "served for",
           table == BY_LINE ? "by line" : "by name");
    if (count)
        qsort(rows, count, sizeof *rows, most_first);
    for (const struct summary_row *row = rows; row < rows + count; row++) {
        printf("%12" PRIu64 "  %-12s %-12s %-12s %s", row->count, human_bytes(row->bytes),
               row->flops > 0 ? human_count(row->flops, "OP") : "-", row->time_ps ? human_time(row->time_ps) : "-",
               row->name);
        if (table == BY_LINE)
            printf(", %s%s%s:%" PRIu32, row->kernel ? row->kernel : "host", row->file ? " " : "",
                   row->file ? row->file : "", row->line);
        putchar('\n');
    }
}

static void print_summary(struct log_reader *reader, const struct log_head *head)
{
    struct op_summary s = {0};
    struct record record;
    while (log_next(reader, &record))
        switch (record.kind) {
        case RECORD_op:
            count_op(&s, record.op);
            free(record.op);
            break;
        case RECORD_services:
            for (unsigned table = 0; table < TABLES; table++)
                s.tables[table].at[s.places.at[record.services.id].row[table]].time_ps +=
                    record.services.end_ps - record.services.start_ps;
            break;
        case RECORD_tile: s.tiles++; break;
        case RECORD_end: s.good = record.ending.good; break;
        default: break;
        }
    printf("%s on %s, seed %" PRIu64 ": %zu operations, %" PRIu64 " stages of tiles%s\n", head->bench, kb_machine_name,
           head->seed, s.places.count, s.tiles, s.good ? "" : "; the run did not end well");
    print_table(&s, BY_NAME);
    print_table(&s, BY_LINE);
    array_free(&s.places);
    for (unsigned table = 0; table < TABLES; table++)
        array_free(&s.tables[table]);
}

static int oplog_main(int argc, char **argv)
{
    bool summary = false;
    while (subcommand_option(&oplog_subcommand, argc, argv) != -1)
        summary = true;
    const char *path = subcommand_argument(&oplog_subcommand, argc, argv, "one op log");
    struct log_reader reader;
    struct log_head head = log_read_file(&reader, path);
    if (summary) {
        print_summary(&reader, &head);
        return STATUS_GOOD;
    }
    struct op_index index = read_index(&reader);
    log_read_file(&reader, path);
    print_lines(&reader, &index);
    array_free(&index.ops);
    return STATUS_GOOD;
}
