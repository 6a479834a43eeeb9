/* key.h: what a simulator was made of, as a number that it carries. */
#ifndef GEN_KEY_H
#define GEN_KEY_H

#include <stdbool.h>

/* Whether there is a whole program at a path that carries a key: its ELF build ID, in hexadecimal. */
bool key_is(const char *path, const char *key);

#endif
