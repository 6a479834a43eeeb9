/* path_error.h: what can be wrong with paths. */
#ifndef KB_PATH_ERROR_H
#define KB_PATH_ERROR_H

#include <stdbool.h>

/* After a failed open: what errno says, and what to do about it: "No such file or directory; did you mean 'a/b.yaml'?". */
const char *path_error(const char *path);

/* Whether two paths name the same regular file. */
bool is_same_file(const char *a, const char *b);

#endif
