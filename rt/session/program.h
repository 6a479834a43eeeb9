/* program.h: stackless kernels that submit and await the commands of a stream's program, or of steps that come from outside. */
#ifndef KB_PROGRAM_H
#define KB_PROGRAM_H

#include "launch/kernel.h"
#include "stream.h"

/* An address of a stream for the PE that uses it. */
uint64_t program_address(const struct stream_address *address, const struct pe *pe);

/* The kernel_fn of a struct stream_program. */
void program_run(struct tl *tl, const void *program);

/* How many commands such a kernel submits. */
uint64_t program_commands(const struct tl *tl);

/* A program that gets its steps from outside, for each PE of a launch its own. */
struct fed_program;

struct fed_program *fed_program_new(uint32_t pes);

/* The kernel_fn of a struct fed_program. A kernel that has no step waits. */
void fed_program_run(struct tl *tl, const void *program);

/* The ids of the steps of PE number i of the launch, in rank order. */
struct ids *fed_program_ids(struct fed_program *program, uint32_t i);

/* Adds a step for that PE. Its kernel goes on in this instant if it waits. */
void fed_program_add(struct fed_program *program, uint32_t i, const struct stream_step *step);

/* No PE gets another step: each kernel returns behind its last one. */
void fed_program_end(struct fed_program *program);
bool fed_program_ended(const struct fed_program *program);

/* Whether one of its kernels waits for a step. */
bool fed_program_waits(const struct fed_program *program);

#endif
