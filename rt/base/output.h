/* output.h: output files that appear complete or not at all. */
#ifndef KB_OUTPUT_H
#define KB_OUTPUT_H

#include <stdio.h>

struct output {
    const char *path;
    char *temporary;
    FILE *file;
};

/* Opens a file under a temporary name, which output_close changes to `path`; "-" is standard output. A path that cannot
 * be written is a usage error. */
struct output output_open(const char *path);

/* Opens a file of lines, each of which is complete by itself: it appears at once and grows. */
struct output output_open_lines(const char *path);

/* Completes the file. Dies if a write has failed. */
void output_close(struct output *output);

/* Completes several: between these two calls output_close says which file failed and returns, so that those behind it are
 * completed; the second call ends with status 3 if one has failed. */
void outputs_begin_closing(void);
void outputs_end_closing(void);

#endif
