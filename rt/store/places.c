/* places.c: arrays of numbers in memory and in a file.
 *
 * The file has slots of one size, so that those of arrays that are gone are used again. */
#include "places.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/unnamed.h"
#include "common/array.h"
#include "common/fail.h"

enum { SLOT_BYTES = PLACES_MOST * sizeof(uint32_t) };

uint64_t places_memory_bytes = 8 << 20;

static uint64_t held;                                   /* bytes of arrays in memory */

/* Processes that are forked while it is open share the file, as those of --inject do: they run one after the other, and neither
 * they nor their parent read what arrays held before. */
static struct {
    bool is_open;
    int fd;
    uint32_t slots;
    struct ARRAY(uint32_t) unused;                      /* of the slots */
} file;

static uint64_t bytes_of(const struct places *places)
{
    return places->count * sizeof *places->at;
}

static uint64_t slot_place(uint32_t slot)
{
    return (uint64_t)slot * SLOT_BYTES;
}

struct places places_new(uint64_t count)
{
    assert(count <= PLACES_MOST);
    struct places places = {.at = malloc(count * sizeof *places.at), .count = (uint32_t)count};
    if (!places.at)
        die("no memory for where %" PRIu64 " parts of a memory are from:", count);
    held += bytes_of(&places);
    return places;
}

static void memory_free(struct places *places)
{
    held -= bytes_of(places);
    free(places->at);
    places->at = NULL;
}

/* Whether there is a file now. */
static bool file_open(void)
{
    if (!file.is_open) {
        file.fd = unnamed_open();
        file.is_open = file.fd >= 0;
    }
    return file.is_open;
}

void places_keep(struct places *places)
{
    if (held <= places_memory_bytes || places->count < PLACES_LONG || !file_open())
        return;
    uint32_t slot = file.unused.count ? file.unused.at[file.unused.count - 1] : file.slots;
    if (!file_write(file.fd, places->at, bytes_of(places), slot_place(slot)))
        return;
    if (slot == file.slots)
        file.slots++;
    else
        file.unused.count--;
    places->slot = slot;
    memory_free(places);
}

void places_drop(struct places *places)
{
    if (places->at)
        memory_free(places);
    else
        *array_add(&file.unused) = places->slot;
}

const uint32_t *places_read(const struct places *places, uint64_t first, uint64_t count, uint32_t *to)
{
    if (places->at)
        return places->at + first;
    if (!file_read(file.fd, to, count * sizeof *to, slot_place(places->slot) + first * sizeof *to))
        die("cannot read from a temporary file where parts of a memory come from:");
    return to;
}

void places_reset(void)
{
    held = 0;                                           /* a failure may have left some */
    if (file.is_open)
        close(file.fd);
    array_free(&file.unused);
    file.is_open = false;
    file.slots = 0;
}
