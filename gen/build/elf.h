/* elf.h: a simulator as an ELF file: the key that it carries, and its numbers. */
#ifndef GEN_ELF_H
#define GEN_ELF_H

#include <stdbool.h>
#include <stddef.h>

#include "../numbers.h"

/* The bytes of a file; nothing that they say is trusted. */
struct elf {
    char *bytes;
    size_t length;
};

/* Whether there is a whole program at a path that carries a key: its ELF build ID, in hexadecimal. */
bool elf_has_key(const char *path, const char *key);

/* Writes a key and numbers into a simulator of the same structure; false: they have no place in it. */
bool elf_patch(struct elf program, const char *key, const struct numbers *numbers);

#endif
