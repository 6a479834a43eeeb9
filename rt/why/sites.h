/* sites.h: calls in sources, by number. */
#ifndef KB_SITES_H
#define KB_SITES_H

#include <stdint.h>

struct site {
    const char *file;                                   /* NULL: the command stream */
    uint32_t line;
};

/* The number of a call, from 1 on; 0 if it has no line. The file's text stays where it is. */
uint32_t site_number(const char *file, uint32_t line);

/* "gemm.c:12"; "" for 0. In the arena. */
const char *site_name(uint32_t number);

/* What `file` NULL means. */
void sites_name_stream(const char *path);

void sites_reset(void);

#endif
