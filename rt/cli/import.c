/* import.c: `SIM import LOG`: a firmware log as a command stream.
 *
 * All records are read and checked, then taken in the order of PE and time. Each PE of a launch gets a program, whose text
 * grows record by record. A program is a clock, which begins pe_cpu's launch_ns after the kernel's start: a submission takes
 * pe_cpu's overhead, and a delay before it fills the time up to the record's. Programs of equal texts become one. */
#include "import.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "base/output.h"
#include "bringup/command_record.h"
#include "bringup/record_log.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/command_line.h"
#include "common/diag.h"
#include "common/json.h"
#include "common/key_table.h"
#include "common/path_error.h"
#include "common/read.h"
#include "common/yaml.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "session/numbers.h"
#include "session/stream.h"

static int import_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'o', "output", "STREAM.yaml", "where the stream goes; default standard output"},
    {'c', "clock", "FREQUENCY", "what cycles of the log are counted by, such as 1.2 GHz"},
    SET_OPTION,
    {0},
};

const struct subcommand import_subcommand = {
    "import", "LOG", "makes a command stream of a firmware log",
    "Makes a command stream of records of what the firmware of a device issued, as CSV or JSON lines: time, PE, command\n"
    "with its fields. `replay` runs it.",
    options, import_main,
};

struct id_seen {
    struct key_link link;
    struct id_seen *next;
    const char *text;
};

struct text ARRAY(char);

struct awaited {
    const char *id;
    struct where where;
};

/* A record of a PE. */
struct entry {
    struct command_record record;                       /* without its fields; the first member, for sorting */
    const char *step;                                   /* of a command, as YAML without its end */
    struct ARRAY(struct awaited) awaited;               /* of a wait */
    enum { ENTRY_COMMAND, ENTRY_COMPOSITE, ENTRY_WAIT, ENTRY_BEGIN, ENTRY_END } kind;
};

/* The program of a PE in a launch. */
struct pe_program {
    uint32_t launch, pe;
    struct text text;                                   /* its steps as YAML, without the delay before the first */
    bool submits, begun;                                /* it has a command; begin_ps is known */
    log_ps first_ps, begin_ps, clock_ps;                /* clock_ps: when its next step begins */
    log_ps latest_ps;                                   /* when the last of its commands was complete, as far as known */
    bool ended;
    bool clock_unknown;                                 /* it has waited, and the log does not say until when */
    uint32_t commands;
    struct key_table ids;                               /* of its commands */
    struct where last;                                  /* its last record */
};

/* What the host does before a launch. */
struct host_step_text {
    uint32_t launch;
    const char *text;
};

static struct {
    uint64_t clock_khz;
    const char *path;
    struct command_order *order;                        /* of each PE */
    struct ARRAY(struct entry) entries;
    struct ARRAY(struct pe_program *) all;
    struct ARRAY(struct host_step_text) host;
    struct ARRAY(const char *) ignored;                 /* keys that are not known */
    uint64_t launches, commands, unknown_ends, missing;
} import;

/* ---- texts */

static void put(struct text *text, const char *more)
{
    size_t length = strlen(more);
    array_reserve(text, text->count + length + 1);
    memcpy(text->at + text->count, more, length + 1);
    text->count += length;
}

static const char *delay_text(uint64_t ps)
{
    const char *ns = ps % 1000 ? arena_printf("%" PRIu64 ".%03u", ps / 1000, (unsigned)(ps % 1000))
                               : arena_printf("%" PRIu64, ps / 1000);
    return arena_printf("    - { do: delay, ns: %s }\n", ns);
}

static void put_scalar(struct text *text, const struct node *node)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    bool is_plain = node->plain && *node->text && !node->text[strspn(node->text, plain)];
    put(text, is_plain ? node->text : json_quoted(node->text));
}

static void put_value(struct text *text, const struct node *node)
{
    bool is_list = node->type == NODE_SEQUENCE;
    if (node->type == NODE_SCALAR) {
        put_scalar(text, node);
        return;
    }
    put(text, is_list ? "[" : "{ ");
    for (size_t i = 0; i < node->count; i++) {
        put(text, i ? ", " : "");
        if (!is_list) {
            put_scalar(text, node->entries[i].key);
            put(text, ": ");
        }
        put_value(text, is_list ? node->items[i] : node->entries[i].value);
    }
    put(text, is_list ? "]" : " }");
}

/* ---- ids */

static bool id_is_known(const struct pe_program *program, const char *text)
{
    const struct id_seen *id = key_table_find(&program->ids, hash_bytes(0, text, strlen(text)));
    while (id && strcmp(id->text, text))
        id = id->next;
    return id;
}

static void id_keep(struct pe_program *program, const char *text)
{
    uint64_t hash = hash_bytes(0, text, strlen(text));
    arena_keep_begin();
    struct id_seen *id = arena_alloc(1, sizeof *id), *same = key_table_find(&program->ids, hash);
    id->text = arena_text(text, strlen(text));
    if (same) {
        id->next = same->next;
        same->next = id;
    } else {
        key_table_add(&program->ids, &id->link, hash);
    }
    arena_keep_end();
}

/* ---- fields */

static struct node *new_scalar(struct where where, const char *text, bool plain)
{
    struct node *node = node_new(where, NODE_SCALAR);
    node->text = text;
    node->plain = plain;
    return node;
}

static void add_entry(struct node *mapping, struct where where, const char *key, struct node *value)
{
    node_add(mapping, new_scalar(where, key, true), value);
}

/* Adds what a word of a short address says: sip0, cube1, pe2 or, last, the memory. Returns whether it is one. */
static bool add_address_word(struct node *address, struct where where, const char *word)
{
    static const char *const levels[] = {"sip", "cube", "pe"}, *const spaces[] = {"hbm", "sram", "tcm"};
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        size_t length = strlen(levels[i]);
        if (!strncmp(word, levels[i], length) && word[length] && !word[length + strspn(word + length, "0123456789")]) {
            add_entry(address, where, levels[i], new_scalar(where, word + length, true));
            return true;
        }
    }
    for (size_t i = 0; i < COUNT_OF(spaces); i++)
        if (!strcmp(word, spaces[i])) {
            add_entry(address, where, "space", new_scalar(where, word, true));
            return true;
        }
    return false;
}

/* An address as firmware prints it: a number, or "sip0.cube1.pe2.hbm+0x1000", of which every part but the memory may be
 * missing. Other values stay, and are checked as those of a stream. */
static struct node *address_node(struct node *value)
{
    struct node *address = node_new(value->where, NODE_MAPPING);
    if (value->type != NODE_SCALAR)
        return value;
    if (strchr("0123456789", *value->text)) {
        add_entry(address, value->where, "va", value);
        return address;
    }
    char *text = arena_text(value->text, strlen(value->text)), *plus = strchr(text, '+'), *rest = text;
    if (plus)
        *plus = '\0';
    for (char *word; (word = strsep(&rest, "."));)
        if (!add_address_word(address, value->where, word)) {
            error_at(value->where, "'%s' is no address", value->text);
            note_at(value->where, "one is a number, as a PE would use it, or like sip0.cube0.pe0.hbm+0x1000, hbm+0x1000");
            value->broken = true;
            return value;
        }
    if (plus)
        add_entry(address, value->where, "offset", new_scalar(value->where, plus + 1, true));
    return address;
}

/* A list of words of a cell, such as "64x64x64", "a b" or "c0; c1": blanks or one of the separators are between two. */
static struct node *list_node(struct node *value, const char *separators)
{
    if (value->type != NODE_SCALAR)
        return value;
    struct node *list = node_new(value->where, NODE_SEQUENCE);
    const char *at = value->text + strspn(value->text, " "), *ends = arena_printf(" %s", separators);
    while (*at) {
        size_t length = strcspn(at, ends), blanks = strspn(at + length, " ");
        const char *separator = at + length + blanks;
        if (!length || (*separator && strchr(separators, *separator) && !separator[1 + strspn(separator + 1, " ")])) {
            error_at(value->where, "'%s' is no list: a word of it is empty", value->text);
            value->broken = true;
            return value;
        }
        node_append(list, new_scalar(value->where, arena_text(at, length), true));
        at = separator + (*separator && strchr(separators, *separator));
        at += strspn(at, " ");
    }
    return list;
}

static struct node *pe_node(struct node *value)
{
    uint64_t number = 0;
    if (value->type != NODE_SCALAR || !*value->text || value->text[strspn(value->text, "0123456789")])
        return value;
    struct node plain = *value;
    plain.plain = true;
    if (!node_u64(&plain, "a PE", 0, pe_count() - 1, &number))
        return value;
    return new_scalar(value->where, arena_printf("%s", pe_name(&kb_pe[number])), true);
}

/* A PE, or a list of them. */
static struct node *pes_node(struct node *value)
{
    bool in_cell = value->type == NODE_SCALAR && value->text[strcspn(value->text, " ;|")];
    if (in_cell)
        value = list_node(value, ";|");
    if (value->type != NODE_SEQUENCE)
        return pe_node(value);
    struct node *list = node_new(value->where, NODE_SEQUENCE);
    for (size_t i = 0; i < value->count; i++)
        node_append(list, pe_node(value->items[i]));
    return list;
}

static void ignore_key(const struct node *key)
{
    for (size_t i = 0; i < import.ignored.count; i++)
        if (!strcmp(import.ignored.at[i], key->text))
            return;
    if (import.ignored.count == DIAG_MOST)
        return;
    const char *names[STREAM_KEYS_MOST + 32] = {"for"};
    size_t count = 1;
    for (const char *const *own = command_record_keys; *own; own++)
        names[count++] = *own;
    count += stream_keys(&names[count]);
    const char *near = nearest_name(key->text, names, count);
    message("%s:%u:%u: '%s' is not known and ignored%s\n", key->where.file->path, key->where.line, key->where.col,
            printable(key->text), near ? arena_printf("; did you mean '%s'?", near) : "");
    arena_keep_begin();
    *array_add(&import.ignored) = arena_text(key->text, strlen(key->text));
    arena_keep_end();
}

/* The step of a stream that a record says, without what belongs to the log. */
static struct node *step_node(const struct command_record *record)
{
    const struct node *fields = record->fields, *op = node_get(fields, "op");
    struct node *step = node_new(fields->where, NODE_MAPPING);
    for (size_t i = 0; i < fields->count; i++) {
        struct node *key = fields->entries[i].key, *value = fields->entries[i].value;
        if (command_record_has(key->text) && strcmp(key->text, "do"))
            continue;
        switch (stream_key(record->word, op && op->type == NODE_SCALAR ? op->text : NULL, key->text)) {
        case STREAM_KEY_ADDRESS: value = address_node(value); break;
        case STREAM_KEY_PE: value = pe_node(value); break;
        case STREAM_KEY_PES: value = pes_node(value); break;
        case STREAM_KEY_WORDS: value = list_node(value, ";|"); break;
        case STREAM_KEY_SIZES: value = list_node(value, ";x"); break;
        case STREAM_KEY_VALUE: break;
        case NO_STREAM_KEY:
            if (strcmp(key->text, "do") && stream_key(NULL, NULL, key->text) == NO_STREAM_KEY) {
                ignore_key(key);
                continue;
            }
        }
        node_add(step, key, value);
    }
    return step;
}

/* ---- reading records */

static void keep_awaited(struct entry *entry, const struct node *fields)
{
    struct node *names = node_get(fields, "for");
    if (!names) {
        error_at(fields->where, "a wait needs 'for': the ids of the commands that it waits for");
        return;
    }
    names = list_node(names, ";");
    if (!node_is(names, NODE_SEQUENCE, "for"))
        return;
    for (size_t i = 0; i < names->count; i++) {
        const struct node *name = names->items[i];
        if (name->type != NODE_SCALAR)
            error_expected(name, "an id", "a text", NULL);
        else
            *array_add(&entry->awaited) = (struct awaited){arena_text(name->text, strlen(name->text)), name->where};
    }
}

static void keep_host_step(const struct command_record *record)
{
    struct text text = {0};
    struct node *step = step_node(record);
    if (!stream_host_check(step))
        return;
    put_value(&text, step);
    arena_keep_begin();
    uint64_t launch = record->has_launch ? record->launch : import.entries.count ? UINT32_MAX : 0;
    *array_add(&import.host) = (struct host_step_text){(uint32_t)launch, arena_text(text.at, text.count)};
    arena_keep_end();
    array_free(&text);
}

static void keep_entry(const struct command_record *record, struct node *step)
{
    struct entry entry = {.record = *record};
    struct text text = {0};
    if (step)
        put_value(&text, step);
    arena_keep_begin();
    entry.kind = step ? !strcmp(record->word, "composite") ? ENTRY_COMPOSITE : ENTRY_COMMAND
                 : !strcmp(record->word, "wait") ? ENTRY_WAIT : !strcmp(record->word, "begin") ? ENTRY_BEGIN : ENTRY_END;
    if (step)
        entry.step = arena_text(text.at, text.count - strlen(" }"));
    if (record->id)
        entry.record.id = arena_text(record->id, strlen(record->id));
    if (entry.kind == ENTRY_WAIT)
        keep_awaited(&entry, record->fields);
    entry.record.fields = NULL;
    command_order_add(import.order, &entry.record);
    *array_add(&import.entries) = entry;
    arena_keep_end();
    array_free(&text);
}

static void read_record(const struct node *fields, void *arg)
{
    (void)arg;
    struct command_record record;
    if (!command_record_read(fields, import.clock_khz, &record))
        return;
    if (!record.word) {
        error_at(fields->where, "'do' is missing: what the record is of");
        return;
    }
    if (stream_host_word(record.word)) {
        keep_host_step(&record);
        return;
    }
    bool is_command = strcmp(record.word, "begin") && strcmp(record.word, "wait") && strcmp(record.word, "end");
    struct node *step = is_command ? step_node(&record) : NULL;
    if (step && !stream_step_check(step))
        return;
    if (!record.has_pe)
        error_at(fields->where, "'pe' is missing: the PE of the record");
    else if (!record.has_start)
        error_at(fields->where, "'t_ns' is missing: the time of the record; or t_us, t_ps, t_cycles ...");
    else
        keep_entry(&record, step);
}

/* ---- programs */

/* The program that an entry belongs to; `before` is that of the entry before it, or NULL. */
static struct pe_program *program_of(const struct entry *entry, struct pe_program *before)
{
    const struct command_record *record = &entry->record;
    if (before && before->pe != record->pe)
        before = NULL;
    uint64_t launch = record->has_launch ? record->launch : before ? before->launch : 0;
    if (!record->has_launch && record->has_number && record->number == 0 && before && before->commands)
        launch++;                                       /* commands are numbered from 0 on again */
    if (before && before->launch == launch)
        return before;
    struct pe_program *program = arena_alloc(1, sizeof *program);
    program->launch = (uint32_t)launch;
    program->pe = record->pe;
    *array_add(&import.all) = program;
    return program;
}

/* Adds the delay before a submission at a time of the log. A program that is behind the log catches up later. */
static void keep_time(struct pe_program *program, const struct entry *entry)
{
    log_ps overhead = kb_attrs.pe_cpu_overhead_ps, gap = entry->record.start_ps - program->clock_ps - overhead;
    if (!program->submits || program->clock_unknown) {
        program->first_ps = program->submits ? program->first_ps : entry->record.start_ps;
        program->clock_ps = entry->record.start_ps;
        program->submits = true;
        program->clock_unknown = false;
    } else if (gap > INT64_MAX) {
        error_at(entry->record.where, "the record is more than 100 days after the one before it");
    } else if (gap > 0) {
        put(&program->text, delay_text((uint64_t)gap));
        program->clock_ps = entry->record.start_ps;
    } else {
        program->clock_ps += overhead;
    }
}

static void check_number(struct pe_program *program, const struct entry *entry)
{
    const struct command_record *record = &entry->record;
    if (!record->has_number)
        return;
    const char *pe = pe_name(&kb_pe[record->pe]);
    if (record->number < program->commands)
        error_at(entry->record.where, "%s: command %" PRIu64 " is here twice, or is later than those after it", pe, record->number);
    else if (record->number > program->commands && !import.missing++)
        message("%s:%u: %s: command %" PRIu64 " follows, but %u comes next: records are missing\n", import.path, entry->record.where.line,
                pe, record->number, (unsigned)program->commands);
    if (record->number > program->commands)
        program->commands = (uint32_t)record->number;
}

static void take_command(struct pe_program *program, const struct entry *entry)
{
    const struct command_record *record = &entry->record;
    bool composite = entry->kind == ENTRY_COMPOSITE;
    const char *id = record->id;
    check_number(program, entry);
    keep_time(program, entry);
    if (!id && composite && record->waited)
        id = arena_printf("command %u", (unsigned)program->commands);
    if (id && id_is_known(program, id)) {
        error_at(record->id_where, "two commands of %s have the id '%s'", pe_name(&kb_pe[record->pe]), id);
        return;
    }
    put(&program->text, "    - ");
    put(&program->text, entry->step);
    if (id)
        put(&program->text, arena_printf(", id: %s", json_quoted(id)));
    put(&program->text, composite || record->waited ? " }\n" : ", async: true }\n");
    if (composite && record->waited)
        put(&program->text, arena_printf("    - { do: wait, for: [%s] }\n", json_quoted(id)));
    if (id)
        id_keep(program, id);
    program->commands++;
    import.commands++;
    if (record->has_done && record->done_ps > program->latest_ps)
        program->latest_ps = record->done_ps;
    if (record->waited && record->has_done) {
        program->clock_ps = record->done_ps > program->clock_ps ? record->done_ps : program->clock_ps;
    } else if (record->waited) {
        program->clock_unknown = true;
        import.unknown_ends++;
    }
}

static void take_wait(struct pe_program *program, const struct entry *entry)
{
    const char *pe = pe_name(&kb_pe[program->pe]);
    if (!program->submits) {
        error_at(entry->record.where, "%s waits, but has issued no command", pe);
        return;
    }
    put(&program->text, "    - { do: wait, for: [");
    for (size_t i = 0; i < entry->awaited.count; i++) {
        if (!id_is_known(program, entry->awaited.at[i].id))
            error_at(entry->awaited.at[i].where, "no command of %s above has the id '%s'", pe, entry->awaited.at[i].id);
        put(&program->text, i ? ", " : "");
        put(&program->text, json_quoted(entry->awaited.at[i].id));
    }
    put(&program->text, "] }\n");
    program->clock_ps = entry->record.start_ps > program->clock_ps ? entry->record.start_ps : program->clock_ps;
    program->clock_unknown = false;
}

static void take_begin(struct pe_program *program, const struct entry *entry)
{
    if (program->submits || program->begun)
        error_at(entry->record.where, "the kernel of %s has begun already", pe_name(&kb_pe[program->pe]));
    program->begun = true;
    program->begin_ps = entry->record.start_ps;
}

/* The end of a kernel is a delay if no command is known to have ended then. */
static void take_end(struct pe_program *program, const struct entry *entry)
{
    log_ps from = program->submits ? program->clock_ps : program->begin_ps + kb_attrs.pe_cpu_launch_ps;
    log_ps gap = entry->record.start_ps - from;
    if (gap > 0 && gap <= INT64_MAX && entry->record.start_ps > program->latest_ps && (program->submits || program->begun)
        && !program->clock_unknown)
        put(&program->text, delay_text((uint64_t)gap));
    program->ended = true;
}

static void make_programs(void)
{
    struct pe_program *program = NULL;
    if (import.entries.count)
        qsort(import.entries.at, import.entries.count, sizeof *import.entries.at, command_order_compare);
    for (const struct entry *entry = import.entries.at; entry < import.entries.at + import.entries.count; entry++) {
        program = program_of(entry, program);
        if (program->ended) {
            error_at(entry->record.where, "the kernel of %s has ended", pe_name(&kb_pe[program->pe]));
            note_at(program->last, "here");
            continue;
        }
        switch (entry->kind) {
        case ENTRY_BEGIN: take_begin(program, entry); break;
        case ENTRY_END: take_end(program, entry); break;
        case ENTRY_WAIT: take_wait(program, entry); break;
        default: take_command(program, entry); break;
        }
        program->last = entry->record.where;
    }
}

/* ---- the stream */

static int by_place(const void *a, const void *b)
{
    const struct pe_program *x = *(struct pe_program *const *)a, *y = *(struct pe_program *const *)b;
    BY(x->launch, y->launch);
    BY(x->pe, y->pe);
    return 0;
}

/* Of one launch, by the text, then by the PE. */
static int by_text(const void *a, const void *b)
{
    const struct pe_program *x = *(struct pe_program *const *)a, *y = *(struct pe_program *const *)b;
    BY(x->first_ps, y->first_ps);
    BY(x->text.count, y->text.count);
    int order = x->text.count ? memcmp(x->text.at, y->text.at, x->text.count) : 0;
    return order ? order : by_place(a, b);
}

/* The latest start of a kernel whose first command is that of a program. */
static log_ps latest_start(const struct pe_program *program)
{
    return program->first_ps - (log_ps)kb_attrs.pe_cpu_overhead_ps - (log_ps)kb_attrs.pe_cpu_launch_ps;
}

/* When the kernels of a launch begin: as late as their records allow. */
static log_ps begin_of(struct pe_program *const *programs, size_t count)
{
    log_ps begin = 0;
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        const struct pe_program *program = programs[i];
        log_ps earliest = latest_start(program);
        if (program->begun && (!program->submits || program->begin_ps < earliest))
            earliest = program->begin_ps;
        if ((program->begun || program->submits) && (!known || earliest < begin)) {
            begin = earliest;
            known = true;
        }
    }
    return begin;
}

static void write_program(FILE *out, const struct pe_program *program, log_ps begin, unsigned number)
{
    fprintf(out, "  p%u:%s\n", number, program->text.count ? "" : " []");
    log_ps first = program->submits ? latest_start(program) - begin : 0;
    if (first > INT64_MAX)
        error_at(program->last, "the PEs of launch %u begin more than 100 days apart", (unsigned)program->launch);
    else if (first > 0)
        fputs(delay_text((uint64_t)first), out);
    if (program->text.count)
        fwrite(program->text.at, 1, program->text.count, out);
}

/* Whether two programs of one launch are the same. */
static bool are_equal(const struct pe_program *x, const struct pe_program *y)
{
    return x->first_ps == y->first_ps && x->text.count == y->text.count
           && (!x->text.count || !memcmp(x->text.at, y->text.at, x->text.count));
}

/* Writes the programs of a launch, from p`number` on, and adds the launch to the list of what the host does. */
static void write_launch(FILE *out, struct pe_program **programs, size_t count, unsigned *number, struct text *list)
{
    log_ps begin = begin_of(programs, count);
    put(list, import.host.count ? "  - { do: launch, parts: [" : "  - { parts: [");
    qsort(programs, count, sizeof *programs, by_text);
    for (size_t i = 0, last; i < count; i = last) {
        put(list, arena_printf("%s\n      { program: p%u, targets: [", i ? "," : "", *number));
        for (last = i; last < count && are_equal(programs[last], programs[i]); last++)
            put(list, arena_printf("%s%s", last > i ? ", " : "", pe_name(&kb_pe[programs[last]->pe])));
        put(list, "] }");
        write_program(out, programs[i], begin, (*number)++);
    }
    put(list, " ] }\n");
}

/* Adds what the host does before a launch and was not added yet. */
static void put_host_steps(struct text *list, size_t *next, uint64_t launch)
{
    for (; *next < import.host.count && import.host.at[*next].launch <= launch; (*next)++)
        put(list, arena_printf("  - %s\n", import.host.at[*next].text));
}

static void write_stream(FILE *out)
{
    const char *slash = strrchr(import.path, '/');
    struct text list = {0};
    unsigned number = 0;
    size_t end, host = 0;
    if (import.all.count)
        qsort(import.all.at, import.all.count, sizeof *import.all.at, by_place);
    fprintf(out, "name: %s\nprograms:%s\n", json_quoted(slash ? slash + 1 : import.path), import.all.count ? "" : " {}");
    for (size_t i = 0; i < import.all.count; i = end) {
        struct pe_program **first = &import.all.at[i];
        for (end = i; end < import.all.count && import.all.at[end]->launch == (*first)->launch;)
            end++;
        put_host_steps(&list, &host, (*first)->launch);
        import.launches++;
        write_launch(out, first, end - i, &number, &list);
    }
    put_host_steps(&list, &host, UINT64_MAX);
    fprintf(out, "%s:\n%s", import.host.count ? "host" : "launches", list.at);
    array_free(&list);
}

static int import_main(int argc, char **argv)
{
    const char *to = "-";
    for (int letter; (letter = subcommand_option(&import_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'o': to = optarg; break;
        case 'c': import.clock_khz = option_quantity("clock", optarg, DIMENSION_clock, NULL, "1.2 GHz"); break;
        default: numbers_option(letter, optarg);
        }
    numbers_options_end();
    import.path = subcommand_argument(&import_subcommand, argc, argv, "one firmware log");
    import.order = arena_alloc(pe_count(), sizeof *import.order);
    record_log_read(source_given(import.path), read_record, NULL);
    if (!error_count())
        make_programs();
    if (!error_count() && !import.all.count && !import.host.count)
        usage_error("%s has no command", import.path);
    errors_end();
    if (strcmp(to, "-") && is_same_file(to, import.path))
        usage_error("-o %s: the stream would replace the log", to);
    struct output out = output_open(to);
    write_stream(out.file);
    errors_end();
    output_close(&out);
    FILE *said = strcmp(to, "-") ? stdout : stderr;
    if (import.unknown_ends)
        message("%s: of %" PRIu64 " commands that were waited for, done_ns is not known: what follows is issued at once\n",
                import.path, import.unknown_ends);
    fprintf(said, "%s: %" PRIu64 " command%s, %zu program%s of PEs, %" PRIu64 " launch%s\n", printable(import.path), import.commands,
            import.commands == 1 ? "" : "s", import.all.count, import.all.count == 1 ? "" : "s", import.launches,
            import.launches == 1 ? "" : "es");
    return STATUS_GOOD;
}
