/* trace.c: collects the trace events of an instant, orders them, writes them. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/event.h"
#include "machine/fabric.h"
#include "base/output.h"
#include "base/stopwatch.h"
#include "common/diag.h"

static const char *const trace_names[TRACE_KINDS] = {
#define TRACE(name) #name,
#include "kb/trace.def"
#undef TRACE
};

struct trace_entry {
    uint32_t rank, command;
    uint64_t tile;                                      /* its id + 1; 0: none */
    int64_t stage;
    enum trace_kind kind;
};

bool trace_on;
static struct output output;
static struct trace_entry *entries;
static size_t count, room;

void trace_open(const char *path)
{
    output = output_open(path);
    trace_on = true;
}

void trace_add(enum trace_kind kind, const struct command *command, enum node_kind part, uint64_t tile, int64_t stage)
{
    if (count == room) {
        room = room ? 2 * room : 256;
        entries = realloc(entries, room * sizeof *entries);
        if (!entries)
            die("no memory for the trace of an instant");
    }
    uint32_t rank = pe_rank(command->pe, part);
    entries[count++] = (struct trace_entry){rank, command->number, tile, stage, kind};
}

static int compare(const void *a, const void *b)
{
    const struct trace_entry *x = a, *y = b;
#define BY(field) if (x->field != y->field) return x->field < y->field ? -1 : 1
    BY(rank);
    BY(command);
    BY(tile);
    BY(stage);
    BY(kind);
#undef BY
    return 0;
}

void trace_instant_write(void)
{
    phase_enter(PHASE_trace);
    if (count > 1)
        qsort(entries, count, sizeof *entries, compare);
    for (size_t i = 0; i < count; i++) {
        const struct trace_entry *e = &entries[i];
        fprintf(output.file,
                "{\"t\":%" PRIu64 ",\"ev\":\"%s\",\"node\":\"%s\",\"cmd\":%" PRIu32 ",\"tile\":%" PRId64
                ",\"stage\":%" PRId64 "}\n",
                now_ps, trace_names[e->kind], place_name(rank_place(e->rank)), e->command, (int64_t)e->tile - 1,
                e->stage);
    }
    count = 0;
}

void trace_close(void)
{
    if (trace_on)
        output_close(&output);
    trace_on = false;
}
