/* making.h: a simulator in the making: what cc.c compiles and structure.c tells from others. */
#ifndef GEN_MAKING_H
#define GEN_MAKING_H

#include "cc.h"
#include "program.h"
#include "toolchain.h"

/* A file that is compiled. */
struct unit {
    const char *name;                                   /* for messages */
    const char *path;                                   /* absolute */
    const char *object;
    bool users;
    const struct impl *impl;                            /* the own model that it is, or NULL */
    const char *content;                                /* a hash over what it holds and includes */
    const char *read_name, *read_memo;                  /* what it includes, to keep for the next call; or NULL */
};

struct making {
    const struct build *build;
    struct toolchain tools;
    struct words asked;                                 /* the compiler and the user's arguments for it */
    struct words compiler;                              /* the same and all flags but those that name files */
    struct unit *units;
    size_t unit_count;
    const struct emission *emission;
    const char *folder;                                 /* for what is temporary; NULL: not made yet */
    const char *structure;                              /* the name of linked ones like it; NULL: not known yet */
    const char *key;                                    /* what the simulator is to carry */
    bool is_there;                                      /* it is at its place already */
    struct program linked;                              /* it, made of one of the same structure; or NULL */
};

/* A job for the compiler that reads a file of the user's. What to make of it is left to add. */
struct job user_job(const struct making *making, const struct unit *unit);

/* The folder for what is temporary, absolute. */
const char *making_folder(struct making *making);

/* Ends kbgen after a compiler's complaint, which stands on standard error: a user's file is the user's input. */
_Noreturn void refuse(const struct job *job, const struct unit *unit);

/* A hash over a generated file and the generated headers that it includes. */
const char *content_of(const struct emission *emission, const struct emitted *file);

/* A hash over a user's file and all that it includes, or NULL: the compiler would have to be asked, and `ask` forbids
 * it. Leaves in the unit what structure_keep keeps. */
const char *content_of_user(struct making *making, struct unit *unit, bool ask);

/* A hash over all that a simulator is made of but its numbers, or NULL: the compiler would have to be asked, and `ask`
 * forbids it. Simulators of one structure are the same bytes but for the key and the numbers. */
const char *structure_of(struct making *making, bool ask);

/* Whether a unit is the generated file with the numbers. */
bool unit_is_numbers(const struct unit *unit);

/* Writes a unit's object if it was kept; false: it has to be compiled. And keeps one that was. */
bool object_find(const struct making *making, const struct unit *unit);
void object_keep(const struct making *making, const struct unit *unit);

/* Keeps what the compiler was asked, once the simulator is made. */
void structure_keep(const struct making *making);

#endif
