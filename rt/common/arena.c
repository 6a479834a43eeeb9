/* arena.c: the arena, strings in it, and files that are read into it.
 *
 * A compiler that ends within a second need not free anything. A simulator that runs several times releases the arena to
 * where it was before each run. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "array.h"
#include "fail.h"

enum { BLOCK_BYTES = 1 << 18, ALIGNMENT = 16, FILE_MOST_BYTES = 1 << 28 };

static struct arena_block {
    struct arena_block *older;
    size_t used, size;
    size_t dirty;                                       /* from here on all bytes are 0 */
    _Alignas(ALIGNMENT) char bytes[];
} *newest, *newest_kept;                                /* of what can be released, and of what stays; or the reverse */

/* A large block comes from the system, which has cleared it without touching it. */
static struct arena_block *block_new(size_t bytes)
{
    bool large = bytes > BLOCK_BYTES;
    size_t size = large ? bytes : BLOCK_BYTES;
    struct arena_block *block = large ? calloc(1, sizeof *block + size) : malloc(sizeof *block + size);
    if (!block)
        die("out of memory for %zu bytes:", size);
    block->used = 0;
    block->size = size;
    block->dirty = large ? 0 : size;
    block->older = newest;
    newest = block;
    return block;
}

void *arena_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        die("out of memory for %zu things of %zu bytes", count, size);
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct arena_block *block = newest;
    if (!block || block->size - block->used < bytes)
        block = block_new(bytes);
    void *memory = block->bytes + block->used;
    if (block->dirty > block->used)
        memset(memory, 0, block->dirty - block->used < bytes ? block->dirty - block->used : bytes);
    block->used += bytes;
    return memory;
}

struct arena_mark arena_mark(void)
{
    return (struct arena_mark){newest, newest ? newest->used : 0};
}

void arena_release(struct arena_mark mark)
{
    while (newest != mark.newest) {
        struct arena_block *older = newest->older;
        free(newest);
        newest = older;
    }
    if (!newest)
        return;
    if (newest->dirty < newest->used)
        newest->dirty = newest->used;
    newest->used = mark.used;
}

static void exchange_arenas(void)
{
    struct arena_block *other = newest_kept;
    newest_kept = newest;
    newest = other;
}

void arena_keep_begin(void)
{
    exchange_arenas();
}

void arena_keep_end(void)
{
    exchange_arenas();
}

void *arena_grow(void *items, size_t count, size_t size)
{
    if (count & (count - 1))                            /* the capacity is a power of two */
        return items;
    void *larger = arena_alloc(count ? 2 * count : 1, size);
    if (count)
        memcpy(larger, items, count * size);
    return larger;
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
    size_t length = strspn(text, more);
    return *text && strchr(letters, *text) && !text[length] && length <= IDENTIFIER_MOST;
}

/* Reads to the end: the size that the system gives for a pipe or a file of /proc is 0. */
static char *read_all(int fd, size_t *length)
{
    struct ARRAY(char) text = {0};
    ssize_t got;
    do {
        array_reserve(&text, text.count + (1 << 16));
        got = read(fd, text.at + text.count, text.room - text.count);
        text.count += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && text.count <= FILE_MOST_BYTES) || (got < 0 && errno == EINTR));
    if (got > 0)
        errno = EFBIG;
    *length = text.count;
    char *kept = got == 0 ? arena_text(text.at, text.count) : NULL;
    int error = errno;
    array_free(&text);
    errno = error;
    return kept;
}

/* Reads a regular file to where it stays. Returns NULL if the file is none, or has grown. */
static char *read_regular(int fd, size_t *length)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > FILE_MOST_BYTES)
        return NULL;
    size_t size = (size_t)status.st_size, count = 0;
    char *text = arena_alloc(size + 1, 1);
    ssize_t got;
    do {
        got = pread(fd, text + count, size + 1 - count, (off_t)count);
        count += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && count <= size) || (got < 0 && errno == EINTR));
    *length = count;
    return got == 0 ? text : NULL;
}

static char *read_opened(int fd, size_t *length)
{
    char *text = read_regular(fd, length);
    if (!text)
        text = read_all(fd, length);
    int error = errno;
    close(fd);
    errno = error;
    return text;
}

char *read_file(const char *path, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? NULL : read_opened(fd, length);
}

char *read_standard_input(size_t *length)
{
    return read_all(STDIN_FILENO, length);
}

char *read_regular_file(const char *path, size_t *length)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return read_opened(fd, length);
    close(fd);
    errno = EINVAL;
    return NULL;
}
