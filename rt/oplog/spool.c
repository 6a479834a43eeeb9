/* spool.c: bytes that are appended and read again later.
 *
 * The bytes in memory are always the last ones. When the memory is full all of it goes to the file; from then on it is a
 * write buffer and need not be large. The spool's own file is unnamed. */
#include "spool.h"

#include <string.h>
#include <unistd.h>

#include "base/unnamed.h"
#include "common/fail.h"
#include "kb/arith.h"

enum { BUFFER_BYTES = 1 << 20, FIRST_BYTES = 1 << 16 };

/* How many bytes are in the file. */
static uint64_t filed(const struct spool *spool)
{
    return spool->bytes - spool->held.count;
}

void spool_flush(struct spool *spool)
{
    if (!spool->has_file)
        return;
    if (!file_write(spool->fd, spool->held.at, spool->held.count, filed(spool)))
        die("cannot write %s to its file:", spool->what);
    spool->held.count = 0;
}

void spool_use(struct spool *spool, int fd)
{
    spool->fd = fd;
    spool->has_file = spool->given = true;
}

static uint64_t most_in_memory(const struct spool *spool)
{
    if (!unnamed_allowed)
        return UINT64_MAX;
    return spool->has_file && spool->limit > BUFFER_BYTES ? BUFFER_BYTES : spool->limit;
}

/* Makes space in memory for `count` bytes more; writes to the file what is over the limit. */
static void reserve(struct spool *spool, uint64_t count)
{
    if (spool->held.count + count <= spool->held.room)
        return;
    if (spool->held.count + count > most_in_memory(spool)) {
        if (!spool->has_file && (spool->fd = unnamed_open()) < 0)
            die("cannot make a temporary file for %s in %s (TMPDIR names another place):", spool->what, unnamed_folder());
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
    uint64_t of_file = place < filed(spool) ? kb_min(count, filed(spool) - place) : 0;
    if (!file_read(spool->fd, bytes, of_file, place))
        die("cannot read %s back from its file:", spool->what);
    if (count > of_file)
        memcpy((uint8_t *)bytes + of_file, spool->held.at + (place + of_file - filed(spool)), count - of_file);
}

void spool_clear(struct spool *spool)
{
    if (spool->has_file && !spool->given)
        close(spool->fd);
    array_free(&spool->held);
    *spool = (struct spool){.limit = spool->limit, .what = spool->what};
}
