/* command_times.c: times of commands, from a run, a trace, a result or a firmware log. */
#define _GNU_SOURCE                                     /* memmem */
#include "command_times.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/read.h"
#include "launch/kernel.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "record_log.h"
#include "report/result.h"
#include "session/stream.h"

static int by_number(const void *a, const void *b)
{
    const struct command_times *x = a, *y = b;
    BY(x->pe, y->pe);
    BY(x->launch, y->launch);
    BY(x->number, y->number);
    return 0;
}

static void command_list_sort(struct command_list *list)
{
    if (list->count)
        qsort(list->at, list->count, sizeof *list->at, by_number);
}

const struct command_times *command_list_find(const struct command_list *list, const struct command_times *key)
{
    return list->count ? bsearch(key, list->at, list->count, sizeof *list->at, by_number) : NULL;
}

/* ---- of a run */

/* Of each PE, the launches so far, and the one that it has taken part in last. */
struct launches_of_pe {
    uint32_t count;
    const void *last;
};

struct run_reader {
    struct command_list *list;
    struct launches_of_pe *launches;
};

static void add_row(const struct command_row_read *row, void *arg)
{
    struct run_reader *reader = arg;
    uint32_t pe = pe_number(row->tl->pe);
    struct launches_of_pe *launches = &reader->launches[pe];
    if (launches->last != row->tl)
        launches->count++;
    launches->last = row->tl;
    *array_add(reader->list) = (struct command_times){
        .pe = pe, .launch = launches->count - 1, .number = row->number, .word = command_words[row->kind], .has_start = true,
        .has_took = row->complete, .start_ps = (int64_t)row->submitted_ps,
        .took_ps = row->complete ? (int64_t)(row->complete_ps - row->submitted_ps) : 0};
}

void command_list_of_run(struct command_list *list)
{
    struct run_reader reader = {list, arena_alloc(pe_count(), sizeof *reader.launches)};
    result_commands(add_row, &reader);
    command_list_sort(list);
}

/* ---- of a trace */

struct trace_reader {
    struct command_list *list;
    struct trace_of_pe {
        uint32_t launches;
        struct ARRAY(size_t) at;                        /* in the list, by number of the command in this launch */
    } *pes;
};

/* Finds the PE of a node such as sip0.cube0.pe0.pe_scheduler. */
static bool read_pe_of_node(const struct node *value, uint32_t *pe)
{
    const char *node;
    if (!node_string(value, "node", &node))
        return false;
    const char *dot = strrchr(node, '.');
    if (dot && pe_numbered(arena_text(node, (size_t)(dot - node)), pe))
        return true;
    error_at(value->where, "there is no part '%s' of a PE", node);
    return false;
}

static void submitted_in_trace(struct trace_reader *reader, const struct node *event, uint32_t pe, uint64_t number, uint64_t t_ps)
{
    struct trace_of_pe *of_pe = &reader->pes[pe];
    if (number == 0) {
        of_pe->launches++;
        of_pe->at.count = 0;
    }
    if (number != of_pe->at.count) {
        error_at(event->where, "command %" PRIu64 " of %s is submitted, but %zu comes next", number, pe_name(&kb_pe[pe]), of_pe->at.count);
        return;
    }
    *array_add(&of_pe->at) = reader->list->count;
    *array_add(reader->list) = (struct command_times){.pe = pe, .launch = of_pe->launches - 1, .number = (uint32_t)number,
                                                      .has_start = true, .start_ps = (int64_t)t_ps, .line = event->where.line};
}

static void completed_in_trace(struct trace_reader *reader, const struct node *event, uint32_t pe, uint64_t number, uint64_t t_ps)
{
    struct trace_of_pe *of_pe = &reader->pes[pe];
    struct command_times *times = number < of_pe->at.count ? &reader->list->at[of_pe->at.at[number]] : NULL;
    if (!times || times->has_took || (int64_t)t_ps < times->start_ps) {
        error_at(event->where, "command %" PRIu64 " of %s is complete, but was not submitted", number, pe_name(&kb_pe[pe]));
        return;
    }
    times->has_took = true;
    times->took_ps = (int64_t)t_ps - times->start_ps;
}

static void read_trace_event(const struct node *event, void *arg)
{
    const struct node *name = node_get(event, "ev"), *t = node_get(event, "t"), *node = node_get(event, "node"),
                      *command = node_get(event, "cmd");
    bool submits = name && name->type == NODE_SCALAR && !strcmp(name->text, "command_submitted");
    uint64_t t_ps, number;
    uint32_t pe;
    if (!name) {
        error_at(event->where, "a trace event has 'ev'");
        return;
    }
    if (!submits && (name->type != NODE_SCALAR || strcmp(name->text, "command_complete")))
        return;
    if (!t || !node || !command) {
        error_at(event->where, "'%s' is missing", !t ? "t" : !node ? "node" : "cmd");
        return;
    }
    if (!node_u64(t, "t", 0, INT64_MAX, &t_ps) || !node_u64(command, "cmd", 0, UINT32_MAX - 1, &number) || !read_pe_of_node(node, &pe))
        return;
    (submits ? submitted_in_trace : completed_in_trace)(arg, event, pe, number, t_ps);
}

/* ---- of a result */

static bool read_result_command(struct command_list *list, const struct node *row, uint32_t *launches, bool *begun)
{
    static const char *const keys[] = {"pe", "n", "submitted_ps", "complete_ps"};
    const struct node *values[COUNT_OF(keys)], *word = node_get(row, "do");
    uint64_t number, submitted, complete = 0;
    const char *id;
    uint32_t pe;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (!(values[i] = node_get(row, keys[i]))) {
            error_at(row->where, "'%s' of a command is missing", keys[i]);
            return false;
        }
    if (!node_string(values[0], "pe", &id) || !node_u64(values[1], "n", 0, UINT32_MAX - 1, &number)
        || !node_u64(values[2], "submitted_ps", 0, INT64_MAX, &submitted))
        return false;
    bool is_complete = !node_is_null(values[3]);
    if (is_complete && !node_u64(values[3], "complete_ps", submitted, INT64_MAX, &complete))
        return false;
    if (!pe_numbered(id, &pe)) {
        error_at(values[0]->where, "there is no PE '%s'; ids are like sip0.cube0.pe0", id);
        return false;
    }
    launches[pe] += !begun[pe];
    begun[pe] = true;
    *array_add(list) = (struct command_times){
        .pe = pe, .launch = launches[pe] - 1, .number = (uint32_t)number, .word = word && word->type == NODE_SCALAR ? word->text : NULL,
        .has_start = true, .has_took = is_complete, .start_ps = (int64_t)submitted,
        .took_ps = is_complete ? (int64_t)(complete - submitted) : 0, .line = row->where.line};
    return true;
}

static void read_result(struct command_list *list, const struct source *file)
{
    const struct node *root = json_read(file), *launches = root ? node_get(root, "launches") : NULL;
    uint32_t *counts = arena_alloc(pe_count(), sizeof *counts);
    if (!root)
        return;
    if (!launches || launches->type != NODE_SEQUENCE) {
        error_at(root->where, "this is no result of --json: it has no list of launches");
        return;
    }
    for (size_t i = 0; i < launches->count; i++) {
        const struct node *commands = node_get(launches->items[i], "commands");
        bool *begun = arena_alloc(pe_count(), sizeof *begun);
        for (size_t j = 0; commands && commands->type == NODE_SEQUENCE && j < commands->count; j++)
            if (!read_result_command(list, commands->items[j], counts, begun))
                return;
    }
}

/* ---- of a firmware log */

struct log_reader {
    uint64_t clock_khz;
    struct command_order *order;
    struct ARRAY(struct command_record) records;
};

static bool is_command_word(const char *word)
{
    for (unsigned kind = 0; kind < COMMANDS; kind++)
        if (!strcmp(word, command_words[kind]))
            return true;
    return false;
}

/* A word that is no command's is one of kernels or of the host; else it is an error. */
static void check_other_word(const struct command_record *record)
{
    static const char *const kernels[] = {"wait", "begin", "end"};
    const char *known[COMMANDS + COUNT_OF(kernels)];
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        if (!strcmp(record->word, kernels[i]))
            return;
    if (stream_host_word(record->word))
        return;
    memcpy(known, command_words, sizeof command_words);
    memcpy(known + COMMANDS, kernels, sizeof kernels);
    const char *near = nearest_name(record->word, known, COUNT_OF(known));
    error_at(record->word_where, near ? "there is no command '%s'; did you mean '%s'?" : "there is no command '%s'", record->word, near);
}

static const char *kept_text(const char *text)
{
    return text ? arena_text(text, strlen(text)) : NULL;
}

/* Keeps the records of commands. All others are those of waits, kernels and the host. */
static void read_log_record(const struct node *fields, void *arg)
{
    struct log_reader *reader = arg;
    struct command_record record;
    if (!command_record_read(fields, reader->clock_khz, &record))
        return;
    if (record.word && !is_command_word(record.word)) {
        check_other_word(&record);
        return;
    }
    if (!record.has_pe) {
        error_at(fields->where, "'pe' is missing: the PE of the record");
        return;
    }
    if (!record.has_start && !record.has_took) {
        error_at(fields->where, "the record has no time: 't_ns', or 'took_ns', or 't_us' ...");
        return;
    }
    if (record.has_took && record.took_ps > INT64_MAX / 4) {
        error_at(fields->where, "the command takes more than 20 days");
        return;
    }
    command_order_add(reader->order, &record);
    arena_keep_begin();
    record.fields = NULL;
    record.id = kept_text(record.id);
    record.word = kept_text(record.word);
    *array_add(&reader->records) = record;
    arena_keep_end();
}

/* Times since the first one. */
static void set_times(struct log_reader *reader)
{
    log_ps first = 0;
    bool known = false;
    for (size_t i = 0; i < reader->records.count; i++) {
        const struct command_record *record = &reader->records.at[i];
        if (record->has_start && (!known || record->start_ps < first))
            first = record->start_ps;
        known |= record->has_start;
    }
    for (size_t i = 0; i < reader->records.count; i++) {
        struct command_record *record = &reader->records.at[i];
        record->start_ps = record->has_start ? record->start_ps - first : 0;
        if (record->start_ps > INT64_MAX / 4) {
            error_at(record->where, "the record is more than 20 days after the first one");
            return;
        }
    }
}

/* The launches of a PE that come one after the other. */
struct pe_position {
    uint32_t pe;
    bool known;
    uint64_t log_launch;                                /* as the log calls the last one */
    uint32_t launch, commands, next;                    /* next: of the simulated commands of the PE, in order */
};

static void go_to_launch(struct pe_position *at, const struct command_record *record)
{
    if (!at->known || at->pe != record->pe)
        *at = (struct pe_position){.pe = record->pe, .known = true, .log_launch = record->has_launch ? record->launch : 0};
    else if (record->has_launch ? record->launch != at->log_launch : record->has_number && record->number == 0 && at->commands) {
        at->log_launch = record->has_launch ? record->launch : at->log_launch;
        at->launch++;
        at->commands = 0;
    }
}

/* The first simulated command of a PE. */
static size_t first_of_pe(const struct command_list *list, uint32_t pe)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->at[middle].pe < pe)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Which command a record is of. Returns false after an error. */
static bool set_number(const struct command_record *record, struct pe_position *at, const struct command_list *simulated, number_of_id *find,
                       struct command_times *times)
{
    go_to_launch(at, record);
    times->launch = at->launch;
    if (record->has_number) {
        times->number = (uint32_t)record->number;
    } else if (record->id && find) {
        times->number = find(record->pe, at->launch, record->id);
        if (times->number == UINT32_MAX) {
            error_at(record->id_where, "no command of %s has the id '%s'", pe_name(&kb_pe[record->pe]), record->id);
            return false;
        }
    } else {
        const struct command_times *next = simulated ? &simulated->at[first_of_pe(simulated, record->pe) + at->next] : NULL;
        bool exists = next && next < simulated->at + simulated->count && next->pe == record->pe;
        times->launch = exists ? next->launch : at->launch;
        times->number = exists ? next->number : at->next;
        if (simulated && !exists)
            times->launch = UINT32_MAX;                 /* that the simulation does not have */
    }
    at->next++;
    at->commands++;
    return true;
}

void command_list_read_measured(struct command_list *list, const struct source *file, uint64_t clock_khz,
                                const struct command_list *simulated, number_of_id *find)
{
    struct log_reader reader = {.clock_khz = clock_khz, .order = arena_alloc(pe_count(), sizeof *reader.order)};
    struct pe_position at = {0};
    unsigned before = error_count();
    record_log_read(file, read_log_record, &reader);
    if (error_count() == before)
        set_times(&reader);
    if (error_count() > before) {
        array_free(&reader.records);
        return;
    }
    if (reader.records.count)
        qsort(reader.records.at, reader.records.count, sizeof *reader.records.at, command_order_compare);
    for (size_t i = 0; i < reader.records.count; i++) {
        const struct command_record *record = &reader.records.at[i];
        struct command_times times = {
            .pe = record->pe, .word = record->word, .id = record->id, .has_start = record->has_start, .has_took = record->has_took,
            .start_ps = (int64_t)record->start_ps, .took_ps = record->has_took ? (int64_t)record->took_ps : 0, .line = record->where.line};
        if (set_number(record, &at, simulated, find, &times))
            *array_add(list) = times;
    }
    command_list_sort(list);
    for (size_t i = 1; i < list->count; i++)
        if (!by_number(&list->at[i - 1], &list->at[i]) && list->at[i].launch != UINT32_MAX) {
            error_at((struct where){file, list->at[i].line, 1}, "command %" PRIu32 " of %s is here twice", list->at[i].number,
                     pe_name(&kb_pe[list->at[i].pe]));
            note_at((struct where){file, list->at[i - 1].line, 1}, "here");
        }
    array_free(&reader.records);
}

/* ---- of any file */

/* Whether a text has a word in its first line. */
static bool begins_with(const struct source *file, const char *word)
{
    const char *newline = memchr(file->text, '\n', file->length);
    size_t length = newline ? (size_t)(newline - file->text) : file->length;
    return memmem(file->text, length, word, strlen(word));
}

static void read_trace(struct command_list *list, const struct source *file)
{
    struct trace_reader reader = {list, arena_alloc(pe_count(), sizeof *reader.pes)};
    record_log_read(file, read_trace_event, &reader);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        array_free(&reader.pes[pe].at);
}

void command_list_read(struct command_list *list, const struct source *file, uint64_t clock_khz)
{
    if (record_log_is_json(file) && begins_with(file, "\"ev\""))
        read_trace(list, file);
    else if (record_log_is_json(file) && !begins_with(file, "\"t_"))
        read_result(list, file);
    else
        command_list_read_measured(list, file, clock_khz, NULL, NULL);
    command_list_sort(list);
}
