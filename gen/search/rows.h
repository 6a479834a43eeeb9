/* rows.h: points of a search as rows: as a table, CSV, JSON, or a NumPy array. */
#ifndef GEN_SEARCH_ROWS_H
#define GEN_SEARCH_ROWS_H

#include <stdio.h>

#include "stored.h"

/* A column of the output: one of the store, or one that a row itself has. */
struct row_column {
    const char *name;
    const char *sql;                                    /* its expression, over `point` and the parameters ?2 ?3 ?4 of a row */
};

struct row {
    struct point_hash hash;
    int64_t trial;                                      /* the first one that is this point */
    uint64_t same;                                      /* points with the same objectives, itself included */
    bool infeasible;
};

struct rows {
    const struct stored *stored;
    const struct row_column *columns;
    size_t column_count;
    const struct row *list;
    size_t count;
};

/* Columns of a row itself: the number of its trial, and how many points have its objectives; and columns of the store, of
 * which `status` is that of the search: infeasible as well. */
extern const struct row_column row_trial, row_same;
struct row_column row_column_of(const struct stored_column *column);

/* A name for a narrow column: "gemm.rows" for "cube.pe_template.components.pe_gemm.attrs.rows". */
const char *row_short_name(const char *name);

/* Whether a column differs between rows, for each column. */
const bool *rows_vary(const struct rows *rows);

void rows_table(FILE *out, const struct rows *rows);
void rows_csv(FILE *out, const struct rows *rows);

/* An array of an object for each row, one a line; the caller has written what comes before it. */
void rows_json(FILE *out, const struct rows *rows);

/* A .npy file, version 2, of a one-dimensional structured array: i8 for whole numbers, f8 for other numbers and where one
 * is missing (NaN), S for texts. */
void rows_npy(FILE *out, const struct rows *rows);

#endif
