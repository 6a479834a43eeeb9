/* stream.h: a command stream: what the host does, and the programs that it launches. */
#ifndef KB_STREAM_H
#define KB_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "common/key_table.h"
#include "launch/launch.h"
#include "machine/command.h"

/* An address as a stream writes it. Fields that are OWN become those of the PE that uses it. */
enum { OWN = -1 };

struct stream_address {
    bool is_va;                                         /* `va`: translated by the MMU if that is on */
    uint64_t va;
    enum space space;
    int sip, cube, pe;
    uint64_t offset;
};

enum step_kind { STEP_COMMAND, STEP_WAIT, STEP_DELAY };

struct stream_step {
    enum step_kind kind;
    uint32_t line;                                      /* in the stream's file */
    struct request ask;                                 /* of a command, without its addresses, its line and its list of PEs */
    uint32_t *peers, peer_count;                        /* the list of PEs that a send goes to */
    struct stream_address address[OPERANDS];
    bool blocks;                                        /* the program waits for the command */
    uint32_t *awaited, awaited_count;                   /* of a wait: numbers of commands of the program */
    uint64_t delay_ps;
};

/* What a kernel submits and waits for. */
struct stream_program {
    const char *name;
    struct stream_step *steps;
    uint32_t count, commands;
    struct key_table ids;                               /* of its commands (stream_command_number) */
};

struct stream_part {
    const struct stream_program *program;
    uint32_t *pes;
    uint32_t count;
};

struct stream_launch {
    struct stream_part *parts;
    uint32_t count;
    struct launch_options options;
};

struct stream_map {
    bool unmaps;
    uint64_t va, pages;
    struct stream_address to;                           /* of a map */
    uint32_t *pes, count;                               /* over the machine, in rank order */
};

struct stream_memory {
    bool writes;
    struct stream_address *addresses;
    uint32_t count;
    uint64_t bytes;
};

enum host_step_kind { HOST_MAP, HOST_MEMORY, HOST_LAUNCH, HOST_WAIT, HOST_DELAY };

/* What the host does: a request, a wait for requests, or a delay. */
struct host_step {
    enum host_step_kind kind;
    uint32_t line;                                      /* in the stream's file */
    bool async;                                         /* the host goes on at once */
    struct stream_map map;
    struct stream_memory memory;
    struct stream_launch launch;
    uint32_t *awaited, awaited_count;                   /* of a wait: positions of steps */
    uint64_t delay_ps;
};

struct command_stream {
    struct host_step *steps;                            /* in the order in which the host takes them */
    uint32_t count;
    struct stream_program *programs;
    uint32_t program_count;
};

struct source;

/* Reads a stream for this machine with its present numbers: the page size decides how many pages a map has. Reports all
 * its errors, and ends with status 2 if there is one. */
const struct command_stream *stream_read(const char *path);

/* The same from a text, which must live as long as the stream. Returns NULL after errors. */
const struct command_stream *stream_of(const struct source *text);

/* The number of a program's command; the number of its commands if none has the id. */
uint32_t stream_command_number(const struct stream_program *program, const char *id);

/* ---- parts of a stream that come from elsewhere */

struct node;

/* What a stream has at a key of a step: an address, a PE, words, sizes, or any other value. */
enum stream_key { NO_STREAM_KEY, STREAM_KEY_ADDRESS, STREAM_KEY_PE, STREAM_KEY_PES, STREAM_KEY_WORDS, STREAM_KEY_SIZES, STREAM_KEY_VALUE };

/* Of a step `do: WORD`, of a composite with `op: OP`; NULL: of any step. */
enum stream_key stream_key(const char *word, const char *op, const char *key);

/* Writes the keys of all steps to `names`, of STREAM_KEYS_MOST elements. Returns their number; some are there twice. */
enum { STREAM_KEYS_MOST = 256 };
size_t stream_keys(const char **names);

/* Whether a word is that of a map, an unmap, a read or a write of the host. */
bool stream_host_word(const char *word);

/* Check a step of a program that waits for nothing, and one of those of the host, as those of a stream. */
bool stream_step_check(const struct node *step);
bool stream_host_check(const struct node *step);

/* Steps of a program that come one at a time, each as a text that must live as long as the run. An id is one of the steps
 * before it. Returns NULL after errors; the id of such a step may be taken. */
struct ids;
struct ids *stream_ids(void);
const struct stream_step *stream_step_of(const struct source *text, struct ids *ids);

#endif
