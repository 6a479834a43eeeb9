/* main.c: the command line of a simulator. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/diag.h"
#include "data.h"
#include "host/bench.h"
#include "info.h"
#include "machine/emitted.h"
#include "oplog_dump.h"
#include "probe.h"
#include "replay.h"
#include "report.h"
#include "run.h"
#include "schema.h"
#include "session/observers.h"
#include "web.h"
#include "whatif.h"

static void version_print(void)
{
    printf("%s: topology %s, kbgen %s\n", kb_machine_name, kb_topology_hash, kb_version);
}

static const struct subcommands_of program = {
    version_print,
    "Exit status: 0 good; 1 the run failed, or data are wrong; 2 wrong use or input; 3 the host system failed.",
};

static int list_main(int argc, char **argv);

static const struct cli_option list_options[] = {
    {'j', "json", NULL, "print the benches with their parameters as JSON"},
    {0},
};

static const struct subcommand list_subcommand = {
    "list", "", "lists the benches with their parameters, and the kernels",
    "Lists the benches with their parameters: name, default, meaning, bounds; and the kernels with their places.",
    list_options, list_main,
};

static const struct subcommand *const subcommands[] = {
    &list_subcommand, &run_subcommand, &replay_subcommand, &oplog_subcommand, &data_subcommand, &info_subcommand,
    &report_subcommand, &web_subcommand, &probe_subcommand, &whatif_subcommand, &schema_subcommand,
};

static int list_main(int argc, char **argv)
{
    bool as_json = false;
    for (int letter; (letter = subcommand_option(&list_subcommand, argc, argv)) != -1;)
        as_json = letter == 'j';
    if (optind < argc)
        usage_error("list takes no arguments: '%s'", argv[optind]);
    if (as_json)
        bench_list_json(stdout);
    else
        bench_list(stdout);
    return STATUS_GOOD;
}

static void help_print(FILE *out)
{
    fprintf(out, "usage: %s SUBCOMMAND ...\n\nA simulator of the machine %s, topology %s.\n\n", program_name,
            kb_machine_name, kb_topology_hash);
    for (size_t i = 0; i < COUNT_OF(subcommands); i++) {
        int width = fprintf(out, "  %s %s", subcommands[i]->name, subcommands[i]->arguments);
        fprintf(out, "%*s%s\n", width < 34 ? 34 - width : 1, "", subcommands[i]->summary);
    }
    fprintf(out, "\n%s SUBCOMMAND --help describes its options; %s --version names the machine.\n", program_name,
            program_name);
}

static int run_subcommand_of(int argc, char **argv)
{
    const char *names[COUNT_OF(subcommands)];
    if (argc < 2) {
        help_print(stderr);
        return STATUS_WRONG_USE;
    }
    const char *word = argv[1];
    for (size_t i = 0; i < COUNT_OF(subcommands); i++) {
        names[i] = subcommands[i]->name;
        if (!strcmp(word, names[i]))
            return subcommands[i]->main(argc - 1, argv + 1);
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        help_print(stdout);
    } else if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        version_print();
    } else {
        const char *near = nearest_name(word, names, COUNT_OF(names));
        usage_error(near ? "no subcommand '%s'; did you mean '%s'?" : "no subcommand '%s'; see --help", word, near);
    }
    return STATUS_GOOD;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    program_name = slash ? slash + 1 : argv[0];
    signal(SIGXFSZ, SIG_IGN);                           /* the write to a file that must not grow fails instead */
    observers_init();
    subcommands_begin(&program);
    int status = run_subcommand_of(argc, argv);
    if (fflush(stdout) || ferror(stdout))
        die("write to standard output:");
    return status;
}
