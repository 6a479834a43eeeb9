/* main.c: the command line of a simulator. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "common/arena.h"
#include "common/completion.h"
#include "common/diag.h"
#include "compare.h"
#include "data.h"
#include "host/bench.h"
#include "import.h"
#include "info.h"
#include "machine/emitted.h"
#include "oplog_dump.h"
#include "probe.h"
#include "replay.h"
#include "report.h"
#include "run.h"
#include "schema.h"
#include "session/numbers.h"
#include "session/observers.h"
#include "web.h"
#include "whatif.h"

static void version_print(void)
{
    printf("%s: topology %s, kbgen %s\n", kb_machine_name, kb_topology_hash, kb_version);
}

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
    &report_subcommand, &web_subcommand, &probe_subcommand, &whatif_subcommand, &import_subcommand, &compare_subcommand,
    &schema_subcommand, NULL,
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

static void offer_benches(void)
{
    const struct kb_bench **all;
    for (size_t i = 0, count = bench_all(&all); i < count; i++)
        completion_offer(all[i]->name, all[i]->what);
}

static void offer_parameters(const char *bench)
{
    const struct kb_bench **all;
    for (size_t i = 0, count = bench_all(&all); i < count; i++)
        for (size_t j = 0; !strcmp(all[i]->name, bench) && j < all[i]->count; j++)
            completion_offer(arena_printf("%s=", all[i]->params[j].name), all[i]->params[j].help);
}

static void offer_numbers(void)
{
    const struct better_keys keys = numbers_better((struct better_by){.up = 2, .down = 0.5});
    for (size_t i = 0; i < keys.count; i++)
        if (!keys.list[i].in_list)
            completion_offer(arena_printf("%s=", keys.list[i].path), arena_printf("%s, %s", keys.list[i].value, keys.list[i].place));
}

/* Offers benches, parameters of the bench that is named and numbers of the topology. */
static void offer(const char *argument, const char *first)
{
    if (!strcmp(argument, "BENCH"))
        offer_benches();
    else if (!strcmp(argument, "NAME=VALUE") && first)
        offer_parameters(first);
    else if (!strcmp(argument, "KEY=VALUE"))
        offer_numbers();
}

static const struct program program = {
    .about = "a simulator that kbgen has made of a machine",
    .subcommands = subcommands,
    .notes = "A simulator of one machine, which kbgen has made of its description. It is named after the machine: ref_sip, say.",
    .statuses = "Exit status: 0 good; 1 the run failed, or data are wrong; 2 wrong use or input; 3 the host system failed.",
    .version_print = version_print, .offer = offer,
};

static void help_print(FILE *out)
{
    fprintf(out, "usage: %s SUBCOMMAND ...\n\nA simulator of the machine %s, topology %s.\n\n", program_name,
            kb_machine_name, kb_topology_hash);
    subcommands_print(out);
    fprintf(out, "\n%s SUBCOMMAND --help describes its options; %s --version names the machine.\n", program_name,
            program_name);
}

static _Noreturn void refuse(const char *word)
{
    const char *names[COUNT_OF(subcommands)];
    size_t count = 0;
    for (; subcommands[count]; count++)
        names[count] = subcommands[count]->name;
    const char *near = nearest_name(word, names, count);
    usage_error(near ? "no subcommand '%s'; did you mean '%s'?" : "no subcommand '%s'; see --help", word, near);
}

static int run_subcommand_of(int argc, char **argv)
{
    if (argc < 2) {
        help_print(stderr);
        return STATUS_WRONG_USE;
    }
    const char *word = argv[1];
    const struct subcommand *subcommand = subcommand_named(word);
    if (subcommand)
        return subcommand->main(argc - 1, argv + 1);
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        help_print(stdout);
    else if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        version_print();
    else
        refuse(word);
    return STATUS_GOOD;
}

int main(int argc, char **argv)
{
    heap_begin();
    const char *slash = strrchr(argv[0], '/');
    program_name = slash ? slash + 1 : argv[0];
    signal(SIGXFSZ, SIG_IGN);                           /* the write to a file that must not grow fails instead */
    observers_init();
    program_begin(&program, argc, argv);
    int status = run_subcommand_of(argc, argv);
    if (fflush(stdout) || ferror(stdout))
        die("write to standard output:");
    return status;
}
