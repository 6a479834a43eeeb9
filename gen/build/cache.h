/* cache.h: the cache from one call of kbgen to the next, by name: linked simulators, objects, and what compilers said.
 */
#ifndef GEN_CACHE_H
#define GEN_CACHE_H

#include <stddef.h>

/* Opens the cache before several processes use it, so that a refusal is said once. */
void cache_prepare(void);

/* Returns the content of an entry of the cache, or of those that were made together with kbgen, 0-terminated; NULL if
 * no such entry exists or it is damaged. */
char *cache_find(const char *name, size_t *length);

/* Writes an entry. Does nothing if it cannot be written. */
void cache_keep(const char *name, const char *bytes, size_t length);

/* Removes the least recently used entries until the cache is within its limit. */
void cache_trim(void);

/* Takes the lock of a name, so that only one kbgen at a time builds the entry; cache_leave or the end of kbgen releases
 * it. Whoever had to wait should look again whether the entry is there. */
void cache_enter(const char *name);
void cache_leave(void);

#endif
