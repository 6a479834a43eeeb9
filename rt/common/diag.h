/* diag.h: what is said when something is wrong: the user's input, or the world. Shared by kbgen and the simulator. */
#ifndef TEXT_DIAG_H
#define TEXT_DIAG_H

#include <stddef.h>

#include "fail.h"

/* A file of text, kept for the lines that messages quote. */
struct source {
    const char *path;                                   /* as the user named it; "--set" for overrides */
    const char *text;
    size_t length;
    unsigned lines_before;                              /* of the file, that are not in the text */
};

/* A place in a source; line and column count from 1. file NULL: nowhere (a default). */
struct where {
    const struct source *file;
    unsigned line, col;
};

enum { DIAG_MOST = 20 };                                /* errors printed before the rest is left out */

/* Reports an error of the input at a place, with the line and a caret, and goes on:
 *     topo.yaml:3:11: error: unknown key 'bw_gb' in system.pcie
 *       pcie: { bw_gb: 64 }
 *               ^
 *     topo.yaml:3:11: did you mean 'bw_gbs'?
 */
void error_at(struct where at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A note after error_at; quotes the line unless its place is the one shown last. */
void note_at(struct where at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How many errors were reported so far; those beyond DIAG_MOST are counted, not printed. */
unsigned error_count(void);

/* What was said since the last call, notes included, on one line; NULL: nothing. Those errors no longer count: for
 * whoever answers for them, and goes on to read what is no part of the same input. */
const char *errors_forget(void);

/* Prints how many errors were left out, if any; exits with 2 if there was an error at all. */
void errors_end(void);

/* The nearest of `names` to `name` (few edits, or it begins so), or NULL. */
const char *nearest_name(const char *name, const char *const *names, size_t count);

#endif
