/* arena.h: memory and strings for reading text. Memory comes zeroed from one arena; only arena_release frees of it. */
#ifndef TEXT_BASE_H
#define TEXT_BASE_H

#include <stdbool.h>
#include <stddef.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Room for count things of a size, zeroed; never NULL, dies when memory is out. */
void *arena_alloc(size_t count, size_t size);

/* Room for one more at the end of an array of `count`: `items = arena_grow(items, count, sizeof(*items))`. The array
 * must have been made so from NULL, one at a time. */
void *arena_grow(void *items, size_t count, size_t size);

/* A place in the arena, for going back to it: what was given out since then is given back. */
struct arena_mark {
    struct block *newest;
    size_t used;
};
struct arena_mark arena_mark(void);
void arena_release(struct arena_mark mark);

/* The first `length` bytes of text, 0-terminated. */
char *arena_text(const char *text, size_t length);

/* printf into the arena. */
char *arena_printf(const char *format, ...) __attribute__((format(printf, 1, 2), nonnull));

/* [A-Za-z_][A-Za-z0-9_]*, whatever the locale: the only texts that reach generated code. */
bool is_identifier(const char *text);

/* The whole content of a file, 0-terminated; NULL with errno set when it cannot be had, or is over 256 MiB. */
char *read_file(const char *path, size_t *length);

#endif
