/* vector.c: reads points as vectors of levels. */
#include "vector.h"

#include <inttypes.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/array.h"
#include "../../rt/common/read.h"
#include "../../rt/common/yaml.h"

enum { SAID_MOST = 8 };                                 /* levels that a message lists */

static const char *levels_text(const struct axis *axis)
{
    if (axis->count > SAID_MOST)
        return arena_printf("%" PRIu64 " levels from %s to %s", axis->count, axis_text(axis, 0), axis_text(axis, axis->count - 1));
    const char *text = axis_text(axis, 0);
    for (uint64_t i = 1; i < axis->count; i++)
        text = arena_printf("%s, %s", text, axis_text(axis, i));
    return text;
}

static bool read_level(const struct axis *axis, const struct node *value, uint32_t *out)
{
    uint64_t level;
    if (axis_find(axis, value, &level)) {
        *out = (uint32_t)level;
        return true;
    }
    if (!value->broken)
        error_at(value->where, "%s has no such level; it has %s", axis->name, levels_text(axis));
    return false;
}

static const char **axis_names(const struct space *space)
{
    const char **names = arena_alloc(space->axis_count, sizeof *names);
    for (size_t i = 0; i < space->axis_count; i++)
        names[i] = space->axes[i].name;
    return names;
}

bool vector_read(const struct space *space, const struct node *point, uint32_t *levels)
{
    if (!node_is(point, NODE_MAPPING, "a point"))
        return false;
    unsigned errors = error_count();
    node_check_keys(point, "the space", axis_names(space), space->axis_count);
    for (size_t i = 0; i < space->axis_count; i++) {
        const struct node *value = node_get(point, space->axes[i].name);
        if (value)
            read_level(&space->axes[i], value, &levels[i]);
        else
            error_at(point->where, "the point lacks %s", space->axes[i].name);
    }
    return error_count() == errors;
}

/* ---- files */

struct vectors ARRAY(uint32_t);

/* What is read of a file. */
struct reading {
    const struct space *space;
    const struct source *line;                          /* NULL: there is none left */
    const struct source *file;
    bool is_csv;
    size_t at;                                          /* the next line begins here */
    unsigned number;
    struct vectors vectors;
    uint64_t count;
};

/* The length of a record of CSV: between quotation marks, a field may have newlines. */
static size_t record_length(const char *text)
{
    size_t length = 0;
    for (bool is_quoted = false; text[length] && (is_quoted || text[length] != '\n'); length++)
        is_quoted ^= text[length] == '"';
    return length;
}

/* Goes to the next line that is not blank, of CSV to the next record. Returns false at the end. */
static bool next_line(struct reading *reading)
{
    const struct source *file = reading->file;
    while (reading->at < file->length) {
        const char *text = file->text + reading->at;
        size_t length = reading->is_csv ? record_length(text) : strcspn(text, "\n");
        size_t kept = length > 0 && text[length - 1] == '\r' ? length - 1 : length;
        struct source *line = arena_alloc(1, sizeof *line);
        *line = (struct source){file->path, arena_text(text, kept), kept, reading->number};
        reading->line = line;
        reading->at += length + 1;
        reading->number++;
        for (size_t i = 0; i < length; i++)
            reading->number += text[i] == '\n';
        if (strspn(line->text, " \t") < line->length)
            return true;
    }
    return false;
}

static uint32_t *new_vector(struct reading *reading)
{
    size_t axes = reading->space->axis_count;
    array_reserve(&reading->vectors, reading->vectors.count + axes);
    uint32_t *out = reading->vectors.at + reading->vectors.count;
    reading->vectors.count += axes;
    reading->count++;
    return out;
}

static void read_json_line(struct reading *reading)
{
    const struct node *node = yaml_document(reading->line);
    if (node)
        vector_read(reading->space, node, new_vector(reading));
}

/* Reads a field of CSV, quoted or not, as a scalar, or in YAML's flow style. Returns where the next one begins, or NULL. */
static const char *read_field(const struct source *line, const char *at, const struct node **out)
{
    struct where where = {line, line->lines_before + 1, 1};
    for (const char *before = line->text; before < at; before++) {
        where.line += *before == '\n';
        where.col = *before == '\n' ? 1 : where.col + 1;
    }
    struct node *node = node_new(where, NODE_SCALAR);
    bool is_quoted = *at == '"', is_closed = !is_quoted;
    char *text = arena_text(at, strlen(at)), *to = text;
    for (at += is_quoted; *at && (is_quoted || *at != ','); at++) {
        is_closed = *at == '"' && is_quoted && *++at != '"';
        if (is_closed)
            break;
        *to++ = *at;
    }
    *to = '\0';
    if (is_quoted && !is_closed)
        error_at(where, "the field has no closing quotation mark");
    else if (*at && *at != ',')
        error_at(where, "behind the closing quotation mark of a field comes a comma, or the next line");
    node->text = text;
    node->plain = true;
    *out = node;
    if (*text == '{' || *text == '[') {
        struct source *flow = arena_alloc(1, sizeof *flow);
        *flow = (struct source){line->path, text, strlen(text), line->lines_before};
        const struct node *value = yaml_value(flow, 0);
        *out = value ? value : node;
    }
    return *at == ',' ? at + 1 : NULL;
}

/* Reads the fields of a line; the array is in the arena. */
static size_t read_fields(const struct source *line, const struct node ***out)
{
    const struct node **fields = NULL;
    size_t count = 0;
    for (const char *at = line->text; at;) {
        fields = arena_grow(fields, count, sizeof *fields);
        at = read_field(line, at, &fields[count++]);
    }
    *out = fields;
    return count;
}

/* The column of each axis. Returns NULL after an error. */
static size_t *read_header(struct reading *reading)
{
    const struct space *space = reading->space;
    const struct node **names;
    size_t count = read_fields(reading->line, &names), *columns = arena_alloc(space->axis_count, sizeof *columns);
    unsigned errors = error_count();
    for (size_t i = 0; i < space->axis_count; i++) {
        while (columns[i] < count && strcmp(names[columns[i]]->text ? names[columns[i]]->text : "", space->axes[i].name))
            columns[i]++;
        if (columns[i] == count)
            error_at(names[0]->where, "there is no column %s", space->axes[i].name);
    }
    return error_count() == errors ? columns : NULL;
}

static void read_csv_line(struct reading *reading, const size_t *columns)
{
    const struct space *space = reading->space;
    const struct node **fields;
    unsigned errors = error_count();
    size_t count = read_fields(reading->line, &fields);
    uint32_t *levels = new_vector(reading);
    if (error_count() != errors)
        return;
    for (size_t i = 0; i < space->axis_count; i++) {
        if (columns[i] < count)
            read_level(&space->axes[i], fields[columns[i]], &levels[i]);
        else
            error_at(fields[count - 1]->where, "the line has %zu fields, and %s is field %zu", count, space->axes[i].name,
                     columns[i] + 1);
    }
}

uint32_t *vectors_of_file(const struct space *space, const char *path, uint64_t *count)
{
    struct reading reading = {.space = space, .file = source_given(path)};
    const size_t *columns = NULL;
    bool is_json = reading.file->text[strspn(reading.file->text, " \t\r\n")] == '{';
    reading.is_csv = !is_json;
    if (!is_json && next_line(&reading) && !(columns = read_header(&reading)))
        return NULL;
    /* The text of a line is needed as long as a message may quote it. */
    for (struct arena_mark mark = arena_mark(); next_line(&reading); error_count() ? (void)0 : arena_release(mark)) {
        if (is_json)
            read_json_line(&reading);
        else
            read_csv_line(&reading, columns);
    }
    if (reading.count == 0 && !error_count())
        error_at((struct where){reading.file, 1, 1}, "the file has no points");
    *count = reading.count;
    return reading.vectors.at;
}
