/* allocator.h: which part of each memory is given out.
 *
 * Tensors of the host grow upwards from 0, or from the end of a TCM's reserved region, and stay. What a kernel
 * allocates lies above them, in the first gap that is large enough, and goes when it frees it or ends. All of it is
 * 64-byte aligned, and below the areas of rings. */
#ifndef KB_ROOM_H
#define KB_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fail.h"

/* Bytes left for the host in a memory, in one piece: above all that is given out. */
uint64_t room_left(uint32_t memory);

/* Gives out bytes to the host; false: there is not so much left. */
bool room_take(uint32_t memory, uint64_t bytes, uint64_t *offset);

/* How much the host, and how much a kernel, holds. */
uint64_t room_host_bytes(uint32_t memory);
uint64_t room_kernel_bytes(uint32_t memory);

/* ---- of the kernel that runs on the memory's PE */

/* Bytes of the largest gap. */
uint64_t room_kernel_left(uint32_t memory);

/* Gives out bytes to the kernel; false: no gap is so large. */
bool room_kernel_take(uint32_t memory, uint64_t bytes, struct call_site call, uint64_t *offset);

/* Takes back the block that begins at an offset and has so many bytes; false: there is none. */
bool room_kernel_free(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The kernel ended: what it took is free. */
void room_kernel_ended(uint32_t memory);

/* Who holds the memory, for messages: the host's tensors, then the kernel's blocks, summed over each call. */
void room_describe(uint32_t memory, char *out, size_t size);

/* ---- messages between PEs, whose bytes stand in a memory of their own (store.h) */

/* An offset for a message's bytes, as many as a slot has, until it is given back. */
uint64_t room_message_take(void);
void room_message_free(uint64_t offset);

/* ---- operands that are brought together, in a memory of their own as well */

/* The place of one of a PE's operands, of at least so many bytes; the same one as long as it is large enough. */
uint64_t room_staging(uint32_t pe, unsigned operand, uint64_t bytes);

/* Nothing is given out, in any memory; kernels have ended. */
void room_reset(void);

#endif
