/* file_out.h: an output of a subcommand: a file that appears complete or not at all, or standard output. */
#ifndef GEN_SEARCH_FILE_OUT_H
#define GEN_SEARCH_FILE_OUT_H

#include <stdio.h>

struct file_out {
    FILE *file;
    const char *path, *temporary;                       /* NULL: standard output */
};

/* Opens it; path NULL or "-": standard output. A path that is a folder or the file `input` is a usage error. */
struct file_out file_out_open(const char *path, const char *input);

/* Dies if a write has failed; else the file is complete. */
void file_out_close(struct file_out *out);

#endif
