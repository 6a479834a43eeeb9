/* build_key.h: fingerprints of what a simulator is built from.
 *
 * A simulator's structure is everything that it is built from, except its numbers. Two simulators of one structure are
 * the same bytes, except for their numbers and the build ID. Every input counts by its content; its folder does not. */
#ifndef GEN_BUILD_KEY_H
#define GEN_BUILD_KEY_H

#include "compiler.h"
#include "toolchain.h"

/* What the fingerprints are taken of. */
struct build_inputs {
    const struct build_options *options;
    const struct emission *emission;
    struct toolchain tools;
    struct words compiler;                              /* with flags (compiler_with_flags) */
    struct translation_unit *units;
    size_t unit_count;
    const char *(*scratch)(void *);                     /* gives a temporary folder, when one is needed */
    void *scratch_arg;
};

/* The fingerprint of kbgen, of what was compiled with it and of the headers beside it; computed once. */
const char *fingerprint_of_home(void);

/* The fingerprint of a generated file and of all generated files that it includes, directly or not. */
const char *fingerprint_of_generated(const struct emission *emission, const struct emitted *file);

/* The fingerprint of the structure; fills in inputs->tools and each unit's fingerprint. If what the compiler said before
 * is not in the cache or no longer true, asks the compiler again if `ask`, else returns NULL. */
const char *fingerprint_of_structure(struct build_inputs *inputs, bool ask);

/* The fingerprint of the structure with its numbers: the build ID of the simulator. */
const char *build_key(const struct emission *emission, const char *structure);

/* The name under which the cache keeps the object of a unit, whatever other units the simulator has. */
const char *object_name(const struct build_inputs *inputs, const struct translation_unit *unit);

/* Caches what the compiler said, once the simulator is made. */
void keep_answers(const struct build_inputs *inputs);

#endif
