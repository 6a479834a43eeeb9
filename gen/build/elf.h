/* elf.h: a simulator as an ELF file: its build ID and its numbers. */
#ifndef GEN_ELF_H
#define GEN_ELF_H

#include <stdbool.h>
#include <stddef.h>

#include "../numbers.h"

/* The bytes of a file. The functions check every offset that they read from it. */
struct elf {
    char *bytes;
    size_t length;
};

/* Returns whether the file at a path is a complete program with this key, an ELF build ID in hexadecimal. */
bool elf_has_key(const char *path, const char *key);

/* Writes the key and the numbers into a simulator of the same structure. Returns false if it has no place for them. */
bool elf_patch(struct elf program, const char *key, const struct numbers *numbers);

#endif
