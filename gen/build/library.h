/* library.h: a machine as a library for other programs (rt/kb/sim.h). */
#ifndef GEN_LIBRARY_H
#define GEN_LIBRARY_H

#include <stdbool.h>

#include "../words.h"

struct library {
    const char *name, *hash;                            /* of the machine */
    const char *folder;                                 /* that gets the files of the library */
    const char *scratch;                                /* for temporary files, absolute */
    const char *key;                                    /* the build ID */
    const struct words *compiler;                       /* with its flags */
    struct words objects;                               /* of the generated code and of the user's files */
    const struct words *libraries;                      /* that simulators are linked with */
    bool has_users;                                     /* some objects are of the user's files */
};

/* The file of a library that carries its build ID. */
const char *library_file(const char *folder, const char *name);

/* Links the objects and leaves in the folder, each complete or not at all, the one with the build ID last:
 *
 *     libNAME.so.ABI, libNAME.so, libNAME.a, NAME.pc      for linkers
 *     NAME.h, kb/sim.h                                    for compilers: the machine's numbers, the calls
 *     NAME.json                                           the same for programs
 *     NAME_*                                              of each template templates/lib/NAME_*.in
 *
 * What the library says of its machine it is asked for. */
void library_make(struct library *library);

#endif
