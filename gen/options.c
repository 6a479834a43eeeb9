/* options.c: kbgen's command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/diag.h"
#include "../rt/common/processors.h"

/* The compiler that the Makefile builds kbgen with. */
#ifndef KB_CC
#define KB_CC "cc"
#endif

enum { OPTION_EMIT = 'e', OPTION_KEEP = 'K', OPTION_IMPL = 'i', OPTION_SET = 's', OPTION_CHECK = 'c', OPTION_DUMP = 'd', OPTION_CC = 'C' };

#define DUMP_WORDS "model|nodes|links|routes|dot|schema|schema-space"
#define LEVEL_WORDS "0|1|2|3|s|g|fast"
#define EMIT_WORDS "exe|c|lib"

static const struct cli_option list[] = {
    {'o', "output", "PATH", "write to PATH instead; for several topologies to PATH/NAME, where PATH ends with a slash"},
    {OPTION_EMIT, "emit", "WHAT: " EMIT_WORDS,
     "exe: the simulator (the default);\n"
     "c: the generated sources only, to the folder build/NAME.c, or PATH;\n"
     "lib: a library for other programs, in the folder build/NAME.lib, or PATH"},
    {OPTION_KEEP, "keep", NULL, "keep the generated sources, in the folder build/NAME.c, or PATH.c"},
    {'k', "kernel", "FILE.c ...", "add a kernel file to those that are built in"},
    {OPTION_IMPL, "impl", "NAME.c ...", "your model of the component whose impl is NAME in the topology"},
    {OPTION_SET, "set", "KEY=VALUE ...", "override a key of the topology: --set cube.noc.link_bw_gbs=512"},
    {OPTION_CHECK, "check", NULL, "check the topology and stop"},
    {OPTION_DUMP, "dump", "WHAT: " DUMP_WORDS,
     "print model, nodes, links, routes, dot (a graph for graphviz), schema (JSON Schema)\n"
     "or schema-space (that of a space file of kbgen search)"},
    {OPTION_CC, "cc", "CC", "compile with CC (default: " KB_CC ")"},
    {'O', "optimise", "LEVEL: " LEVEL_WORDS, "optimisation of the generated code and of your files: 0 1 2 3 s g fast"},
    {'j', "jobs", "N", "run N compilers, or make N topologies, at a time (default: one per processor)"},
    {'M', "depfile", NULL,
     "also write PATH.d, a rule for make and ninja with all files that the simulator or library is made of"},
    {'v', "verbose", NULL, "print how long each step takes"},
    {0},
};

const struct subcommand make_subcommand = {
    .name = "", .arguments = "TOPOLOGY.yaml ...",
    .help = "Makes a simulator of the machine that each topology file describes: build/NAME below the current folder.\n"
            "A topology - is standard input. An option is given once, unless \"...\" follows its value.",
    .options = list,
};

const char options_notes[] =
    "Topologies that differ in numbers alone share one linked simulator, kept in build/kbgen.cache, or in\n"
    "$KBGEN_CACHE (empty: nowhere). The cache takes up to 256 MiB and may be removed at any time. What another\n"
    "user can have written in it is not used.\n"
    "$KBGEN_HOME names the tree with templates, headers and archives, if it is not beside kbgen.";

/* The index of an option's word among those that it accepts, which '|' separates. */
static unsigned choose(const char *option, const char *word, const char *words)
{
    char *all = "";
    for (unsigned i = 0; *words; i++) {
        size_t length = strcspn(words, "|");
        if (strlen(word) == length && !strncmp(word, words, length))
            return i;
        all = arena_printf("%s%s%.*s", all, i ? ", " : "", (int)length, words);
        words += length + (words[length] == '|');
    }
    usage_error("%s takes one of %s; not '%s'", option, all, word);
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

static void add(char ***list, size_t *count, char *word)
{
    *list = arena_grow(*list, *count, sizeof **list);
    (*list)[(*count)++] = word;
}

static void take(struct options *options, int option)
{
    switch (option) {
    case 'o':
        options->output = optarg;
        break;
    case OPTION_EMIT:
    {
        unsigned form = choose("--emit", optarg, EMIT_WORDS);
        options->emit_c = form == 1;
        options->emit_lib = form == 2;
        break;
    }
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
        options->dump = DUMP_model + choose("--dump", optarg, DUMP_WORDS);
        break;
    case OPTION_CC:
        options->cc = optarg;
        break;
    case 'O':
        choose("-O", optarg, LEVEL_WORDS);
        options->level = optarg;
        break;
    case 'j':
        options->jobs = read_jobs(optarg);
        break;
    case 'M':
        options->depfile = true;
        break;
    case 'v':
        options->verbose = true;
        break;
    }
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
    struct options options = {.cc = KB_CC, .folder = "build", .jobs = processor_count()};
    for (int option; (option = subcommand_option(&make_subcommand, argc, argv)) != -1;)
        take(&options, option);
    options.topologies = argv + optind;
    options.topology_count = (size_t)(argc - optind);
    options.topology = options.topologies[0];
    check_inputs(&options);
    if (options.topology_count > 1 && options.dump)
        usage_error("--dump takes one topology: %s and %s", argv[optind], argv[optind + 1]);
    if (!options.topology && options.dump < DUMP_schema)
        usage_error("no topology file; kbgen --help says more");
    if (options.depfile && (options.check || options.emit_c || options.dump))
        usage_error("-MD is of a simulator: use it without --check, --dump and --emit c");
    if (options.topology_count > 1)
        place_many(&options);
    else if (options.output)
        options.output = read_output(options.output, options.emit_c || options.emit_lib);
    return options;
}
