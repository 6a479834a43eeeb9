/* show_summary.c: an op log, summed up: how many operations, what they move and compute, how long they take. */
#include "show_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/emitted.h"
#include "base/human.h"
#include "machine/tiling.h"
#include "common/arena.h"

/* The operations of a line and name; or of a name, where `file` is NULL. */
struct row {
    const char *name, *kernel, *file;
    uint32_t line;
    uint64_t count, bytes, time_ps;                     /* time: from the first service to the last one's end */
    double flops;
};

static struct row *rows[2];                             /* by name; by line */
static size_t counts[2];

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static size_t row_of(unsigned table, const struct row *like)
{
    for (size_t i = 0; i < counts[table]; i++) {
        const struct row *row = &rows[table][i];
        if (row->line == like->line && same(row->name, like->name) && same(row->kernel, like->kernel)
            && same(row->file, like->file))
            return i;
    }
    rows[table] = arena_grow(rows[table], counts[table], sizeof *rows[table]);
    rows[table][counts[table]] = *like;
    return counts[table]++;
}

/* What it reads and writes. */
static uint64_t bytes_of(const struct op *op)
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

static double flops_of(const struct op *op)
{
    if (op->kind == OPKIND_math)
        return (double)view_elements(op->math.axis == NO_AXIS ? &op->math.to : &op->math.operand[0]);
    return op->kind == OPKIND_memory ? 0 : 2.0 * (double)view_elements(&op->gemm.c) * (double)op->gemm.a.shape[1];
}

/* The row of each table that an operation counts in, for when its services become known. */
struct counted {
    uint32_t row[2];
};

static struct counted *places;
static uint64_t ops;

static void count_op(const struct op *op)
{
    struct row likes[] = {{.name = op->name}, {op->name, op->kernel, op->file, op->line, 0, 0, 0, 0}};
    places = arena_grow(places, ops, sizeof *places);
    for (unsigned table = 0; table < 2; table++) {
        size_t i = row_of(table, &likes[table]);
        places[ops].row[table] = (uint32_t)i;
        rows[table][i].count++;
        rows[table][i].bytes += bytes_of(op);
        rows[table][i].flops += flops_of(op);
    }
    ops++;
}

static void count_services(const struct services *services)
{
    for (unsigned table = 0; table < 2; table++)
        rows[table][places[services->id].row[table]].time_ps += services->end_ps - services->start_ps;
}

static int most_first(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    if (a->time_ps != b->time_ps)
        return a->time_ps > b->time_ps ? -1 : 1;
    return a->count != b->count ? (a->count > b->count ? -1 : 1) : strcmp(a->name, b->name);
}

static void print_table(unsigned table)
{
    if (counts[table])
        qsort(rows[table], counts[table], sizeof *rows[table], most_first);
    for (size_t i = 0; i < counts[table]; i++) {
        const struct row *row = &rows[table][i];
        printf("%12" PRIu64 "  %-12s %-12s %-12s %s", row->count, human_bytes(row->bytes),
               row->flops > 0 ? human_count(row->flops, "OP") : "-", row->time_ps ? human_time(row->time_ps) : "-",
               row->name);
        if (table)
            printf(", %s%s%s:%" PRIu32, row->kernel ? row->kernel : "host", row->file ? " " : "",
                   row->file ? row->file : "", row->line);
        putchar('\n');
    }
}

void show_summary(struct log_reader *reader, const struct log_head *head)
{
    struct record record;
    uint64_t tiles = 0;
    bool good = false;
    while (log_next(reader, &record))
        switch (record.kind) {
        case RECORD_op:
            count_op(record.op);
            free(record.op);
            break;
        case RECORD_services: count_services(&record.services); break;
        case RECORD_tile: tiles++; break;
        case RECORD_end: good = record.ending.good; break;
        default: break;
        }
    printf("%s on %s, seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " stages of tiles%s\n\n", head->bench,
           kb_machine_name, head->seed, ops, tiles, good ? "" : "; the run did not end well");
    printf("%12s  %-12s %-12s %-12s %s\n", "operations", "bytes", "computed", "served for", "by name");
    print_table(0);
    printf("\n%12s  %-12s %-12s %-12s %s\n", "operations", "bytes", "computed", "served for", "by line");
    print_table(1);
}
