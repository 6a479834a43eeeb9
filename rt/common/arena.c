/* arena.c: the arena, and what strings need.
 *
 * Blocks are chained, and freed together or not at all: a compiler that ends in a second has no use for freeing, and
 * what is never freed never dangles. A simulator that runs several times goes back to where it was. Not for many
 * threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "diag.h"

enum { BLOCK_BYTES = 1 << 18, ALIGNMENT = 16, FILE_MOST_BYTES = 1 << 28 };

static struct block {
    struct block *next;                                 /* keeps all of them reachable */
    size_t used, size;
    _Alignas(ALIGNMENT) char bytes[];
} *newest;

static struct block *block_new(size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct block *block = calloc(1, sizeof(*block) + size);
    if (!block)
        die("out of memory for %zu bytes:", size);
    block->size = size;
    block->next = newest;
    newest = block;
    return block;
}

void *arena_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        die("out of memory for %zu things of %zu bytes", count, size);
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct block *block = newest;
    if (!block || block->size - block->used < bytes)
        block = block_new(bytes);
    void *room = block->bytes + block->used;
    block->used += bytes;
    return room;
}

struct arena_mark arena_mark(void)
{
    return (struct arena_mark){newest, newest ? newest->used : 0};
}

void arena_release(struct arena_mark mark)
{
    while (newest != mark.newest) {
        struct block *next = newest->next;
        free(newest);
        newest = next;
    }
    if (!newest)
        return;
    memset(newest->bytes + mark.used, 0, newest->used - mark.used);
    newest->used = mark.used;
}

void *arena_grow(void *items, size_t count, size_t size)
{
    if (count & (count - 1))                            /* room is always a power of two */
        return items;
    void *room = arena_alloc(count ? 2 * count : 1, size);
    if (count)
        memcpy(room, items, count * size);
    return room;
}

char *arena_text(const char *text, size_t length)
{
    char *copy = arena_alloc(length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_printf(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        die("cannot format a text:");
    char *text = arena_alloc((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

bool is_identifier(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *text && strchr(letters, *text) && !text[strspn(text, more)];
}

/* Reads to the end, whatever the file's size is said to be: a pipe has none. */
static char *read_all(int fd, size_t *length)
{
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    for (;;) {
        ssize_t got = text ? read(fd, text + used, room - used - 1) : -1;
        if (got < 0 && text && errno == EINTR)
            continue;
        if (got == 0)
            break;
        used += got > 0 ? (size_t)got : 0;
        if (got < 0 || used > FILE_MOST_BYTES) {
            free(text);
            errno = got < 0 ? errno : EFBIG;
            return NULL;
        }
        if (room - used < 2) {
            char *more = realloc(text, room *= 2);
            if (!more)
                free(text);
            text = more;
        }
    }
    char *kept = arena_text(text, used);
    free(text);
    *length = used;
    return kept;
}

char *read_file(const char *path, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = read_all(fd, length);
    int error = errno;
    close(fd);
    errno = error;
    return text;
}
