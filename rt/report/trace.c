/* trace.c: collects the trace events of an instant, sorts them and writes them. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/output.h"
#include "base/stopwatch.h"
#include "common/array.h"
#include "launch/host_request.h"
#include "launch/kernel.h"
#include "machine/pe.h"
#include "resource.h"

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
    uint64_t request;                                   /* of the host, that the command is of */
};

static struct output output;
static struct trace_visitor visitor;
static struct ARRAY(struct trace_entry) entries;        /* of this instant */
static struct ARRAY(const struct tl *) kernels;         /* by serial number, from 1 on */

void trace_open(const char *path, bool all)
{
    output = output_open(path);
    observer_watch(&trace_observer, true);
    observer_watch(&components_observer, all);
}

void trace_visit(struct trace_visitor visits)
{
    visitor = visits;
    observer_watch(&trace_observer, visits.event);
}

/* ---- handlers of moments */

static void add(enum trace_kind kind, const struct command *command, enum node_kind part, uint64_t tile, int64_t stage)
{
    uint32_t rank = pe_rank(command->pe, part);
    *array_add(&entries) =
        (struct trace_entry){rank, command->number, tile, stage, kind, command->pe->kernel->request};
}

static void add_tile(enum trace_kind kind, const struct token *token, enum node_kind part)
{
    add(kind, token->command, part, token->tile.id + 1, token->stage->index);
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
    add_tile(TRACE_engine_start, token, stage_node(token->stage->kind));
}

static void service_ends(const struct token *token)
{
    add_tile(TRACE_engine_complete, token, stage_node(token->stage->kind));
    if (token->stage->kind == STAGE_FETCH)
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
        char line[512];
        int length = snprintf(line, sizeof line,
                              "{\"t\":%" PRIu64 ",\"ev\":\"%s\",\"node\":\"%s\",\"cmd\":%" PRIu32 ",\"tile\":%" PRId64
                              ",\"stage\":%" PRId64,
                              now_ps, trace_names[e->kind], place_name(rank_place(e->rank)), e->command,
                              (int64_t)e->tile - 1, e->stage);
        if (components_observer.watches)
            length += snprintf(line + length, sizeof line - (size_t)length, ",\"request\":%" PRIu64, e->request);
        line[length] = '}';
        line[length + 1] = '\0';
        if (visitor.event)
            visitor.event(visitor.user, now_ps, trace_names[e->kind], line);
        else
            fprintf(output.file, "%s\n", line);
    }
    entries.count = 0;
}

void trace_close(void)
{
    if (trace_observer.watches)
        output_close(&output);
    observer_watch(&trace_observer, false);
    observer_watch(&components_observer, false);
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

/* ---- all components */

/* Begins a row, whose node the caller writes. */
static struct json row_begin(const char *event)
{
    struct json json;
    json_open(&json, output.file);
    json.one_line = true;
    json_object(&json, NULL);
    json_u64(&json, "t", now_ps);
    json_string(&json, "ev", event);
    return json;
}

static void row_end(struct json *json)
{
    json_object_end(json);
    json_close(json);
}

/* Writes the request of the host that a row belongs to; of a command also its PE and its number. */
static void write_cause(struct json *json, struct cause cause)
{
    if (!cause.kernel) {
        json_u64(json, "request", cause.number);
        return;
    }
    const struct tl *kernel = kernels.at[cause.kernel - 1];
    json_u64(json, "request", kernel->request);
    json_string(json, "pe", pe_name(kernel->pe));
    json_u64(json, "cmd", cause.number);
}

static void write_kernel(const char *event, const struct tl *tl)
{
    struct json row = row_begin(event);
    json_string(&row, "node", place_name(rank_place(pe_rank(tl->pe, NODE_pe_cpu))));
    json_u64(&row, "request", tl->request);
    row_end(&row);
}

static void kernel_begins(const struct tl *tl)
{
    while (kernels.count < tl->serial)
        *array_add(&kernels) = NULL;
    kernels.at[tl->serial - 1] = tl;
    write_kernel("kernel_begin", tl);
}

static void kernel_ends(const struct tl *tl)
{
    write_kernel("kernel_end", tl);
}

static void write_request(const char *event, const struct memory_request *request)
{
    struct json row = row_begin(event);
    json_string(&row, "node", place_name(place_host()));
    json_u64(&row, "request", request->fanout.correlation);
    row_end(&row);
}

static void host_request_begins(const struct memory_request *request)
{
    write_request("request_begin", request);
}

static void host_request_ends(const struct memory_request *request)
{
    write_request("request_end", request);
}

static void control_sent(const struct message *message, uint64_t leave_ps, uint64_t delivered_ps)
{
    struct json row = row_begin("control");
    json_string(&row, "node", place_name(rank_place(route_from_rank(message->route))));
    json_string(&row, "to", place_name(rank_place(route_to_rank(message->route))));
    json_u64(&row, "start", leave_ps);
    json_u64(&row, "end", delivered_ps);
    write_cause(&row, message->cause);
    row_end(&row);
}

static void translated(const struct pe *pe, uint64_t from_ps, uint64_t length_ps)
{
    struct json row = row_begin("translated");
    json_string(&row, "node", place_name(rank_place(pe_rank(pe, NODE_pe_mmu))));
    json_u64(&row, "start", from_ps);
    json_u64(&row, "end", from_ps + length_ps);
    write_cause(&row, observed_cause);
    row_end(&row);
}

static void message_received(const struct command *receive, const struct sender *sender)
{
    struct json row = row_begin("received");
    json_string(&row, "node", place_name(rank_place(pe_rank(receive->pe, NODE_pe_ipcq))));
    write_cause(&row, command_cause(receive));
    json_string(&row, "from", pe_name(sender->pe));
    json_u64(&row, "sent", sender->cause.number);
    row_end(&row);
}

static void reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    struct json row = row_begin("reserved");
    resource_write(&row, "node", kind, number);
    json_u64(&row, "bytes", bytes);
    json_u64(&row, "asked", asked_ps);
    json_u64(&row, "start", start_ps);
    json_u64(&row, "end", end_ps);
    write_cause(&row, observed_cause);
    row_end(&row);
}

struct observer components_observer = {
    .name = "trace of all components",
    .needs_every_event = true,
    .kernel_begins = kernel_begins,
    .kernel_ends = kernel_ends,
    .host_request_begins = host_request_begins,
    .host_request_ends = host_request_ends,
    .control_sent = control_sent,
    .translated = translated,
    .message_received = message_received,
    .reserved = reserved,
};
