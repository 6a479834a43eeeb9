/* trace.c: collects the trace events of an instant, sorts them and writes them. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/output.h"
#include "base/stopwatch.h"
#include "common/array.h"
#include "machine/pe.h"

enum trace_kind {
#define TRACE(name) TRACE_##name,
#include "kb/trace.def"
#undef TRACE
    TRACE_KINDS
};

static const char *const trace_names[TRACE_KINDS] = {
#define TRACE(name) #name,
#include "kb/trace.def"
#undef TRACE
};

struct trace_entry {
    uint32_t rank, command;
    uint64_t tile;                                      /* its id + 1; 0 if there is no tile */
    int64_t stage;
    enum trace_kind kind;
};

static struct output output;
static struct ARRAY(struct trace_entry) entries;        /* of this instant */

void trace_open(const char *path)
{
    output = output_open(path);
    observer_watch(&trace_observer, true);
}

/* ---- handlers of moments */

static void add(enum trace_kind kind, const struct command *command, enum node_kind part, uint64_t tile, int64_t stage)
{
    uint32_t rank = pe_rank(command->pe, part);
    *array_add(&entries) = (struct trace_entry){rank, command->number, tile, stage, kind};
}

static void add_tile(enum trace_kind kind, const struct token *token, enum node_kind part)
{
    add(kind, token->command, part, token->tile.id + 1, token->stage.index);
}

static void command_submitted(const struct command *command)
{
    add(TRACE_command_submitted, command, NODE_pe_scheduler, 0, -1);
}

/* A receive has no token yet when it is dispatched. */
static void command_scheduled(const struct command *command)
{
    if (command->ask.kind == COMMAND_recv)
        add(TRACE_sub_command_dispatched, command, NODE_pe_scheduler, 1, 0);
}

static void command_completed(const struct command *command)
{
    add(TRACE_command_complete, command, NODE_pe_scheduler, 0, -1);
}

static void tile_queued(const struct token *token)
{
    if (!token->dispatched)
        add_tile(TRACE_sub_command_dispatched, token, NODE_pe_scheduler);
}

static void service_starts(const struct token *token)
{
    add_tile(TRACE_engine_start, token, stage_node(token->stage.kind));
}

static void service_ends(const struct token *token)
{
    add_tile(TRACE_engine_complete, token, stage_node(token->stage.kind));
    if (token->stage.kind == STAGE_FETCH)
        add_tile(TRACE_tile_ready, token, stage_node(STAGE_FETCH));
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

static void instant_ends(void)
{
    phase_enter(PHASE_trace);
    if (entries.count > 1)
        qsort(entries.at, entries.count, sizeof *entries.at, compare);
    for (size_t i = 0; i < entries.count; i++) {
        const struct trace_entry *e = &entries.at[i];
        fprintf(output.file,
                "{\"t\":%" PRIu64 ",\"ev\":\"%s\",\"node\":\"%s\",\"cmd\":%" PRIu32 ",\"tile\":%" PRId64
                ",\"stage\":%" PRId64 "}\n",
                now_ps, trace_names[e->kind], place_name(rank_place(e->rank)), e->command, (int64_t)e->tile - 1,
                e->stage);
    }
    entries.count = 0;
}

void trace_close(void)
{
    if (trace_observer.watches)
        output_close(&output);
    observer_watch(&trace_observer, false);
}

struct observer trace_observer = {
    .name = "trace",
    .needs_every_event = true,
    .instant_ends = instant_ends,
    .command_submitted = command_submitted,
    .command_scheduled = command_scheduled,
    .command_completed = command_completed,
    .tile_queued = tile_queued,
    .service_starts = service_starts,
    .service_ends = service_ends,
};
