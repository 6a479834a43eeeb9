/* output.h: kbgen's output files: each appears complete or not at all. */
#ifndef GEN_OUTPUT_H
#define GEN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "../emit.h"

/* Makes the folders above a path. Returns false, with errno set, if one cannot be made. */
bool make_parents(const char *path);

/* Makes a new folder beside `path`, so that its files can be renamed to `path`, and the folders above it; `private`: only
 * this user can look into it. It is removed when kbgen ends, with the files that `temporary` named. Also removes such
 * folders that killed kbgens left. */
const char *temporary_folder(const char *path, bool private);
const char *temporary(const char *folder, const char *name);

/* Usage errors: the output file is a folder or one of kbgen's inputs; the output folder is something else. */
void out_check_file(const char *path, const char *input);
void out_check_folder(const char *path);

/* Writes a new file; a new executable file. Dies if that fails. */
void write_file(const char *path, const char *text, size_t length);
void write_program(const char *path, const char *bytes, size_t length);

/* Writes generated files into a folder. A new folder appears with all of them; in an existing one each file that
 * differs is replaced in one step, and equal ones are left alone. */
void write_emission(const char *path, const struct emission *emission);

/* Renames a finished file to its final place. */
void move_into_place(const char *from, const char *to);

#endif
