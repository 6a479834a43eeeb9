/* path_error.h: what to say of a file that cannot be opened. */
#ifndef KB_PATH_ERROR_H
#define KB_PATH_ERROR_H

/* After a failed open: what errno says, and what to do about it: "No such file or directory; did you mean 'a/b.yaml'?". */
const char *path_error(const char *path);

#endif
