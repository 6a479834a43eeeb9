/* options.h: kbgen's command line. */
#ifndef GEN_OPTIONS_H
#define GEN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "../rt/common/subcommand.h"

/* What to print instead of making a simulator. */
enum dump { DUMP_NONE, DUMP_model, DUMP_nodes, DUMP_links, DUMP_routes, DUMP_dot, DUMP_schema, DUMP_schema_space, DUMPS };

struct options {
    const char *topology;                               /* the first one; NULL only with --dump schema */
    char *const *topologies;
    size_t topology_count;
    const char *output;                                 /* NULL: a file in `folder`, after the machine's name */
    const char *folder;
    const char *cc, *level;                             /* level NULL: as kbgen was built */
    char **sets, **kernels, **impls;
    size_t set_count, kernel_count, impl_count, jobs;
    enum dump dump;
    bool check, emit_c, emit_lib, keep, depfile, verbose;
};

/* What kbgen does without a subcommand; options_read reads its options. And what --help says behind them. */
extern const struct subcommand make_subcommand;
extern const char options_notes[];

/* Reads the command line; exits when it is wrong, and after --help and --version. */
struct options options_read(int argc, char **argv);

#endif
