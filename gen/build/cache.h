/* cache.h: what kbgen keeps from one call to the next, by name: linked simulators, objects, and what compilers said. */
#ifndef GEN_CACHE_H
#define GEN_CACHE_H

#include <stddef.h>

/* What was kept under a name, whole as it was kept and 0-terminated, or NULL. */
char *cache_find(const char *name, size_t *length);

/* Keeps bytes under a name. Where that cannot be done, nothing happens. */
void cache_keep(const char *name, const char *bytes, size_t length);

/* Lets what was used longest ago go, as far as there is too much. */
void cache_trim(void);

/* Waits until nobody else makes what is to be kept under a name, and keeps others waiting until cache_leave, or until
 * kbgen ends. Whoever had to wait looks again whether it is there. */
void cache_enter(const char *name);
void cache_leave(void);

#endif
