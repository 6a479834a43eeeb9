/* unnamed.h: files without a name, in $TMPDIR or /tmp: they are gone once nobody has them open. */
#ifndef KB_UNNAMED_H
#define KB_UNNAMED_H

#include <stdbool.h>
#include <stdint.h>

/* Whether there may be any: an embedded instance has none, for its state is its memory. */
extern bool unnamed_allowed;

/* Where they are made. */
const char *unnamed_folder(void);

/* The descriptor of a new one, for reading and writing. -1: there cannot be one, errno says why; EPERM if there may be none. */
int unnamed_open(void);

/* Writes or reads all of some bytes, from a place in any file on. false: errno says why; EIO if the file ends before. */
bool file_write(int fd, const void *bytes, uint64_t count, uint64_t place);
bool file_read(int fd, void *bytes, uint64_t count, uint64_t place);

#endif
