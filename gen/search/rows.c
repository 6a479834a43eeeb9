/* rows.c: points of a search as rows. */
#include "rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/json.h"
#include "facts.h"

const struct row_column row_trial = {"trial", "?2"}, row_same = {"points", "?3"};

struct row_column row_column_of(const struct stored_column *column)
{
    bool status = !strcmp(column->name, "status");
    return (struct row_column){column->name, status ? "iif(?4, 'infeasible', point.status)" : column->quoted};
}

const char *row_short_name(const char *name)
{
    return strncmp(name, AXIS_PARAMS, strlen(AXIS_PARAMS)) ? fact_short_name(name) : name;
}

/* ---- reading rows: `visit` gets the statement at each one */

static void each_row(const struct rows *rows, void (*visit)(sqlite3_stmt *row, void *arg), void *arg)
{
    const char *list = "";
    for (size_t i = 0; i < rows->column_count; i++)
        list = arena_printf("%s%s%s", list, i ? ", " : "", rows->columns[i].sql);
    sqlite3_stmt *query = stored_query(rows->stored, "SELECT %s, ?2, ?3, ?4 FROM point WHERE hash = ?1", list);
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->list[i];
        struct arena_mark mark = arena_mark();
        sqlite3_bind_text(query, 1, stored_hash_text(row->hash), -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(query, 2, row->trial);
        sqlite3_bind_int64(query, 3, (int64_t)row->same);
        sqlite3_bind_int(query, 4, row->infeasible);
        if (stored_step(rows->stored, query))
            visit(query, arg);
        sqlite3_reset(query);
        arena_release(mark);
    }
    sqlite3_finalize(query);
}

struct varying {
    const char **first;
    bool *vary;
    size_t count, rows;
};

static void compare_row(sqlite3_stmt *row, void *arg)
{
    struct varying *varying = arg;
    for (size_t i = 0; i < varying->count; i++) {
        const char *text = (const char *)sqlite3_column_text(row, (int)i);
        if (!varying->rows)
            varying->first[i] = text ? strdup(text) : NULL;
        else
            varying->vary[i] |= !text != !varying->first[i] || (text && strcmp(text, varying->first[i]) != 0);
    }
    varying->rows++;
}

const bool *rows_vary(const struct rows *rows)
{
    struct varying varying = {.count = rows->column_count};
    varying.first = arena_alloc(varying.count + 1, sizeof *varying.first);
    varying.vary = arena_alloc(varying.count + 1, sizeof *varying.vary);
    each_row(rows, compare_row, &varying);
    for (size_t i = 0; i < varying.count; i++)
        free((char *)varying.first[i]);
    return varying.vary;
}

/* A number with the fewest digits that read back the same; valid until the next call. */
static const char *shortest(double number)
{
    static char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}

/* ---- a table */

enum { HASH_DIGITS = 12, REAL_DIGITS = 6 };             /* that people are shown */

static const char *cell_text(const struct row_column *column, sqlite3_stmt *row, int i)
{
    if (sqlite3_column_type(row, i) == SQLITE_FLOAT)
        return arena_printf("%.*g", REAL_DIGITS, sqlite3_column_double(row, i));
    const char *text = stored_text(row, i);
    return !text ? "-" : !strcmp(column->name, "hash") ? arena_printf("%.*s", HASH_DIGITS, text) : printable(text);
}

/* The width of a text in characters: bytes that do not continue one in UTF-8. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

struct table {
    FILE *out;
    const struct rows *rows;
    int *widths;
    bool *right;
};

static void measure_row(sqlite3_stmt *row, void *arg)
{
    struct table *table = arg;
    for (size_t i = 0; i < table->rows->column_count; i++) {
        int width = width_of(cell_text(&table->rows->columns[i], row, (int)i));
        table->widths[i] = width > table->widths[i] ? width : table->widths[i];
        table->right[i] |= sqlite3_column_type(row, (int)i) == SQLITE_INTEGER || sqlite3_column_type(row, (int)i) == SQLITE_FLOAT;
    }
}

static void write_cell(const struct table *table, size_t i, const char *text)
{
    bool last = i + 1 == table->rows->column_count;
    int pad = table->widths[i] - width_of(text);
    fprintf(table->out, "%s%*s%s%*s", i ? "  " : "", table->right[i] ? pad : 0, "", text, table->right[i] || last ? 0 : pad, "");
    if (last)
        fputc('\n', table->out);
}

static void write_row(sqlite3_stmt *row, void *arg)
{
    struct table *table = arg;
    for (size_t i = 0; i < table->rows->column_count; i++)
        write_cell(table, i, cell_text(&table->rows->columns[i], row, (int)i));
}

/* The names of columns, short where no two of them become the same. */
static const char **headings(const struct rows *rows)
{
    const char **names = arena_alloc(rows->column_count + 1, sizeof *names);
    for (size_t i = 0; i < rows->column_count; i++) {
        names[i] = row_short_name(rows->columns[i].name);
        for (size_t j = 0; j < rows->column_count; j++)
            if (j != i && !strcmp(names[i], row_short_name(rows->columns[j].name)))
                names[i] = rows->columns[i].name;
    }
    return names;
}

void rows_table(FILE *out, const struct rows *rows)
{
    struct table table = {out, rows, arena_alloc(rows->column_count + 1, sizeof(int)), arena_alloc(rows->column_count + 1, sizeof(bool))};
    const char **names = headings(rows);
    for (size_t i = 0; i < rows->column_count; i++)
        table.widths[i] = width_of(names[i] = printable(names[i]));
    each_row(rows, measure_row, &table);
    for (size_t i = 0; i < rows->column_count; i++)
        write_cell(&table, i, names[i]);
    each_row(rows, write_row, &table);
}

/* ---- CSV (RFC 4180) */

struct writing {
    FILE *out;
    const struct rows *rows;
    size_t written;
};

static void write_field(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, out);
    fputc('"', out);
}

static void write_csv_row(sqlite3_stmt *row, void *arg)
{
    struct writing *writing = arg;
    for (int i = 0; i < (int)writing->rows->column_count; i++) {
        if (i)
            fputc(',', writing->out);
        if (sqlite3_column_type(row, i) == SQLITE_FLOAT)
            fputs(shortest(sqlite3_column_double(row, i)), writing->out);
        else if (sqlite3_column_type(row, i) != SQLITE_NULL)
            write_field(writing->out, (const char *)sqlite3_column_text(row, i));
    }
    fputc('\n', writing->out);
}

void rows_csv(FILE *out, const struct rows *rows)
{
    for (size_t i = 0; i < rows->column_count; i++) {
        if (i)
            fputc(',', out);
        write_field(out, rows->columns[i].name);
    }
    fputc('\n', out);
    each_row(rows, write_csv_row, &(struct writing){out, rows, 0});
}

/* ---- JSON */

static void write_json_row(sqlite3_stmt *row, void *arg)
{
    struct writing *writing = arg;
    fputs(writing->written++ ? ",\n  {" : "\n  {", writing->out);
    for (int i = 0; i < (int)writing->rows->column_count; i++) {
        fprintf(writing->out, "%s%s: ", i ? ", " : "", json_quoted(printable(writing->rows->columns[i].name)));
        int type = sqlite3_column_type(row, i);
        double real = sqlite3_column_double(row, i);
        if (type == SQLITE_INTEGER)
            fprintf(writing->out, "%" PRId64, (int64_t)sqlite3_column_int64(row, i));
        else if (type == SQLITE_FLOAT && isfinite(real))
            fputs(shortest(real), writing->out);
        else
            fputs(type == SQLITE_TEXT ? json_quoted(printable(stored_text(row, i))) : "null", writing->out);
    }
    fputc('}', writing->out);
}

void rows_json(FILE *out, const struct rows *rows)
{
    struct writing writing = {out, rows, 0};
    fputc('[', out);
    each_row(rows, write_json_row, &writing);
    fputs(writing.written ? "\n ]" : "]", out);
}

/* ---- .npy */

enum { NPY_ALIGNMENT = 64, NPY_PREAMBLE = 12 };         /* magic, version and length of the header */

struct field {
    bool text, real;
    size_t length;                                      /* of its longest text */
};

struct npy {
    FILE *out;
    const struct rows *rows;
    struct field *fields;
    size_t count;
};

static void measure_fields(sqlite3_stmt *row, void *arg)
{
    struct npy *npy = arg;
    npy->count++;
    for (int i = 0; i < (int)npy->rows->column_count; i++) {
        struct field *field = &npy->fields[i];
        int type = sqlite3_column_type(row, i);
        field->text |= type == SQLITE_TEXT;
        field->real |= type == SQLITE_FLOAT || type == SQLITE_NULL;
        if (type != SQLITE_NULL) {
            size_t length = (size_t)(sqlite3_column_text(row, i), sqlite3_column_bytes(row, i));
            field->length = length > field->length ? length : field->length;
        }
    }
}

static void write_record(sqlite3_stmt *row, void *arg)
{
    struct npy *npy = arg;
    for (int i = 0; i < (int)npy->rows->column_count; i++) {
        const struct field *field = &npy->fields[i];
        if (field->text) {
            char *text = arena_alloc(field->length + 1, 1);
            if (sqlite3_column_type(row, i) != SQLITE_NULL)
                strncpy(text, (const char *)sqlite3_column_text(row, i), field->length);
            fwrite(text, 1, field->length, npy->out);
        } else if (field->real) {
            double real = sqlite3_column_type(row, i) == SQLITE_NULL ? NAN : sqlite3_column_double(row, i);
            fwrite(&real, sizeof real, 1, npy->out);
        } else {
            int64_t whole = sqlite3_column_int64(row, i);
            fwrite(&whole, sizeof whole, 1, npy->out);
        }
    }
}

/* A text as a literal of Python, in ASCII: bytes of UTF-8 become code points. */
static const char *python_text(const char *text)
{
    char *literal = arena_alloc(10 * strlen(text) + 3, 1), *to = literal;
    const unsigned char *at = (const unsigned char *)printable(text);
    *to++ = '\'';
    while (*at) {
        unsigned point = *at++, more = point < 0x80 ? 0 : point < 0xe0 ? 1 : point < 0xf0 ? 2 : 3;
        point &= more ? 0x3fu >> more : 0x7f;
        for (; more && *at; more--)
            point = point << 6 | (*at++ & 0x3f);
        to += sprintf(to, point < 0x7f && point != '\'' && point != '\\' ? "%c" : "\\U%08x", point);
    }
    strcpy(to, "'");
    return literal;
}

void rows_npy(FILE *out, const struct rows *rows)
{
    struct npy npy = {out, rows, arena_alloc(rows->column_count + 1, sizeof(struct field)), 0};
    each_row(rows, measure_fields, &npy);
    const char *header = "{'descr': [";
    for (size_t i = 0; i < rows->column_count; i++) {
        struct field *field = &npy.fields[i];
        field->length += !field->length;
        header = arena_printf("%s%s(%s, '%s')", header, i ? ", " : "", python_text(rows->columns[i].name),
                              field->text ? arena_printf("|S%zu", field->length) : field->real ? "<f8" : "<i8");
    }
    header = arena_printf("%s], 'fortran_order': False, 'shape': (%zu,), }", header, npy.count);
    size_t total = NPY_PREAMBLE + strlen(header) + 1;
    size_t length = (total + NPY_ALIGNMENT - 1) / NPY_ALIGNMENT * NPY_ALIGNMENT - NPY_PREAMBLE;
    const unsigned char preamble[NPY_PREAMBLE] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, length & 0xff, length >> 8 & 0xff,
                                                  length >> 16 & 0xff, length >> 24 & 0xff};
    fwrite(preamble, 1, sizeof preamble, out);
    fprintf(out, "%-*s\n", (int)length - 1, header);
    each_row(rows, write_record, &npy);
}
