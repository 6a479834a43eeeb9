/* array.h: growing arrays, of one type each. Room doubles, so adding takes constant time on average.
 *
 *     static struct ARRAY(struct race) races;          all 0: empty
 *     *array_add(&races) = (struct race){...};
 *     for (size_t i = 0; i < races.count; i++)
 *         use(&races.at[i]);
 *     races.count = 0;                                 empties it and keeps its memory
 *     array_free(&races);
 *
 * A struct of a name is declared so: `struct races ARRAY(struct race);`. Addresses of elements hold until the array
 * grows. For arrays that live as long as the arena there is arena_grow. */
#ifndef KB_ARRAY_H
#define KB_ARRAY_H

#include <stddef.h>

#define ARRAY(type) { type *at; size_t count, room; }

/* The address of a new last element, not initialised. Its value must not depend on the array: write it to a variable
 * first if it does. */
#define array_add(array) (array_reserve(array, (array)->count + 1), &(array)->at[(array)->count++])

/* Makes room for `n` elements in all. */
#define array_reserve(array, n)                                                                                        \
    ((n) <= (array)->room                                                                                              \
         ? (void)0                                                                                                     \
         : (void)((array)->at = array_grown((array)->at, &(array)->room, (n), sizeof *(array)->at)))

/* Frees its memory: it is empty. */
#define array_free(array) ((array)->at = array_freed((array)->at), (void)((array)->count = (array)->room = 0))

/* `at` with room for at least `n` elements of a size; *room becomes how many. Dies if there is no memory. */
void *array_grown(void *at, size_t *room, size_t n, size_t size);
void *array_freed(void *at);

/* n elements of a size that are all 0, which array_freed frees. Dies if there is no memory. */
void *array_zeros(size_t n, size_t size);

#endif
