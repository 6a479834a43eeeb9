/* arena.h: memory that is freed all at once, and strings in it. There is one arena, for one thread. */
#ifndef KB_ARENA_H
#define KB_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Memory for `count` things of a size, zeroed. Dies if there is none. */
void *arena_alloc(size_t count, size_t size);

/* Makes room for one more element of an array of `count`: `items = arena_grow(items, count, sizeof(*items))`. The array
 * must have grown from NULL by such calls, one element at a time. */
void *arena_grow(void *items, size_t count, size_t size);

/* A point in the use of the arena; arena_release frees what was allocated after it. */
struct arena_mark {
    struct arena_block *newest;
    size_t used;
};
struct arena_mark arena_mark(void);
void arena_release(struct arena_mark mark);

/* What is allocated between these two calls stays: no arena_release frees it. */
void arena_keep_begin(void);
void arena_keep_end(void);

/* The first `length` bytes of text, 0-terminated. */
char *arena_text(const char *text, size_t length);

/* printf into the arena. */
char *arena_printf(const char *format, ...) __attribute__((format(printf, 1, 2), nonnull));

/* Whether a text is [A-Za-z_][A-Za-z0-9_]*, in any locale, and not too long for the name of a file: only such texts
 * reach generated code. */
enum { IDENTIFIER_MOST = 128 };
#define IDENTIFIER_FORM "a name of up to 128 letters, digits and _ that does not begin with a digit"
bool is_identifier(const char *text);

/* Reads a whole file, 0-terminated. Returns NULL with errno set if it cannot be read, or is over 256 MiB. */
char *read_file(const char *path, size_t *length);

/* The same for standard input. */
char *read_standard_input(size_t *length);

/* The same for a path where another program may have put anything: fails with EINVAL, and never waits, unless it leads to
 * a regular file. */
char *read_regular_file(const char *path, size_t *length);

#endif
