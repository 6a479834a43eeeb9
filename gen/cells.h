/* cells.h: a plan as rows of texts, for templates. */
#ifndef GEN_CELLS_H
#define GEN_CELLS_H

#include "plan.h"
#include "tmpl.h"

/* Requires: a plan with routes. Leaves: every table and condition of cells.def. */
const struct cells *fill_cells(const struct plan *plan, const char *version);

/* `text` as a comment can hold it: printable, and without the marks of a comment. */
const char *comment_text(const char *text);

#endif
