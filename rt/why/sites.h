/* sites.h: calls in sources, by number. */
#ifndef KB_SITES_H
#define KB_SITES_H

#include <stdint.h>

#include "common/hash.h"

struct site {
    const char *file;                                   /* NULL: the command stream */
    uint32_t line;
};

enum { SITES_KNOWN_BITS = 8 };

/* Numbers that were asked for, at the hash of the text's address and the line: the latest of each hash. */
extern struct site_known {
    const char *file;
    uint32_t line, number;
} sites_known[1 << SITES_KNOWN_BITS];

/* Looks for a call among all, and remembers its number. */
uint32_t site_number_found(struct site_known *known, const char *file, uint32_t line);

/* The number of a call, from 1 on; 0 if it has no line. The file's text stays where it is. */
static inline uint32_t site_number(const char *file, uint32_t line)
{
    struct site_known *known = &sites_known[hash_bits((uintptr_t)file + line, SITES_KNOWN_BITS)];
    return known->line == line && known->file == file ? known->number : site_number_found(known, file, line);
}

/* "gemm.c:12"; "" for 0. In the arena. */
const char *site_name(uint32_t number);

/* What `file` NULL means. */
void sites_name_stream(const char *path);

void sites_reset(void);

#endif
