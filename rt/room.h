/* room.h: which part of each memory is given out.
 *
 * Tensors of the host grow upwards from 0, or from the end of a TCM's reserved region, and stay. What a kernel
 * allocates follows them and goes when it ends. All of it is 64-byte aligned, and below the areas of rings. */
#ifndef KB_ROOM_H
#define KB_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes left in a memory, in one piece. */
uint64_t room_left(uint32_t memory);

/* Gives out bytes to the host, or to the kernel that runs on the memory's PE; false: there is not so much left. */
bool room_take(uint32_t memory, uint64_t bytes, bool kernel, uint64_t *offset);

/* The kernel ended: what it took is free. */
void room_kernel_ended(uint32_t memory);

/* How much the host, and how much a kernel, holds. */
uint64_t room_host_bytes(uint32_t memory);
uint64_t room_kernel_bytes(uint32_t memory);

#endif
