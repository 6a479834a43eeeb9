/* tmpl.h: templates, C text with holes, and the rows of text cells that fill them. */
#ifndef GEN_TMPL_H
#define GEN_TMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "../rt/common/diag.h"

/* Rows of texts under named columns. A hole `$column$` stands for the current row's text. */
struct table {
    const char *name;                                   /* what `//@ each NAME` says */
    const char *const *columns;
    size_t width;
    const char **cells;                                 /* [row][column] */
    size_t rows;
};

struct condition {
    const char *name;                                   /* what `//@ if NAME` says */
    bool holds;
};

/* All that templates may name. `once` is the table of one row whose columns stand everywhere. */
struct cells {
    struct table once;
    struct table *tables;
    size_t table_count;
    const struct condition *conditions;
    size_t condition_count;
};

/* Expands a template. Directives stand alone in a line:
 *     //@ each TABLE ... //@ end          the lines between, once per row
 *     //@ if CONDITION ... //@ else ... //@ end
 * They may be nested; an inner row's columns hide an outer one's. A template with errors is reported with error_at, all
 * branches alike, and gives NULL. */
const char *tmpl_expand(const struct source *template, const struct cells *cells);

#endif
