/* tmpl.h: templates, C text with holes, and the rows of text cells that fill them. */
#ifndef GEN_TMPL_H
#define GEN_TMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "../rt/common/diag.h"

/* A table: rows of texts under named columns. A hole `$column$` is replaced by the text of the current row. */
struct table {
    const char *name;                                   /* the NAME of `//@ each NAME` */
    const char *const *columns;
    size_t width;
    const char **cells;                                 /* [row][column] */
    size_t rows;
};

struct condition {
    const char *name;                                   /* the NAME of `//@ if NAME` */
    bool holds;
};

/* All names that templates may use. `once` is the table of one row whose columns may be used everywhere. */
struct cells {
    struct table once;
    struct table *tables;
    size_t table_count;
    const struct condition *conditions;
    size_t condition_count;
};

/* Expands a template. A directive takes a whole line:
 *
 *     //@ each TABLE ... //@ end          the lines between, once per row
 *     //@ if CONDITION ... //@ else ... //@ end
 *
 * Directives may be nested; an inner row's columns hide an outer row's. Errors are reported with error_at, in both
 * branches of an `if`; a template with errors gives NULL. */
const char *tmpl_expand(const struct source *template, const struct cells *cells);

#endif
