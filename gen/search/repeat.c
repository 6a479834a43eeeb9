/* repeat.c: what repeats a stored point. */
#include "repeat.h"

#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/json.h"
#include "../impl.h"
#include "../load.h"
#include "../numbers.h"
#include "axis.h"

/* ---- the topology */

static const struct node *without(const struct node *mapping, const char *key)
{
    struct node *rest = node_new(mapping->where, NODE_MAPPING);
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->entries[i].key->text, key) != 0)
            node_add(rest, mapping->entries[i].key, mapping->entries[i].value);
    return rest;
}

const struct node *repeat_topology(const struct stored *stored, char *const *sets, size_t set_count)
{
    if (*stored->topology != 'f')                       /* it begins with a file (gen/numbers.c) */
        usage_error("%s is damaged: search %lld has no topology", stored->path, (long long)stored->search);
    struct topology_text text;
    struct impl_files impls;
    const char *path = read_topology(stored->topology, &text, &impls);
    char **all = arena_alloc(text.set_count + set_count + 1, sizeof *all);
    for (size_t i = 0; i < text.set_count + set_count; i++)
        all[i] = i < text.set_count ? text.sets[i] : sets[i - text.set_count];
    text.sets = all;
    text.set_count += set_count;
    struct layers layers = load_topology(path, &text);
    return without(merge_layers(&layers), "include");
}

const char *repeat_scalar(const struct node *scalar)
{
    return scalar->plain ? scalar->text : json_quoted(scalar->text);
}

enum { INDENT = 2 };

static void write_value(FILE *out, const struct node *node, int depth, bool in_item);

static void write_entries(FILE *out, const struct node *mapping, int depth, bool in_item)
{
    for (size_t i = 0; i < mapping->count; i++) {
        fprintf(out, "%*s%s:", in_item && !i ? 0 : depth * INDENT, "", repeat_scalar(mapping->entries[i].key));
        write_value(out, mapping->entries[i].value, depth + 1, false);
    }
}

/* Writes a value behind its key, or behind the dash of an item. */
static void write_value(FILE *out, const struct node *node, int depth, bool in_item)
{
    if (node->type == NODE_SCALAR) {
        fprintf(out, "%s%s\n", *node->text || !node->plain ? " " : "", repeat_scalar(node));
    } else if (!node->count) {
        fprintf(out, node->type == NODE_MAPPING ? " {}\n" : " []\n");
    } else if (node->type == NODE_MAPPING) {
        fprintf(out, in_item ? " " : "\n");
        write_entries(out, node, depth, in_item);
    } else {
        fprintf(out, "\n");
        for (size_t i = 0; i < node->count; i++) {
            fprintf(out, "%*s-", depth * INDENT, "");
            write_value(out, node->items[i], depth + 1, true);
        }
    }
}

void repeat_write(FILE *out, const struct node *mapping)
{
    write_entries(out, mapping, 0, false);
}

const char *repeat_value(sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) != SQLITE_FLOAT)
        return stored_text(row, column);
    double real = sqlite3_column_double(row, column);
    char *text = NULL;
    for (int digits = 15; digits <= 17; digits++) {
        text = arena_printf("%.*g", digits, real);
        if (strtod(text, NULL) == real)
            break;
    }
    return text;
}

/* ---- commands */

const char *repeat_quoted(const char *word)
{
    if (*word && !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%")])
        return word;
    char *quoted = arena_alloc(4 * strlen(word) + 3, 1), *to = quoted;
    *to++ = '\'';
    for (; *word; word++)
        to += sprintf(to, *word == '\'' ? "'\\''" : "%c", *word);
    *to = '\'';
    return quoted;
}

/* A statement over what `about` says of the search. */
static sqlite3_stmt *about_query(const struct stored *stored, const char *sql)
{
    sqlite3_stmt *query = stored_query(stored, "%s", sql);
    sqlite3_bind_text(query, 1, stored->about, -1, SQLITE_STATIC);
    return query;
}

struct repeat_workloads repeat_workloads(const struct stored *stored)
{
    struct repeat_workloads workloads = {0};
    sqlite3_stmt *query = about_query(stored, "SELECT value ->> 'name', value ->> 'bench', value ->> 'replay', coalesce("
        "(SELECT group_concat(key || '=' || value, char(10)) FROM json_each(each.value, '$.params')), '')"
        " FROM json_each(?1, '$.workloads') AS each");
    while (stored_next(stored, query)) {
        const char *name = stored_text(query, 0), *bench = stored_text(query, 1), *stream = stored_text(query, 2);
        const char *fixed = "";
        for (const char *at = stored_text(query, 3), *end; *at; at = end + (*end == '\n')) {
            end = at + strcspn(at, "\n");
            fixed = arena_printf("%s %s", fixed, repeat_quoted(arena_text(at, (size_t)(end - at))));
        }
        workloads.list = arena_grow(workloads.list, workloads.count, sizeof *workloads.list);
        workloads.list[workloads.count++] = (struct repeat_workload){
            name ? name : "", bench ? arena_printf("run %s", repeat_quoted(bench)) : arena_printf("replay %s", repeat_quoted(stream ? stream : "")), fixed};
    }
    return workloads;
}

/* Whether the search says which axes a workload takes, and this is none of them. */
static bool is_denied(const struct stored *stored, const struct repeat_workload *workload, const char *axis)
{
    sqlite3_stmt *query = about_query(stored, "SELECT 1 FROM json_each(?1, '$.workloads') AS each WHERE value ->> 'name' = ?2"
        " AND json_type(value, '$.axes') = 'array' AND ?3 NOT IN (SELECT value FROM json_each(each.value, '$.axes'))");
    sqlite3_bind_text(query, 2, workload->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(query, 3, axis, -1, SQLITE_STATIC);
    bool denied = stored_step(stored, query);
    sqlite3_finalize(query);
    return denied;
}

const char *repeat_param_name(const struct stored *stored, const struct repeat_workload *workload, const char *axis)
{
    if (strncmp(axis, AXIS_PARAMS, strlen(AXIS_PARAMS)) || is_denied(stored, workload, axis))
        return NULL;
    const char *name = axis + strlen(AXIS_PARAMS), *dot = strchr(name, '.');
    if (!dot)
        return name;
    return strlen(workload->name) == (size_t)(dot - name) && !strncmp(name, workload->name, (size_t)(dot - name)) ? dot + 1 : NULL;
}

const char *repeat_build_options(const struct stored *stored)
{
    const char *options = "";
    sqlite3_stmt *query = about_query(stored, "SELECT '-k', value FROM json_each(?1, '$.kernels') UNION ALL"
                                              " SELECT '--impl', value FROM json_each(?1, '$.impls')");
    while (stored_next(stored, query))
        options = arena_printf("%s %s %s", options, stored_text(query, 0), repeat_quoted(stored_text(query, 1)));
    return options;
}
