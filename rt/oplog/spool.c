/* spool.c: bytes that are appended and read again later.
 *
 * The bytes in memory are always the last ones. When the memory is full all of it goes to the file; from then on it is a
 * write buffer and need not be large. The spool's own file is unnamed, in $TMPDIR or /tmp. */
#define _GNU_SOURCE                                     /* O_TMPFILE */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/diag.h"

enum { BUFFER_BYTES = 1 << 20, FIRST_BYTES = 1 << 16 };

static int open_unnamed(const struct spool *spool)
{
    const char *folder = getenv("TMPDIR");
    char path[4096] = "/tmp";
    if (folder && *folder && strlen(folder) < sizeof path - 16)
        strcpy(path, folder);
    folder = strdup(path);                              /* for the message */
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {                                       /* not every file system has O_TMPFILE */
        strcat(path, "/kbXXXXXX");
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    if (fd < 0)
        die("cannot make a temporary file for %s in %s (TMPDIR names another place):", spool->what, folder);
    free((void *)folder);
    return fd;
}

static void write_all(const struct spool *spool, const uint8_t *bytes, uint64_t count, uint64_t place)
{
    while (count > 0) {
        ssize_t wrote = pwrite(spool->fd, bytes, count, (off_t)place);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            die("cannot write %s to its file:", spool->what);
        bytes += wrote, place += (uint64_t)wrote, count -= (uint64_t)wrote;
    }
}

/* How many bytes are in the file. */
static uint64_t filed(const struct spool *spool)
{
    return spool->bytes - spool->held.count;
}

void spool_flush(struct spool *spool)
{
    if (!spool->has_file)
        return;
    write_all(spool, spool->held.at, spool->held.count, filed(spool));
    spool->held.count = 0;
}

void spool_use(struct spool *spool, int fd)
{
    spool->fd = fd;
    spool->has_file = spool->given = true;
}

static uint64_t most_in_memory(const struct spool *spool)
{
    return spool->has_file && spool->limit > BUFFER_BYTES ? BUFFER_BYTES : spool->limit;
}

/* Makes space in memory for `count` bytes more; writes to the file what is over the limit. */
static void reserve(struct spool *spool, uint64_t count)
{
    if (spool->held.count + count <= spool->held.room)
        return;
    if (spool->held.count + count > most_in_memory(spool)) {
        if (!spool->has_file)
            spool->fd = open_unnamed(spool);
        spool->has_file = true;
        spool_flush(spool);
        if (spool->held.room > BUFFER_BYTES)
            array_free(&spool->held);
    }
    if (!spool->held.room)
        array_reserve(&spool->held, FIRST_BYTES);
    array_reserve(&spool->held, spool->held.count + count);
}

uint64_t spool_append(struct spool *spool, const void *bytes, size_t count)
{
    reserve(spool, count);
    if (count > 0)
        memcpy(spool->held.at + spool->held.count, bytes, count);
    spool->held.count += count;
    spool->bytes += count;
    return spool->bytes - count;
}

void spool_read(const struct spool *spool, uint64_t place, void *bytes, size_t count)
{
    uint8_t *to = bytes;
    while (count > 0 && place < filed(spool)) {
        uint64_t left = filed(spool) - place;
        ssize_t got = pread(spool->fd, to, count < left ? count : left, (off_t)place);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            die("cannot read %s back from its file:", spool->what);
        to += got, place += (uint64_t)got, count -= (size_t)got;
    }
    if (count > 0)
        memcpy(to, spool->held.at + (place - filed(spool)), count);
}

void spool_clear(struct spool *spool)
{
    if (spool->has_file && !spool->given)
        close(spool->fd);
    array_free(&spool->held);
    *spool = (struct spool){.limit = spool->limit, .what = spool->what};
}
