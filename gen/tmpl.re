/* tmpl.re: expands templates; tmpl.h describes them.
 *
 * The lines between `each` and `end` are read again for every row, and once without output if there is no row, so that
 * their errors are found in any case. Nothing is computed here. */
#include "tmpl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rt/common/arena.h"

enum { NESTING_MOST = 16 };

enum token { TEXT, HOLE, STRAY, EACH, IF, ELSE, END, BAD, FINISH };

struct span {
    const char *from, *to;
};

struct expansion {
    const struct source *template;
    const struct cells *cells;
    const char *at, *directive;                         /* position of the lexer; the last directive */
    FILE *out;
    unsigned depth;
    struct { const struct table *table; size_t row; } open[NESTING_MOST];   /* the enclosing blocks; table NULL: an `if` */
};

/*!re2c
    re2c:define:YYCTYPE = "unsigned char";
    re2c:yyfill:enable = 0;
    re2c:flags:tags = 1;
    name = [a-zA-Z_][a-zA-Z0-9_]*;
    blank = [ \t\r];
*/

/* Recognises the directive of a line from its "//@" on; *name becomes the name in it. */
static enum token lex_directive(const char *YYCURSOR, struct span *name)
{
    const char *YYMARKER, *from, *to;
    /*!stags:re2c format = 'const char *@@;'; */
    enum token token;
    /*!re2c
        end = blank* [\n\x00];
        "//@" blank+ "each" blank+ @from name @to end   { token = EACH; goto named; }
        "//@" blank+ "if" blank+ @from name @to end     { token = IF; goto named; }
        "//@" blank+ "else" end                         { return ELSE; }
        "//@" blank+ "end" end                          { return END; }
        *                                               { return BAD; }
    */
named:
    *name = (struct span){from, to};
    return token;
}

/* Reads the next token. A directive must take its whole line; *span becomes a text or a name. */
static enum token lex(struct expansion *x, struct span *span)
{
    const char *YYCURSOR = x->at, *YYMARKER;
    const char *from = x->at, *end = x->template->text + x->template->length;
    enum token token = TEXT;
    if (from == end)
        return FINISH;
    /*!re2c
        "$" name "$"                    { token = HOLE; goto done; }
        "$"                             { token = STRAY; goto done; }
        blank* "//@" [^\n\x00]*         { token = BAD; goto done; }
        [^$/ \t\r\x00]+                 { goto done; }
        *                               { goto done; }
    */
done:
    x->at = YYCURSOR;
    *span = token == HOLE ? (struct span){from + 1, YYCURSOR - 1} : (struct span){from, YYCURSOR};
    if (token == BAD) {
        span->from = x->directive = strstr(from, "//@");
        if (from == x->template->text || from[-1] == '\n') {
            token = lex_directive(x->directive, span);
            x->at += *x->at == '\n';
        }
    }
    return token;
}

static struct where where_is(const struct expansion *x, const char *at)
{
    struct where where = {x->template, 1, 1};
    for (const char *c = x->template->text; c < at; c++) {
        where.col = *c == '\n' ? 1 : where.col + 1;
        where.line += *c == '\n';
    }
    return where;
}

static bool same(struct span span, const char *name)
{
    size_t length = (size_t)(span.to - span.from);
    return strlen(name) == length && memcmp(name, span.from, length) == 0;
}

static void error_name(const struct expansion *x, struct span name, const char *what)
{
    error_at(where_is(x, name.from), "no %s '%.*s'", what, (int)(name.to - name.from), name.from);
}

/* The text of a column in a table's current row. *found tells a table without rows from a table without the column. */
static const char *cell(const struct table *table, size_t row, struct span name, bool *found)
{
    for (size_t i = 0; i < table->width; i++) {
        if (!same(name, table->columns[i]))
            continue;
        *found = true;
        return row < table->rows ? table->cells[row * table->width + i] : NULL;
    }
    return NULL;
}

static void put_hole(struct expansion *x, struct span name, bool live)
{
    bool found = false;
    const char *text = NULL;
    for (unsigned i = x->depth; i-- > 0 && !found;)
        if (x->open[i].table)
            text = cell(x->open[i].table, x->open[i].row, name, &found);
    if (!found)
        text = cell(&x->cells->once, 0, name, &found);
    if (!found)
        error_name(x, name, "hole");
    else if (live)
        fputs(text, x->out);
}

static const struct table *find_table(const struct expansion *x, struct span name)
{
    for (size_t i = 0; i < x->cells->table_count; i++)
        if (same(name, x->cells->tables[i].name))
            return &x->cells->tables[i];
    error_name(x, name, "table");
    return NULL;
}

static bool find_condition(const struct expansion *x, struct span name)
{
    for (size_t i = 0; i < x->cells->condition_count; i++)
        if (same(name, x->cells->conditions[i].name))
            return x->cells->conditions[i].holds;
    error_name(x, name, "condition");
    return false;
}

static enum token expand_lines(struct expansion *x, bool live);

/* Expands the lines up to `end`: those before an `else` if the condition holds, those after it otherwise. */
static void expand_if(struct expansion *x, struct span name, bool live)
{
    bool holds = find_condition(x, name);
    enum token stopped = expand_lines(x, live && holds);
    if (stopped == ELSE)
        stopped = expand_lines(x, live && !holds);
    if (stopped != END)
        error_at(where_is(x, name.from), "'if' without its 'end'");
}

static void expand_each(struct expansion *x, struct span name, bool live)
{
    static const struct table empty;
    const struct table *table = find_table(x, name);
    size_t *row = &x->open[x->depth - 1].row, rows = table && live ? table->rows : 0;
    const char *body = x->at;
    x->open[x->depth - 1].table = table ? table : &empty;
    *row = 0;
    do {
        x->at = body;
        if (expand_lines(x, *row < rows) != END) {
            error_at(where_is(x, name.from), "'each' without its 'end'");
            return;
        }
    } while (++*row < rows && error_count() == 0);
}

static void expand_block(struct expansion *x, enum token kind, struct span name, bool live)
{
    if (x->depth == NESTING_MOST) {
        error_at(where_is(x, name.from), "blocks are nested more than %d deep", NESTING_MOST);
        x->at = x->template->text + x->template->length;
        return;
    }
    x->open[x->depth++].table = NULL;
    if (kind == EACH)
        expand_each(x, name, live);
    else
        expand_if(x, name, live);
    x->depth--;
}

/* Expands lines, or only checks them, up to an `else`, an `end` or the end of the template; returns which. */
static enum token expand_lines(struct expansion *x, bool live)
{
    for (;;) {
        struct span span;
        enum token token = lex(x, &span);
        switch (token) {
        case TEXT:
            if (live)
                fwrite(span.from, 1, (size_t)(span.to - span.from), x->out);
            break;
        case HOLE:
            put_hole(x, span, live);
            break;
        case EACH:
        case IF:
            expand_block(x, token, span, live);
            break;
        case STRAY:
            error_at(where_is(x, span.from), "a '$' that begins no hole");
            break;
        case BAD:
            error_at(where_is(x, span.from), "no directive; there are each NAME, if NAME, else, end, alone in a line");
            break;
        default:
            return token;
        }
    }
}

const char *tmpl_expand(const struct source *template, const struct cells *cells)
{
    char *text = NULL;
    size_t length;
    unsigned errors = error_count();
    struct expansion x = {.template = template, .cells = cells, .at = template->text};
    x.out = open_memstream(&text, &length);
    if (!x.out)
        die("out of memory");
    enum token stopped = expand_lines(&x, true);
    if (stopped != FINISH)
        error_at(where_is(&x, x.directive), "'%s' without a block", stopped == END ? "end" : "else");
    if (fclose(x.out) != 0)
        die("out of memory");
    const char *kept = error_count() == errors ? arena_text(text, length) : NULL;
    free(text);
    return kept;
}
