/* options.c: kbgen's command line. */
#define _GNU_SOURCE                                     /* sched_getaffinity */

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/command_line.h"
#include "../rt/common/diag.h"
#include "emit.h"

/* The compiler that the Makefile builds kbgen with. */
#ifndef KB_CC
#define KB_CC "cc"
#endif

static const char help[] =
    "usage: kbgen TOPOLOGY.yaml ... [OPTION ...]\n"
    "Makes a simulator of the machine that each topology file describes: build/NAME below the current folder.\n"
    "\n"
    "  -o, --output PATH    write to PATH instead; for several topologies to PATH/NAME, where PATH ends with a slash\n"
    "      --emit exe|c     c: write the generated sources only, to the folder build/NAME.c, or PATH\n"
    "      --keep           keep the generated sources, in the folder build/NAME.c, or PATH.c\n"
    "  -k, --kernel FILE.c  add a kernel file to those that are built in (repeatable)\n"
    "      --impl NAME.c    your model of the component whose impl is NAME in the topology (repeatable)\n"
    "      --set KEY=VALUE  override a key of the topology: --set cube.noc.link_bw_gbs=512 (repeatable)\n"
    "      --check          check the topology and stop\n"
    "      --dump WHAT      print model, nodes, links, routes, dot (a graph for graphviz), schema (JSON Schema)\n"
    "                       or schema-space (that of a space file of kbgen search)\n"
    "      --cc CC          compile with CC (default: " KB_CC ")\n"
    "  -O LEVEL             optimisation of the generated code and of your files: 0 1 2 3 s g fast\n"
    "  -j, --jobs N         run N compilers, or make N topologies, at a time (default: one per processor)\n"
    "  -v, --verbose        print how long each step takes\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "kbgen search SPACE.yaml searches a space of machines; kbgen front, point, report and merge take what it has found.\n"
    "\n"
    "A topology - is standard input. An option that takes one value is given once; those that are repeatable say so.\n"
    "\n"
    "Topologies that differ in numbers alone share one linked simulator, kept in build/kbgen.cache, or in\n"
    "$KBGEN_CACHE (empty: nowhere). The cache takes up to 256 MiB and may be removed at any time. What another\n"
    "user can have written in it is not used.\n"
    "$KBGEN_HOME names the tree with templates, headers and archives, if it is not beside kbgen.\n"
    "Exit status: 0 good, 2 wrong usage or input, 3 the system failed (no compiler, disk full).\n";

enum { OPTION_EMIT = 256, OPTION_KEEP, OPTION_IMPL, OPTION_SET, OPTION_CHECK, OPTION_DUMP, OPTION_CC };

static const struct option longs[] = {
    {"output", required_argument, NULL, 'o'},
    {"emit", required_argument, NULL, OPTION_EMIT},
    {"keep", no_argument, NULL, OPTION_KEEP},
    {"kernel", required_argument, NULL, 'k'},
    {"impl", required_argument, NULL, OPTION_IMPL},
    {"set", required_argument, NULL, OPTION_SET},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"dump", required_argument, NULL, OPTION_DUMP},
    {"cc", required_argument, NULL, OPTION_CC},
    {"jobs", required_argument, NULL, 'j'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};

/* The index of an option's word among those that it accepts. */
static unsigned choose(const char *option, const char *word, const char *const *words, size_t count)
{
    char *all = "";
    for (unsigned i = 0; i < count; i++) {
        if (!strcmp(word, words[i]))
            return i;
        all = arena_printf("%s%s%s", all, i ? ", " : "", words[i]);
    }
    usage_error("%s takes one of %s; not '%s'", option, all, word);
}

static enum dump read_dump(const char *word)
{
    static const char *const words[] = {"model", "nodes", "links", "routes", "dot", "schema", "schema-space"};
    return DUMP_model + choose("--dump", word, words, COUNT_OF(words));
}

static const char *read_level(const char *word)
{
    static const char *const words[] = {"0", "1", "2", "3", "s", "g", "fast"};
    return words[choose("-O", word, words, COUNT_OF(words))];
}

static size_t read_jobs(const char *word)
{
    char *end;
    long jobs = strtol(word, &end, 10);
    if (*end || end == word || jobs < 1 || jobs > 1024)
        usage_error("-j takes a number from 1 to 1024; not '%s'", word);
    return (size_t)jobs;
}

/* A path without trailing slashes, which only a folder may have. */
static const char *read_output(const char *path, bool folder)
{
    size_t length = strlen(path);
    if (!length || (!folder && path[length - 1] == '/'))
        usage_error("-o takes the path of a file; not '%s'", path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return arena_text(path, length);
}

/* Checks that -o names a folder, by a trailing slash, if there are several topologies. */
static void place_many(struct options *options)
{
    const char *output = options->output;
    options->output = NULL;
    if (output && (!*output || output[strlen(output) - 1] != '/'))
        usage_error("-o takes a folder for several topologies, with a slash at its end; not '%s'", output);
    if (output)
        options->folder = read_output(output, true);
}

size_t processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

static void finish(const char *text)
{
    if (printf("%s", text) < 0 || fflush(stdout) != 0)
        die("write to standard output:");
    exit(0);
}

static void add(char ***list, size_t *count, char *word)
{
    *list = arena_grow(*list, *count, sizeof **list);
    (*list)[(*count)++] = word;
}

static void take(struct options *options, int option)
{
    static const char *const forms[] = {"exe", "c"};
    switch (option) {
    case 'o':
        options->output = optarg;
        break;
    case OPTION_EMIT:
        options->emit_c = choose("--emit", optarg, forms, COUNT_OF(forms));
        break;
    case OPTION_KEEP:
        options->keep = true;
        break;
    case 'k':
        add(&options->kernels, &options->kernel_count, optarg);
        break;
    case OPTION_IMPL:
        add(&options->impls, &options->impl_count, optarg);
        break;
    case OPTION_SET:
        add(&options->sets, &options->set_count, optarg);
        break;
    case OPTION_CHECK:
        options->check = true;
        break;
    case OPTION_DUMP:
        options->dump = read_dump(optarg);
        break;
    case OPTION_CC:
        options->cc = optarg;
        break;
    case 'O':
        options->level = read_level(optarg);
        break;
    case 'j':
        options->jobs = read_jobs(optarg);
        break;
    case 'v':
        options->verbose = true;
        break;
    case 'h':
        finish(help);
        break;
    case 'V':
        finish("kbgen " KBGEN_VERSION "\n");
        break;
    }
}

/* Refuses an option that takes one value and is given a second one. */
static void check_once(int option)
{
    static const struct {
        int option;
        const char *name;
    } single[] = {{'o', "-o"}, {OPTION_EMIT, "--emit"}, {OPTION_DUMP, "--dump"}, {OPTION_CC, "--cc"}, {'O', "-O"},
                  {'j', "-j"}};
    static const char *given[COUNT_OF(single)];
    for (size_t i = 0; i < COUNT_OF(single); i++)
        if (single[i].option == option)
            option_once(single[i].name, &given[i], optarg);
}

static void check_inputs(const struct options *options)
{
    unsigned inputs = 0;
    for (size_t i = 0; i < options->topology_count; i++)
        inputs += !strcmp(options->topologies[i], "-");
    if (inputs > 1)
        usage_error("standard input, -, is one topology; it is named twice");
}

struct options options_read(int argc, char **argv)
{
    struct options options = {.cc = KB_CC, .folder = "build", .jobs = processors()};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":o:k:O:j:vhV", longs, NULL)) >= 0;) {
        if (option == '?' || option == ':')
            option_refused(option, argv, longs, "kbgen --help");
        check_once(option);
        take(&options, option);
    }
    options.topologies = argv + optind;
    options.topology_count = (size_t)(argc - optind);
    options.topology = options.topologies[0];
    check_inputs(&options);
    if (options.topology_count > 1 && options.dump)
        usage_error("--dump takes one topology: %s and %s", argv[optind], argv[optind + 1]);
    if (!options.topology && options.dump < DUMP_schema)
        usage_error("no topology file; kbgen --help says more");
    if (options.topology_count > 1)
        place_many(&options);
    else if (options.output)
        options.output = read_output(options.output, options.emit_c);
    return options;
}
