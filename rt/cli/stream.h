/* stream.h: a command stream: launches of recorded programs. */
#ifndef KB_STREAM_H
#define KB_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "machine/command.h"
#include "launch/launch.h"

/* An address as a stream writes it: fields that are OWN become those of the PE that uses it. */
enum { OWN = -1 };

struct stream_address {
    bool is_va; /* `va`: value is the address, which the MMU translates if it is on */
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
    struct launch_options options;
};

struct stream_map {
    uint64_t va, pages;
    struct stream_address to;
};

struct stream_memory {
    bool writes;
    struct stream_address *addresses;
    uint32_t count;
    uint64_t bytes;
};

struct stream {
    struct program *programs;
    struct stream_map *maps;
    struct stream_memory *memory;
    struct stream_launch *launches;
    uint32_t program_count, map_count, memory_count, launch_count;
};

/* Reads a stream for this machine; with anything wrong in it, all errors are reported and the program exits with 2. */
struct stream *stream_read(const char *path);

/* ---- parts of the reader */

struct node;

/* The steps of a program (stream_steps.c). */
void program_read(const struct node *steps, struct program *program);

/* What stands before the launches (stream_host.c). */
void maps_read(const struct node *maps, struct stream *stream);
void memory_read_all(const struct node *memory, struct stream *stream);

/* An address; `virtual` says whether a `va` may stand there. */
void address_read(const struct node *address, const char *what, bool virtual, struct stream_address *out);

/* The value of a key, which must be there. */
const struct node *required(const struct node *mapping, const char *key);

/* A whole number from `least` on, which must be there. */
void number_read(const struct node *mapping, const char *key, uint64_t least, uint64_t *out);

/* The PE of an id such as sip0.cube3.pe5; false: there is none of that name. */
bool pe_find(const char *id, uint32_t *pe);

#endif
