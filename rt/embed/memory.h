/* memory.h: the memory of an instance, in place of that of the process.
 *
 * malloc and its relatives, and mmap of anonymous memory, are functions of the image: all code in it (the runtime, the
 * kernels, the libraries that are linked into it) allocates from the addresses that the front has reserved. So an
 * instance is freed as a whole, whatever its calls have left behind, and instances do not wait for one another. */
#ifndef KB_EMBED_MEMORY_H
#define KB_EMBED_MEMORY_H

#include "image.h"

/* Takes the memory of the host, reserved without access, whose ends are those of pages. Before it, there is no memory.
 * host->exhausted is set when an allocation fails. */
void memory_begin(struct image_host *host);

/* Before the addresses are given back. */
void memory_end(void);

/* How many of its bytes have been in use, from the first one on. */
uint64_t memory_used(void);

/* Makes the first `bytes` bytes, all of those in use among them, accessible, those of guards too. Returns false if the system
 * refuses. memory_close makes those that were never in use, which are 0 again, not accessible. */
bool memory_open(uint64_t bytes);
void memory_close(uint64_t bytes);

/* Tells the address sanitizer that the first `bytes` bytes become others. */
void memory_forget(uint64_t bytes);

#endif
