/* spool.h: bytes that are appended and read again later: in memory up to a limit, beyond it in a file if there may
 * be one. */
#ifndef KB_SPOOL_H
#define KB_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/array.h"

/* All 0 at first, except `limit` and `what`. */
struct spool {
    uint64_t limit;                                     /* most bytes in memory */
    const char *what;                                   /* "the op log", for messages */
    uint64_t bytes;                                     /* appended so far */
    struct ARRAY(uint8_t) held;                         /* the last of them; those before are in the file */
    int fd;
    bool has_file, given;                               /* given: by spool_use */
};

/* Has a file that is open for reading and writing take all bytes from the start on. The spool does not close it. */
void spool_use(struct spool *spool, int fd);

/* Appends bytes and returns their position. An error of the file ends the program, status 3. */
uint64_t spool_append(struct spool *spool, const void *bytes, size_t count);

/* Reads bytes that were appended. */
void spool_read(const struct spool *spool, uint64_t place, void *bytes, size_t count);

/* Writes all bytes to the file, if there is one. */
void spool_flush(struct spool *spool);

/* Discards all bytes. A temporary file is removed; one from spool_use stays as it is, and is no longer used. */
void spool_clear(struct spool *spool);

#endif
