/* stream.h: a command stream: launches of recorded programs. */
#ifndef KB_STREAM_H
#define KB_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "command.h"

/* An address as a stream writes it: fields that are OWN become those of the PE that uses it. */
enum { OWN = -1 };

struct stream_address {
    bool physical;                                      /* `va` with the MMU off: value is the address */
    uint64_t value;
    enum space space;
    int sip, cube, pe;
    uint64_t offset;
};

enum step_kind { STEP_COMMAND, STEP_WAIT, STEP_DELAY };

struct step {
    enum step_kind kind;
    struct request ask;                                 /* of a command, but for its addresses */
    struct stream_address address[OPERANDS];
    bool blocks;
    uint32_t *awaited, awaited_count;                   /* of a wait: numbers of commands of the program */
    uint64_t delay_ps;
};

struct program {
    const char *name;
    struct step *steps;
    uint32_t count, commands;
};

struct stream_part {
    const struct program *program;
    uint32_t *pes;
    uint32_t count;
};

struct stream_launch {
    struct stream_part *parts;
    uint32_t count;
};

struct stream {
    struct program *programs;
    struct stream_launch *launches;
    uint32_t program_count, launch_count;
};

/* Reads a stream for this machine; with anything wrong in it, all errors are reported and the program exits with 2. */
struct stream *stream_read(const char *path);

/* The steps of a program (stream_steps.c). */
struct node;
void program_read(const struct node *steps, struct program *program);

#endif
