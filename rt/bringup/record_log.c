/* record_log.c: CSV and JSON as nodes, with places.
 *
 * CSV is that of RFC 4180, with or without CR; ; or a tab separates cells where the line of names has no comma. */
#include "record_log.h"

#include <string.h>

#include "common/arena.h"

enum { DEPTH_MOST = 64, NAMES_MOST = 1000 };              /* NAMES_MOST: of a record or an object */

struct reader {
    const struct source *source;
    const char *at, *end;
    const char *line;                                   /* where the line of `at` begins */
    unsigned number;                                    /* of that line */
    struct where cell;                                  /* of CSV: what is read is a copy of this cell; else no file */
    bool within_line;                                   /* a value ends before a line break */
};

static struct reader reader_of(const struct source *source)
{
    return (struct reader){source, source->text, source->text + source->length, source->text, source->lines_before + 1,
                           {0}, false};
}

/* ---- places and characters */

static struct where place(const struct reader *r, const char *at)
{
    unsigned col = 1;
    if (r->cell.file)
        return r->cell;
    for (const char *c = r->line; c < at; c++)
        col += ((unsigned char)*c & 0xc0) != 0x80;
    return (struct where){r->source, r->number, col};
}

static void next_line(struct reader *r)
{
    r->at++;
    r->line = r->at;
    r->number++;
}

static bool is_at(const struct reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || (*r->at == '\n' && !r->within_line))) {
        if (*r->at == '\n')
            next_line(r);
        else
            r->at++;
    }
}

static const char *line_end(const struct reader *r)
{
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    return newline ? newline : r->end;
}

/* Goes to the next line that has a record, or to the end. */
static bool find_record(struct reader *r)
{
    while (r->at < r->end) {
        while (is_at(r, ' ') || is_at(r, '\t') || is_at(r, '\r'))
            r->at++;
        if (r->at == r->end)
            return false;
        if (*r->at != '\n' && *r->at != '#')
            return true;
        r->at = line_end(r);
        if (r->at < r->end)
            next_line(r);
    }
    return false;
}

static struct node *scalar(struct where where, const char *text, size_t length, bool plain)
{
    struct node *node = node_new(where, NODE_SCALAR);
    node->text = arena_text(text, length);
    node->plain = plain;
    return node;
}

/* ---- JSON */

static struct node *read_json(struct reader *r, unsigned depth);

static bool hex(const char *digits, const char *end, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char *all = "0123456789abcdefABCDEF", *digit = digits + i < end && digits[i] ? strchr(all, digits[i]) : NULL;
        if (!digit)
            return false;
        unsigned value = (unsigned)(digit - all);
        *out = *out * 16 + (value < 16 ? value : value - 6);
    }
    return true;
}

static char *put_utf8(char *to, unsigned c)
{
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(leads[more] | c >> 6 * more);
    while (more--)
        *to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return to;
}

/* Reads \uXXXX, or two of them that are one character. Returns 0 after an error. */
static unsigned read_escape_u(struct reader *r)
{
    unsigned c, low;
    if (!hex(r->at + 1, r->end, &c))
        return 0;
    r->at += 5;
    if (c >= 0xd800 && c < 0xdc00 && r->at + 1 < r->end && r->at[0] == '\\' && r->at[1] == 'u' && hex(r->at + 2, r->end, &low)
        && low >= 0xdc00 && low < 0xe000) {
        r->at += 6;
        return 0x10000 + (c - 0xd800) * 0x400 + (low - 0xdc00);
    }
    return c >= 0xd800 && c < 0xe000 ? 0 : c;
}

static struct node *read_quoted(struct reader *r)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *begin = r->at++;
    char *text = NULL, *to = NULL;
    const char *end = r->at;
    while (end < r->end && *end != '"' && *end != '\n')
        end += *end == '\\' && end + 1 < r->end ? 2 : 1;
    if (end >= r->end || *end != '"') {
        error_at(place(r, begin), "this text has no end on its line");
        return NULL;
    }
    to = text = arena_alloc((size_t)(end - r->at) + 1, 1);
    while (r->at < end) {
        if (*r->at != '\\') {
            if (!*r->at)
                break;
            *to++ = *r->at++;
            continue;
        }
        const char *backslash = r->at++, *found = strchr(escapes, *r->at);
        unsigned c = found && *found ? (unsigned char)meant[found - escapes] : *r->at == 'u' ? read_escape_u(r) : 0;
        if (found && *found)
            r->at++;
        if (!c) {
            error_at(place(r, backslash), "this JSON escape is no character");
            return NULL;
        }
        to = put_utf8(to, c);
    }
    if (r->at < end) {
        error_at(place(r, r->at), "a text cannot have a NUL");
        return NULL;
    }
    r->at = end + 1;
    struct node *node = scalar(place(r, begin), text, (size_t)(to - text), false);
    return node;
}

/* A number, true, false, null, or a word without quotes. */
static struct node *read_word(struct reader *r)
{
    static const char ends[] = ",:{}[]\" \t\r\n";
    const char *begin = r->at;
    while (r->at < r->end && *r->at && !strchr(ends, *r->at))
        r->at++;
    if (r->at == begin) {
        error_at(place(r, begin), begin < r->end && *begin != '\n' ? "a value is missing here" : "the line ends where a value is missing");
        return NULL;
    }
    return scalar(place(r, begin), begin, (size_t)(r->at - begin), true);
}

/* Reads the end of an entry: a comma, or the bracket that closes the list. Returns false after an error. */
static bool read_between(struct reader *r, char close, const char *open, bool *closed)
{
    skip_blanks(r);
    *closed = is_at(r, close);
    if (*closed || is_at(r, ',')) {
        r->at++;
        skip_blanks(r);
        return true;
    }
    error_at(place(r, r->at), "'%c' or ',' is missing here", close);
    note_at(place(r, open), "what it would close begins here");
    return false;
}

static struct node *read_entries(struct reader *r, unsigned depth)
{
    const char *open = r->at;
    bool is_mapping = *open == '{', closed;
    char close = is_mapping ? '}' : ']';
    struct where where = place(r, open);
    struct node *node = node_new(where, is_mapping ? NODE_MAPPING : NODE_SEQUENCE), *key = NULL;
    r->at++;
    skip_blanks(r);
    closed = is_at(r, close);
    r->at += closed;
    while (!closed) {
        if (is_mapping) {
            key = is_at(r, '"') ? read_quoted(r) : read_word(r);
            if (!key)
                return NULL;
            skip_blanks(r);
            if (!is_at(r, ':')) {
                error_at(place(r, r->at), "':' is missing behind '%s'", key->text);
                return NULL;
            }
            r->at++;
            skip_blanks(r);
        }
        struct node *value = read_json(r, depth + 1);
        if (!value)
            return NULL;
        if (!is_mapping) {
            node_append(node, value);
        } else if (node->count == NAMES_MOST) {
            error_at(key->where, "an object has more than %d keys", NAMES_MOST);
            return NULL;
        } else if (node_get(node, key->text)) {
            error_at(key->where, "'%s' is here twice", key->text);
            return NULL;
        } else {
            node_add(node, key, value);
        }
        if (!read_between(r, close, open, &closed))
            return NULL;
    }
    return node;
}

static struct node *read_json(struct reader *r, unsigned depth)
{
    if (depth > DEPTH_MOST) {
        error_at(place(r, r->at), "values are nested more than %d deep", DEPTH_MOST);
        return NULL;
    }
    if (is_at(r, '{') || is_at(r, '['))
        return read_entries(r, depth);
    return is_at(r, '"') ? read_quoted(r) : read_word(r);
}

const struct node *json_read(const struct source *text)
{
    struct reader r = reader_of(text);
    skip_blanks(&r);
    const struct node *node = read_json(&r, 0);
    skip_blanks(&r);
    if (node && r.at < r.end) {
        error_at(place(&r, r.at), "the value has ended before this");
        return NULL;
    }
    return node;
}

/* What is null is not there. */
static struct node *without_nulls(const struct node *record)
{
    struct node *kept = node_new(record->where, NODE_MAPPING);
    for (size_t i = 0; i < record->count; i++)
        if (!node_is_null(record->entries[i].value))
            node_add(kept, record->entries[i].key, record->entries[i].value);
    return kept;
}

static struct node *read_json_line(struct reader *r)
{
    if (!is_at(r, '{')) {
        error_at(place(r, r->at), "a record must be a JSON object: { \"name\": value, ... }");
        return NULL;
    }
    struct node *record = read_json(r, 0);
    if (!record)
        return NULL;
    skip_blanks(r);
    if (r->at < line_end(r)) {
        error_at(place(r, r->at), "the record has ended before this");
        return NULL;
    }
    return without_nulls(record);
}

static void read_json_lines(struct reader *r, void (*each)(const struct node *, void *), void *arg)
{
    r->within_line = true;
    while (find_record(r)) {
        struct arena_mark mark = arena_mark();
        const struct node *record = read_json_line(r);
        if (record)
            each(record, arg);
        arena_release(mark);
        r->at = line_end(r);
        if (r->at < r->end)
            next_line(r);
    }
}

/* ---- CSV */

struct cell {
    struct where where;
    char *text;                                         /* without quotes, and without blanks around it */
};

struct names {
    struct node **list;                                 /* NULL: a column without a name */
    size_t count;
    char separator;
};

/* Reads a quoted cell, which may have line breaks. Returns NULL after an error. */
static char *read_quoted_cell(struct reader *r, struct where where)
{
    const char *begin = ++r->at;
    char *text = NULL, *to = NULL;
    for (int pass = 0; pass < 2; pass++) {              /* the first one finds the length */
        const char *c = begin;
        size_t length = 0;
        for (; c < r->end && (*c != '"' || (c + 1 < r->end && c[1] == '"')); c++, length++) {
            if (pass)
                *to++ = *c;
            if (pass && *c == '\n') {
                r->at = c;
                next_line(r);
            }
            c += *c == '"';
        }
        if (c == r->end) {
            error_at(where, "this quote is never closed");
            r->at = r->end;
            return NULL;
        }
        if (!pass)
            to = text = arena_alloc(length + 1, 1);
        else
            r->at = c + 1;
    }
    return text;
}

/* Reads a cell, and leaves `at` on the separator or the line break behind it. Returns false after an error. */
static bool read_cell(struct reader *r, char separator, struct cell *cell)
{
    while (is_at(r, ' ') || (is_at(r, '\t') && separator != '\t'))
        r->at++;
    cell->where = place(r, r->at);
    bool quoted = is_at(r, '"');
    const char *begin = r->at;
    if (quoted && !(cell->text = read_quoted_cell(r, cell->where)))
        return false;
    const char *rest = r->at;
    while (r->at < r->end && *r->at != separator && *r->at != '\n')
        r->at++;
    const char *end = r->at;
    while (end > rest && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (quoted && end > rest) {
        error_at(place(r, rest), "the quoted cell has ended before this");
        return false;
    }
    if (!quoted)
        cell->text = arena_text(begin, (size_t)(end - begin));
    if (!quoted && memchr(begin, '\0', (size_t)(end - begin))) {
        error_at(cell->where, "a cell cannot have a NUL");
        return false;
    }
    return true;
}

/* The cell as a node; NULL after an error. */
static struct node *cell_node(const struct reader *r, const struct cell *cell)
{
    if (*cell->text != '{' && *cell->text != '[')
        return scalar(cell->where, cell->text, strlen(cell->text), true);
    struct reader of_cell = {r->source, cell->text, cell->text + strlen(cell->text), NULL, 0, cell->where, true};
    struct node *node = read_json(&of_cell, 1);
    skip_blanks(&of_cell);
    if (node && of_cell.at < of_cell.end) {
        error_at(cell->where, "the value of this cell ends before the cell does");
        return NULL;
    }
    return node;
}

/* Reads the cells of a line. Returns false after an error; `at` is then on the next line break. */
static bool read_row(struct reader *r, const struct names *names, struct node *record)
{
    size_t count = 0;
    bool good = true;
    for (;; count++, r->at++) {
        struct cell cell;
        if (!read_cell(r, names->separator, &cell))
            return false;
        const struct node *name = count < names->count ? names->list[count] : NULL;
        if (*cell.text && name) {
            struct node *value = cell_node(r, &cell);
            good &= value != NULL;
            if (value)
                node_add(record, (struct node *)name, value);
        } else if (*cell.text) {
            error_at(cell.where, count < names->count ? "this column has no name" : "there are %zu names, but this is cell %zu",
                     names->count, count + 1);
            return false;
        }
        if (!is_at(r, names->separator))
            break;
    }
    if (count + 1 < names->count) {
        error_at(record->where, "the line has %zu cells, but there are %zu names", count + 1, names->count);
        return false;
    }
    return good;
}

static struct names read_names(struct reader *r)
{
    struct names names = {.separator = ','};
    const char *end = line_end(r);
    size_t length = (size_t)(end - r->at);
    if (!memchr(r->at, ',', length))
        names.separator = memchr(r->at, ';', length) ? ';' : memchr(r->at, '\t', length) ? '\t' : ',';
    for (;; r->at++) {
        struct cell cell;
        if (!read_cell(r, names.separator, &cell))
            break;
        for (size_t i = 0; i < names.count; i++)
            if (names.list[i] && !strcmp(names.list[i]->text, cell.text))
                error_at(cell.where, "two columns are called '%s'", cell.text);
        if (names.count == NAMES_MOST) {
            error_at(cell.where, "there are more than %d columns", NAMES_MOST);
            break;
        }
        names.list = arena_grow(names.list, names.count, sizeof *names.list);
        names.list[names.count++] = *cell.text ? scalar(cell.where, cell.text, strlen(cell.text), true) : NULL;
        if (!is_at(r, names.separator))
            break;
    }
    return names;
}

static void read_csv(struct reader *r, void (*each)(const struct node *, void *), void *arg)
{
    unsigned before = error_count();
    struct names names = read_names(r);
    if (error_count() > before)
        return;
    for (;;) {
        r->at = line_end(r);
        if (r->at < r->end)
            next_line(r);
        if (!find_record(r))
            return;
        struct arena_mark mark = arena_mark();
        struct node *record = node_new(place(r, r->at), NODE_MAPPING);
        if (read_row(r, &names, record))
            each(record, arg);
        arena_release(mark);
    }
}

bool record_log_is_json(const struct source *log)
{
    struct reader r = reader_of(log);
    return find_record(&r) && (*r.at == '{' || *r.at == '[');
}

void record_log_read(const struct source *log, void (*each)(const struct node *, void *), void *arg)
{
    struct reader r = reader_of(log);
    if (!find_record(&r)) {
        error_at((struct where){log, log->lines_before + 1, 1}, "the log has no record");
        return;
    }
    if (*r.at == '{' || *r.at == '[')
        read_json_lines(&r, each, arg);
    else
        read_csv(&r, each, arg);
}
