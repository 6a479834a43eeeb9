/* waiting.c: blocks of copies and results that wait.
 *
 * Blocks are of one size and filled in order, so the file is blocks as well: the older ones. Blocks in memory stay where they
 * are: an array that grew would be copied, to memory that was never touched. */
#include "waiting.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unnamed.h"
#include "common/array.h"
#include "common/fail.h"

/* Many wait in memory for the first time, and fewer once some of them were taken. */
enum { BLOCK_BYTES = 1 << 15, FIRST_MOST = 120, LATER_MOST = 15 };

uint64_t waiting_file_bytes = UINT64_C(4) << 30;

struct block {
    uint64_t used;                                      /* bytes of those below */
    uint8_t bytes[BLOCK_BYTES - sizeof(uint64_t)];
};

static struct block *blocks[FIRST_MOST];                /* those of [first, count) wait; the one before may still be looked at */
static size_t most = FIRST_MOST, first, count;

/* The older ones: those of [first, count) wait. Processes that are forked while the file is open share it, as those of --inject do:
 * they run one after the other, and neither they nor their parent read what waited before. */
static struct {
    int fd;
    bool is_open, is_read;                              /* is_read: `oldest` is the first one */
    uint64_t first, count;
    struct block oldest;
} file;

static uint64_t taken;                                  /* bytes of the oldest block of all */

/* ---- adding */

static struct block *add_block(void)
{
    if (count == most)
        return NULL;
    struct block *block = blocks[count] = malloc(sizeof *block);
    if (!block)
        die("no memory for what memories wait for:");
    block->used = 0;
    count++;
    return block;
}

static struct waiting *add(uint64_t bytes)
{
    struct block *block = count > first ? blocks[count - 1] : NULL;
    if ((!block || block->used + bytes > sizeof block->bytes) && !(block = add_block()))
        return NULL;
    block->used += bytes;
    return (struct waiting *)(block->bytes + block->used - bytes);
}

enum { OF_STRIDED = 2, OF_AXIS = 3 };                   /* numbers: dtype and rank; of each axis */

static uint64_t bytes_of(const struct waiting *one)
{
    return sizeof *one + (one->bytes ? 0 : (OF_STRIDED + OF_AXIS * one->strided[1]) * sizeof one->strided[0]);
}

struct waiting *waiting_new(const struct view *to, const struct view *from)
{
    struct waiting *one = add(sizeof *one + (to ? OF_STRIDED + OF_AXIS * to->rank : 0) * sizeof one->strided[0]);
    if (!one || !to)
        return one;
    one->strided[0] = to->dtype;
    one->strided[1] = to->rank;
    for (uint32_t i = 0; i < to->rank; i++) {
        uint64_t *axis = one->strided + OF_STRIDED + i * OF_AXIS;
        axis[0] = to->shape[i];
        axis[1] = to->stride[i];
        axis[2] = from->stride[i];
    }
    return one;
}

void waiting_views(const struct waiting *one, struct view *to, struct view *from)
{
    *to = *from = (struct view){.dtype = (enum dtype)one->strided[0], .rank = (uint32_t)one->strided[1], .shape = {1, 1, 1, 1}};
    for (uint32_t i = 0; i < to->rank; i++) {
        const uint64_t *axis = one->strided + OF_STRIDED + i * OF_AXIS;
        to->shape[i] = from->shape[i] = axis[0];
        to->stride[i] = axis[1];
        from->stride[i] = axis[2];
    }
}

/* ---- the file */

/* Frees the block that was taken last, if it is in memory. */
static void free_taken(void)
{
    if (first > 0)
        blocks[first - 1] = array_freed(blocks[first - 1]);
}

/* None waits in memory. */
static void begin_again(void)
{
    free_taken();
    first = count = 0;
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

bool waiting_in_file(void)
{
    return file.first < file.count;
}

bool waiting_to_file(void)
{
    for (; first < count; first++, file.count++) {
        uint64_t place = file.count * sizeof *blocks[first];
        memset(blocks[first]->bytes + blocks[first]->used, 0, sizeof blocks[first]->bytes - blocks[first]->used);
        if (place + sizeof *blocks[first] > waiting_file_bytes || !file_open()
            || !file_write(file.fd, blocks[first], sizeof *blocks[first], place))
            return false;
        free_taken();
    }
    begin_again();
    most = LATER_MOST;
    return true;
}

/* ---- taking */

void waiting_clear(void)
{
    for (; first < count; first++)
        free_taken();
    begin_again();
    if (file.is_open)
        close(file.fd);
    file.is_open = file.is_read = false;
    file.first = file.count = 0;
    taken = 0;
}

/* The block that has waited longest, or NULL. */
static const struct block *oldest(void)
{
    if (!waiting_in_file())
        return first < count ? blocks[first] : NULL;
    if (!file.is_read && !file_read(file.fd, &file.oldest, sizeof file.oldest, file.first * sizeof file.oldest))
        die("cannot read what memories wait for from a temporary file:");
    file.is_read = true;
    return &file.oldest;
}

const struct waiting *waiting_take(void)
{
    const struct block *block = oldest();
    if (taken == 0)
        free_taken();
    if (!block) {
        if (count + file.count > 0) {
            waiting_clear();
            most = LATER_MOST;
        }
        return NULL;
    }
    const struct waiting *one = (const struct waiting *)(block->bytes + taken);
    taken += bytes_of(one);
    if (taken < block->used)
        return one;
    taken = 0;
    if (waiting_in_file()) {
        file.is_read = false;
        file.first++;
    } else {
        first++;
    }
    return one;
}

void waiting_reset(void)
{
    waiting_clear();
    most = FIRST_MOST;
}
