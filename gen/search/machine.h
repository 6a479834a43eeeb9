/* machine.h: the machines of a space: a topology with other values of keys.
 *
 * Machines are made in this process, by the passes of kbgen: merged, filled, checked, hashed. Those that differ in numbers
 * alone have one structure, and so one simulator. */
#ifndef GEN_SEARCH_MACHINE_H
#define GEN_SEARCH_MACHINE_H

#include "../impl.h"
#include "../numbers.h"
#include "space.h"

struct machines;

/* The machines that one simulator serves. */
struct structure {
    unsigned number;                                    /* in the order in which they were met */
    const char *name;                                   /* 32 hexadecimal digits: of all that the simulator is built from,
                                                           kbgen, the user's files by content and no numbers */
    char **sets;                                        /* --set options that build it: those of its first machine */
    size_t set_count;
    struct impl_files impls;                            /* the files of models that its machines name */
    const struct plan *plan;                            /* nodes, links and totals */
    void *owner;                                        /* for the use of the driver */
};

struct machine {
    const char *refused;                                /* the messages of kbgen, on one line; NULL: it can be built */
    const struct model *model;                          /* NULL if it is refused */
    struct structure *structure;                        /* NULL if it is refused */
    const char *hash;                                   /* 32 hexadecimal digits: equal machines have equal hashes */
    const char *numbers;                                /* what a line of --points has as "--set": a JSON object */
};

/* Reads the topology of a space. Checks its keys, and each level of each key by itself; reports all errors. Returns NULL
 * if there are any, here or before. */
struct machines *machines_begin(const struct space *space);

/* Makes the machine of a vector of levels, one for each axis of the space. What it has is in the arena, except
 * structures, which stay. It takes some 30 us. */
struct machine machine_of(struct machines *machines, const uint32_t *levels);

/* A number that tells apart the combinations of levels that may decide the structure. */
uint64_t machines_combination(const struct machines *machines, const uint32_t *levels);

/* The --set options of a machine, one for each key of the space, and their number. */
char **machine_sets(const struct machines *machines, const uint32_t *levels, size_t *count);

/* The topology as one text: its files, as a simulator keeps them (topology_number). */
struct number machines_topology(const struct machines *machines);

/* Builds the simulator of a structure at a path, with the files of the space; to be called in a child process
 * (process.run), since it exits after errors. `jobs`: compilers at a time. */
void structure_build(const struct machines *machines, const struct structure *structure, const char *path, size_t jobs);

#endif
