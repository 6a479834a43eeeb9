/* row.c: rows of tables for templates, and the texts that stand in them. */
#include "row.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "words.h"

#define text arena_printf

const char *comment_text(const char *from)
{
    char *to = arena_printf("%s", from);
    for (char *c = to; *c; c++) {
        bool ends = (c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*');
        if (ends || *c < ' ' || *c > '~')
            *c = '?';
    }
    return to;
}

const char *place_text(struct where where, const char *key)
{
    if (!where.file)
        return text("default %s", key);
    if (!strcmp(where.file->path, "--set"))
        return text("--set %s", key);
    return comment_text(text("%s:%u %s", base_name(where.file->path), where.line, key));
}

const char *number_text(uint64_t n)
{
    return text("%llu", (unsigned long long)n);
}

void add_row(struct table *table, ...)
{
    table->cells = arena_grow(table->cells, table->rows, table->width * sizeof *table->cells);
    va_list cells;
    va_start(cells, table);
    for (size_t i = 0; i < table->width; i++)
        table->cells[table->rows * table->width + i] = va_arg(cells, const char *);
    va_end(cells);
    table->rows++;
}

void set_cell(struct table *once, const char *column, const char *cell)
{
    size_t i = 0;
    while (i < once->width && strcmp(once->columns[i], column))
        i++;
    assert(i < once->width && !once->cells[i]);
    once->cells[i] = cell;
}
