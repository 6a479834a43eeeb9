/* allocator.h: which bytes of each memory are in use, and by whom.
 *
 * Tensors of the host grow upwards from 0, or from the end of a TCM's reserved region, and stay. The blocks that a kernel
 * allocates lie above them, each in the first gap that is large enough, and go when the kernel frees them or ends. All
 * of them are aligned to 64 bytes, and lie below the areas of IPCQ rings. */
#ifndef KB_ALLOCATOR_H
#define KB_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fail.h"

/* ---- the host */

/* Bytes that the host can still have of a memory: those above everything in use. */
uint64_t allocator_host_left(uint32_t memory);

/* Gives bytes to the host; returns false if fewer are left. */
bool allocator_host_take(uint32_t memory, uint64_t bytes, uint64_t *offset);

/* Takes back the bytes that the host was given last in a memory. */
void allocator_host_take_back(uint32_t memory, uint64_t offset, uint64_t bytes);

/* Bytes that the host has. */
uint64_t allocator_host_bytes(uint32_t memory);

/* ---- the kernel that runs on the memory's PE */

/* Bytes of the largest gap. */
uint64_t allocator_kernel_left(uint32_t memory);

/* Bytes that the kernel has. */
uint64_t allocator_kernel_bytes(uint32_t memory);

/* Gives a block of bytes, at least one, to the kernel; returns false if no gap is large enough. */
bool allocator_kernel_take(uint32_t memory, uint64_t bytes, struct call_site call, uint64_t *offset);

/* Frees a block, which is all of [offset, offset + bytes); returns false if there is none. */
bool allocator_kernel_free(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The kernel has ended: its blocks are free. */
void allocator_kernel_ended(uint32_t memory);

/* Who uses the memory, for messages: the host's tensors, and the kernel's blocks by call. */
void allocator_describe(uint32_t memory, char *out, size_t size);

/* ---- memories that no address names (store.h) */

/* An offset for the bytes of a message between PEs, a slot of them, until it is freed. */
uint64_t allocator_message_take(void);
void allocator_message_free(uint64_t offset);

/* The number of the slot that holds an offset, from 0 on. */
uint64_t allocator_message_slot(uint64_t offset);

/* The offset at which one of a PE's operands is brought together, or what a defect needs is kept; the same one as long as
 * its bytes fit. */
enum { STAGING_OPERANDS = 16, STAGING_OF_DEFECTS = STAGING_OPERANDS };
uint64_t allocator_staging(uint32_t pe, unsigned operand, uint64_t bytes);

/* Nothing is in use, in any memory; kernels have ended. */
void allocator_reset(void);

#endif
