/* diag.h: errors in the user's input: each with its place, its line, a caret and the nearest known name. */
#ifndef KB_DIAG_H
#define KB_DIAG_H

#include <stdbool.h>
#include <stddef.h>

#include "fail.h"

/* A text, kept for the lines that messages quote. */
struct source {
    const char *path;                                   /* as the user gave it; "--set" for overrides */
    const char *text;
    size_t length;
    unsigned lines_before;                              /* lines of the file before the text */
};

/* A place in a source; line and column count from 1. file NULL: none, for a default. */
struct where {
    const struct source *file;
    unsigned line, col;
};

enum { DIAG_MOST = 20 };                                /* errors that are printed; the others are counted */

/* Reports an error at a place, with the line and a caret, and returns:
 *     topo.yaml:3:11: error: unknown key 'bw_gb' in system.pcie
 *       pcie: { bw_gb: 64 }
 *               ^
 *     topo.yaml:3:11: did you mean 'bw_gbs'?
 */
void error_at(struct where at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a note to an error; quotes the line unless its place is the last one shown. */
void note_at(struct where at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text as it may be printed, in the arena: '?' in place of control characters and of bytes that are not UTF-8, and a
 * space for a tab. */
const char *printable(const char *text);

/* The same in place, except that line breaks stay if `lines` says so. */
void make_printable(char *text, bool lines);

/* The number of errors since the start or the last errors_forget, those that were not printed included. */
unsigned error_count(void);

/* Returns the errors and notes since the last call, on one line, or NULL if there were none. They no longer count: for a
 * reader of several inputs that has answered for this one. */
const char *errors_forget(void);

/* Prints how many errors were not printed, if any; ends with status 2 if there was an error. */
void errors_end(void);

/* The nearest of `names` to `name` (by few edits, or because it begins with it), or NULL. */
const char *nearest_name(const char *name, const char *const *names, size_t count);

#endif
