/* usage.c: counts what each node, link, memory channel and engine serves.
 *
 * A node, a link and a channel are reserved in the order of requests: its reservations begin in that order as well. So
 * the requests that wait when one more asks are those at the end of the list that begin later. */
#include "usage.h"

#include <string.h>

#include "base/output.h"
#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "fastforward/state.h"
#include "host/bounds.h"
#include "machine/engine.h"
#include "machine/pe.h"
#include "machine/route.h"
#include "machine/stats.h"
#include "resource.h"
#include "result.h"
#include "sim/loop.h"
#include "summary.h"

/* What is only counted. */
struct counts {
    uint64_t services, bytes, busy_ps, wait_ps;
};

/* Of one thing that serves. */
struct usage {
    struct counts now, reference, asleep;               /* those when a reference was taken, when groups went to sleep */
    uint64_t longest_queue;                             /* most requests that waited at one time since groups slept, */
    uint64_t longest_before;                            /* and before */
};

/* Of a resource that is reserved, with the starts of its last reservations, in ascending order. */
struct reserved_usage {
    struct usage usage;
    struct ARRAY(uint64_t) starts;
};

static struct output output;
static struct reserved_usage *resources[RESOURCE_KINDS];    /* by number of the resource */
static struct usage *engines;                           /* ENGINES of each PE */

/* The commands of each PE that pe_scheduler has taken. */
static struct flights {
    uint64_t now, longest;                              /* not complete: now, the most at the end of an instant */
    uint64_t completions;
} *flights;

/* PEs with an engine whose queues have grown in this instant, and which of the PE's engines do. */
static struct ARRAY(const struct pe *) grown;
static uint32_t *grown_engines;                         /* a bit for each engine, by number of the PE */

void usage_watch(void)
{
    if (usage_observer.watches)
        return;
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++)
        resources[kind] = arena_alloc(resource_count(kind), sizeof *resources[kind]);
    engines = arena_alloc(pe_count() * (size_t)ENGINES, sizeof *engines);
    flights = arena_alloc(pe_count(), sizeof *flights);
    grown_engines = arena_alloc(pe_count(), sizeof *grown_engines);
    observer_watch(&usage_observer, true);
}

void usage_open(const char *path)
{
    output = output_open(path);
    usage_watch();
}

/* ---- reservations */

/* The index of the first of the starts that lies after t_ps. */
static size_t first_after(const struct reserved_usage *r, uint64_t t_ps)
{
    size_t low = 0, high = r->starts.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->starts.at[middle] > t_ps)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Forgets starts that no request can find ahead of it any more, if they are most of the list. */
static void trim(struct reserved_usage *r)
{
    size_t past = first_after(r, now_ps), left = r->starts.count - past;
    if (past <= left)
        return;
    memmove(r->starts.at, r->starts.at + past, left * sizeof *r->starts.at);
    r->starts.count = left;
}

static void take_longest(struct usage *usage, uint64_t length)
{
    if (usage->longest_queue < length)
        usage->longest_queue = length;
}

static void reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    struct reserved_usage *r = &resources[kind][number];
    struct usage *usage = &r->usage;
    usage->now.services++;
    usage->now.bytes += bytes;
    usage->now.busy_ps += end_ps - start_ps;
    usage->now.wait_ps += start_ps - asked_ps;
    if (kind == RESOURCE_HBM_MODEL || kind == RESOURCE_SRAM_MODEL)
        return;                                         /* what a model says has no order */
    if (kind != RESOURCE_LINK || !kb_own_models)        /* otherwise what waited for a link is told of when it starts */
        trim(r);
    *array_add(&r->starts) = start_ps;
    if (start_ps > asked_ps)
        take_longest(usage, r->starts.count - first_after(r, asked_ps));
}

/* ---- engines */

static struct usage *engine_usage(const struct pe *pe, enum engine engine)
{
    return &engines[pe_number(pe) * (size_t)ENGINES + engine];
}

static void engine_grown(const struct pe *pe, enum engine engine)
{
    uint32_t *bits = &grown_engines[pe_number(pe)];
    if (!*bits)
        *array_add(&grown) = pe;
    *bits |= 1u << engine;
}

static void tile_queued(const struct token *token)
{
    engine_grown(token->command->pe, engine_of(token->stage->kind));
}

static void command_submitted(const struct command *command)
{
    engine_grown(command->pe, ENGINE_SCHEDULER);
}

static void engine_served(struct usage *usage, uint64_t arrival_ps, uint64_t start_ps)
{
    usage->now.services++;
    usage->now.busy_ps += now_ps - start_ps;
    usage->now.wait_ps += start_ps - arrival_ps;
}

static void service_ends(const struct token *token)
{
    engine_served(engine_usage(token->command->pe, engine_of(token->stage->kind)), token->arrival_ps,
                  token->started_ps);
}

static void command_scheduled(const struct command *command)
{
    engine_served(engine_usage(command->pe, ENGINE_SCHEDULER), command->submitted_ps,
                  command->pe->scheduling_since_ps);
    flights[pe_number(command->pe)].now++;
    engine_grown(command->pe, ENGINE_SCHEDULER);
}

static void command_completed(const struct command *command)
{
    flights[pe_number(command->pe)].now--;
    flights[pe_number(command->pe)].completions++;
}

static uint64_t queue_length(const struct pe *pe, enum engine engine)
{
    uint64_t length = 0;
    if (engine == ENGINE_SCHEDULER)
        for (const struct command *command = pe->submitted; command; command = command->waiting)
            length++;
    else
        for (unsigned stage = 0; stage < STAGES; stage++) {
            if (engine_of(stage) != engine)
                continue;
            for (const struct token *token = pe->queue[stage].head; token; token = token->next)
                length++;
            for (const struct token *token = pe->direct[stage].head; token; token = token->next)
                length++;
        }
    return length;
}

/* What is still in a queue waits. */
static void instant_ends(void)
{
    for (size_t i = 0; i < grown.count; i++) {
        const struct pe *pe = grown.at[i];
        struct flights *in_flight = &flights[pe_number(pe)];
        if (in_flight->longest < in_flight->now)
            in_flight->longest = in_flight->now;
        for (unsigned engine = 0; engine < ENGINES; engine++)
            if (grown_engines[pe_number(pe)] >> engine & 1)
                take_longest(engine_usage(pe, engine), queue_length(pe, engine));
        grown_engines[pe_number(pe)] = 0;
    }
    grown.count = 0;
}

/* ---- fast-forward */

static void for_each_usage(void (*handle)(struct usage *usage, uint64_t arg), uint64_t arg)
{
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++)
        for (uint64_t i = 0; i < resource_count(kind); i++)
            handle(&resources[kind][i].usage, arg);
    for (size_t i = 0; i < pe_count() * (size_t)ENGINES; i++)
        handle(&engines[i], arg);
}

/* Adds what was counted since an earlier state, some times over. */
static void add_since(struct counts *to, const struct counts *now, const struct counts *then, uint64_t times)
{
    to->services = sum(to->services, product(now->services - then->services, times));
    to->bytes = sum(to->bytes, product(now->bytes - then->bytes, times));
    to->busy_ps = sum(to->busy_ps, product(now->busy_ps - then->busy_ps, times));
    to->wait_ps = sum(to->wait_ps, product(now->wait_ps - then->wait_ps, times));
}

static void take_reference(struct usage *usage, uint64_t unused)
{
    (void)unused;
    usage->reference = usage->now;
}

static void reference_taken(void)
{
    for_each_usage(take_reference, 0);
}

/* The longest queue of a period is that of all of them. */
static void repeat(struct usage *usage, uint64_t times)
{
    const struct counts now = usage->now;
    add_since(&usage->now, &now, &usage->reference, times);
}

static void periods_skipped(uint64_t times, uint64_t skipped_ps)
{
    for_each_usage(repeat, times);
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++)
        for (uint64_t i = 0; i < resource_count(kind); i++) {
            struct reserved_usage *r = &resources[kind][i];
            for (size_t at = first_after(r, now_ps); at < r->starts.count; at++)
                r->starts.at[at] += skipped_ps;
        }
}

static void fall_asleep(struct usage *usage, uint64_t unused)
{
    (void)unused;
    usage->asleep = usage->now;
    if (usage->longest_before < usage->longest_queue)
        usage->longest_before = usage->longest_queue;
    usage->longest_queue = 0;
}

static void groups_sleep(void)
{
    for_each_usage(fall_asleep, 0);
}

static void take_over(struct usage *to, const struct usage *from)
{
    add_since(&to->now, &from->now, &from->asleep, 1);
    to->longest_queue = from->longest_queue;
}

static void take_over_reserved(enum resource_kind kind, uint64_t to_number, uint64_t from_number)
{
    struct reserved_usage *to = &resources[kind][to_number], *from = &resources[kind][from_number];
    take_over(&to->usage, &from->usage);
    to->starts.count = 0;
    for (size_t i = 0; i < from->starts.count; i++)
        *array_add(&to->starts) = from->starts.at[i];
}

static void take_over_pe(const struct pe *to, const struct pe *from)
{
    uint32_t grown_bits = grown_engines[pe_number(from)];
    for (unsigned engine = 0; engine < ENGINES; engine++) {
        take_over(engine_usage(to, engine), engine_usage(from, engine));
        if (grown_bits >> engine & 1)
            engine_grown(to, engine);
    }
    take_over_reserved(RESOURCE_TCM_READ, pe_number(to), pe_number(from));
    take_over_reserved(RESOURCE_TCM_WRITE, pe_number(to), pe_number(from));
}

static void take_over_node(uint32_t to, uint32_t from)
{
    struct place place = rank_place(to), from_place = rank_place(from);
    take_over_reserved(RESOURCE_NODE, to, from);
    if (place_is_kind(place, NODE_sram)) {
        take_over_reserved(RESOURCE_SRAM_READ, place_cube(place), place_cube(from_place));
        take_over_reserved(RESOURCE_SRAM_WRITE, place_cube(place), place_cube(from_place));
    }
    for (uint64_t i = 0; place_is_kind(place, NODE_hbm_ctrl) && i < kb_attrs.hbm_ctrl_pcs; i++)
        take_over_reserved(RESOURCE_PSEUDO_CHANNEL, place_slice(place) * kb_attrs.hbm_ctrl_pcs + i,
                           place_slice(from_place) * kb_attrs.hbm_ctrl_pcs + i);
}

static void group_wakes(const struct group_pair *pair)
{
    const struct group *to = pair->to, *from = pair->from;
    for (uint32_t i = 0; i < to->nodes; i++)
        take_over_node(to->node[i], from->node[i]);
    for (uint32_t i = 0; i < to->links; i++)
        take_over_reserved(RESOURCE_LINK, to->link[i], from->link[i]);
    for (uint32_t i = 0; i < to->pes; i++)
        take_over_pe(to->pe[i], from->pe[i]);
}

/* ---- JSON: a row for everything that was used */

static uint64_t longest_queue(const struct usage *usage)
{
    return usage->longest_queue > usage->longest_before ? usage->longest_queue : usage->longest_before;
}

static bool is_used(const struct usage *usage)
{
    return usage->now.services || longest_queue(usage);
}

static void write_usage(struct json *json, const struct usage *usage, bool moves)
{
    json_u64(json, "services", usage->now.services);
    if (moves)
        json_u64(json, "bytes", usage->now.bytes);
    json_u64(json, "busy_ps", usage->now.busy_ps);
    json_u64(json, "wait_ps", usage->now.wait_ps);
    json_u64(json, "longest_queue", longest_queue(usage));
    json_object_end(json);
}

static void write_resources(struct json *json, enum resource_kind kind)
{
    for (uint64_t i = 0; i < resource_count(kind); i++) {
        const struct usage *usage = &resources[kind][i].usage;
        if (!is_used(usage))
            continue;
        json_object(json, NULL);
        resource_write(json, kind == RESOURCE_LINK ? "from" : "id", kind, i);
        write_usage(json, usage, true);
    }
}

static void write_engines(struct json *json)
{
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++)
        for (unsigned engine = 0; engine < ENGINES; engine++) {
            const struct usage *usage = engine_usage(pe, engine);
            if (!is_used(usage))
                continue;
            json_object(json, NULL);
            json_string(json, "pe", pe_name(pe));
            json_string(json, "engine", engine_names[engine]);
            write_usage(json, usage, false);
        }
}

static void write_schedulers(struct json *json)
{
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        const struct flights *of = &flights[pe_number(pe)];
        if (!of->longest && !of->completions)
            continue;
        json_object(json, NULL);
        json_string(json, "pe", pe_name(pe));
        json_u64(json, "completions", of->completions);
        json_u64(json, "longest_in_flight", of->longest);
        json_object_end(json);
    }
}

static void write_all(struct json *json, void *end_ps)
{
    json_string(json, "system", kb_machine_name);
    json_u64(json, "end_ps", *(const uint64_t *)end_ps);
    utilisation_write(json);
    json_array(json, "nodes");
    write_resources(json, RESOURCE_NODE);
    json_array_end(json);
    json_array(json, "links");
    write_resources(json, RESOURCE_LINK);
    json_array_end(json);
    json_array(json, "channels");
    write_resources(json, RESOURCE_PSEUDO_CHANNEL);
    write_resources(json, RESOURCE_HBM_MODEL);
    write_resources(json, RESOURCE_SRAM_READ);
    write_resources(json, RESOURCE_SRAM_WRITE);
    write_resources(json, RESOURCE_SRAM_MODEL);
    write_resources(json, RESOURCE_TCM_READ);
    write_resources(json, RESOURCE_TCM_WRITE);
    json_array_end(json);
    json_array(json, "engines");
    write_engines(json);
    json_array_end(json);
    json_array(json, "schedulers");
    write_schedulers(json);
    json_array_end(json);
    result_write_interruption(json);
}

void usage_close(uint64_t end_ps)
{
    if (output.file)
        json_write_output(&output, write_all, &end_ps);
    output = (struct output){0};
    observer_watch(&usage_observer, false);
}

bool usage_longest_queue(enum resource_kind kind, uint64_t *number, uint64_t *length)
{
    *length = 0;
    for (uint64_t i = 0; resources[kind] && i < resource_count(kind); i++)
        if (longest_queue(&resources[kind][i].usage) > *length) {
            *number = i;
            *length = longest_queue(&resources[kind][i].usage);
        }
    return *length > 0;
}

/* ---- JSON: columns for a report: lists of numbers, by PE, cube, node or link */

enum column { COLUMN_services, COLUMN_bytes, COLUMN_busy_ps, COLUMN_wait_ps, COLUMN_longest_queue, COLUMNS };

static const char *const column_names[COLUMNS] = {"services", "bytes", "busy_ps", "wait_ps", "longest_queue"};

static uint64_t cell(const struct usage *usage, enum column column)
{
    switch (column) {
    case COLUMN_services: return usage->now.services;
    case COLUMN_bytes: return usage->now.bytes;
    case COLUMN_busy_ps: return usage->now.busy_ps;
    case COLUMN_wait_ps: return usage->now.wait_ps;
    default: return longest_queue(usage);
    }
}

/* Each cell is that of `group` resources of one kind, one after the other, and of as many of another kind. */
struct columns {
    const enum resource_kind *kinds;
    size_t kind_count;
    uint64_t group;
    bool (*shows)(enum resource_kind kind, uint64_t number);
};

static uint64_t columns_cell(const struct columns *columns, uint64_t at, enum column column)
{
    uint64_t all = 0;
    for (size_t kind = 0; kind < columns->kind_count; kind++)
        for (uint64_t i = at * columns->group; i < (at + 1) * columns->group; i++) {
            uint64_t of_one = cell(&resources[columns->kinds[kind]][i].usage, column);
            all = column != COLUMN_longest_queue ? all + of_one : of_one > all ? of_one : all;
        }
    return all;
}

static void write_columns(struct json *json, const struct columns *columns)
{
    enum resource_kind kind = columns->kinds[0];
    for (enum column column = 0; column < COLUMNS; column++) {
        json_array(json, column_names[column]);
        for (uint64_t i = 0; i < resource_count(kind) / columns->group; i++)
            if (!columns->shows || columns->shows(kind, i))
                json_u64(json, NULL, columns_cell(columns, i, column));
        json_array_end(json);
    }
}

static void write_memory_columns(struct json *json, const char *name, enum resource_kind first,
                                 enum resource_kind second, uint64_t group)
{
    const enum resource_kind kinds[] = {first, second};
    json_object(json, name);
    write_columns(json, &(struct columns){.kinds = kinds, .kind_count = 1 + (first != second), .group = group});
    json_object_end(json);
}

static void write_engine_columns(struct json *json, enum engine engine)
{
    bool used = false;
    for (uint64_t pe = 0; pe < pe_count(); pe++)
        used |= is_used(&engines[pe * ENGINES + engine]);
    if (!used)
        return;
    json_object(json, engine_names[engine]);
    for (enum column column = 0; column < COLUMNS; column++) {
        if (column == COLUMN_bytes)
            continue;
        json_array(json, column_names[column]);
        for (uint64_t pe = 0; pe < pe_count(); pe++)
            json_u64(json, NULL, cell(&engines[pe * ENGINES + engine], column));
        json_array_end(json);
    }
    json_object_end(json);
}

/* Ranks of the nodes where the shown links begin, or where they end. */
static void write_ends(struct json *json, const char *key, bool (*shows)(enum resource_kind, uint64_t), bool begins)
{
    json_array(json, key);
    for (uint64_t link = 0; link < link_count(); link++)
        if (shows(RESOURCE_LINK, link)) {
            struct link_ends ends = link_ends(link);
            json_u64(json, NULL, place_rank(begins ? ends.from : ends.to));
        }
    json_array_end(json);
}

static void write_link_classes(struct json *json, bool (*shows)(enum resource_kind, uint64_t))
{
    json_array(json, "class");
    for (uint64_t link = 0; link < link_count(); link++)
        if (shows(RESOURCE_LINK, link))
            json_string(json, NULL, link_class_names[link_class(link)]);
    json_array_end(json);
}

void usage_write_columns(struct json *json, bool (*shows)(enum resource_kind kind, uint64_t number))
{
    static const enum resource_kind link = RESOURCE_LINK, node = RESOURCE_NODE;
    json_object(json, "engines");
    for (enum engine engine = 0; engine < ENGINES; engine++)
        write_engine_columns(json, engine);
    json_object_end(json);
    json_object(json, "memories");
    if (kb_has_model[NODE_hbm_ctrl])
        write_memory_columns(json, "hbm", RESOURCE_HBM_MODEL, RESOURCE_HBM_MODEL, 1);
    else
        write_memory_columns(json, "hbm", RESOURCE_PSEUDO_CHANNEL, RESOURCE_PSEUDO_CHANNEL, kb_attrs.hbm_ctrl_pcs);
    if (kb_has_model[NODE_sram])
        write_memory_columns(json, "sram", RESOURCE_SRAM_MODEL, RESOURCE_SRAM_MODEL, 1);
    else
        write_memory_columns(json, "sram", RESOURCE_SRAM_READ, RESOURCE_SRAM_WRITE, 1);
    write_memory_columns(json, "tcm", RESOURCE_TCM_READ, RESOURCE_TCM_WRITE, 1);
    json_object_end(json);
    json_object(json, "nodes");
    json_array(json, "rank");
    for (uint64_t rank = 0; rank < node_count(); rank++)
        if (shows(RESOURCE_NODE, rank))
            json_u64(json, NULL, rank);
    json_array_end(json);
    write_columns(json, &(struct columns){.kinds = &node, .kind_count = 1, .group = 1, .shows = shows});
    json_object_end(json);
    json_object(json, "links");
    write_ends(json, "from", shows, true);
    write_ends(json, "to", shows, false);
    write_link_classes(json, shows);
    write_columns(json, &(struct columns){.kinds = &link, .kind_count = 1, .group = 1, .shows = shows});
    json_object_end(json);
}

struct observer usage_observer = {
    .name = "usage",
    .instant_ends = instant_ends,
    .command_submitted = command_submitted,
    .command_scheduled = command_scheduled,
    .command_completed = command_completed,
    .tile_queued = tile_queued,
    .service_ends = service_ends,
    .groups_sleep = groups_sleep,
    .group_wakes = group_wakes,
    .reference_taken = reference_taken,
    .periods_skipped = periods_skipped,
    .reserved = reserved,
};
