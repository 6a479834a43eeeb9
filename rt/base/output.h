/* output.h: files that appear whole or not at all. */
#ifndef KB_OUTPUT_H
#define KB_OUTPUT_H

#include <stdio.h>

struct output {
    const char *path;
    char *temporary;
    FILE *file;
};

/* Opens a file that will get its name at output_close; "-" is standard output. A path that cannot be written is an
 * error of the user's, status 2. */
struct output output_open(const char *path);

/* Completes it; a write that failed is an error of the host system, status 3. */
void output_close(struct output *output);

#endif
