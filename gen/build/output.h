/* output.h: what kbgen writes: complete, or not at all. */
#ifndef GEN_OUTPUT_H
#define GEN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "../emit.h"

/* From now on, kbgen's end by a signal ends its jobs, too, and either end removes what is temporary. */
void out_watch_end(void);

/* Makes the folders above a path; false, with errno: one cannot be made. */
bool make_parents(const char *path);

/* A new folder beside `path`, so that what is made in it can be renamed to `path`; the folders above are made, too. It
 * goes when kbgen ends, by itself or by a signal, with the files that `temporary` named. */
const char *temporary_folder(const char *path);
const char *temporary(const char *folder, const char *name);

/* Usage errors: where a file is to appear is a folder, or one of kbgen's inputs; where a folder, something else. */
void out_check_file(const char *path, const char *input);
void out_check_folder(const char *path);

/* Writes a new file, all of it; or a program. */
void write_file(const char *path, const char *text, size_t length);
void write_program(const char *path, const char *bytes, size_t length);

/* Writes generated files into a folder. A new folder appears with all of them; in one that is there, each file is
 * replaced at once, and left alone if it is equal. */
void write_emission(const char *path, const struct emission *emission);

/* Moves a finished file to its place, which it takes at once. */
void move_into_place(const char *from, const char *to);

#endif
