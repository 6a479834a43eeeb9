/* build.h: from generated C to a simulator, with as little work as possible.
 *
 *     nothing       the simulator at its path carries the same build ID: it was made of the same inputs
 *     numbers       a linked simulator of the same structure is in the cache: its numbers are replaced
 *     link          its objects are in the cache
 *     compile       else */
#ifndef GEN_BUILD_H
#define GEN_BUILD_H

#include "compiler.h"

struct build;

/* Begins to build a simulator of a complete emission, of the user's files and of what was compiled with kbgen. */
struct build *build_begin(const struct build_options *options, const struct emission *emission);

/* Returns whether it can be built without asking the compiler for anything; then the user's files have compiled before. */
bool build_is_known(struct build *build);

/* Leaves the simulator at its path, untouched if it was made of the same inputs. Ends with status 2 if a file of the
 * user's does not compile. */
void build_simulator(struct build *build);

/* Adds all files that a built simulator was made of, except its topology: the user's with what they include, and kbgen's. */
void build_list_files(const struct build *build, struct words *files);

#endif
