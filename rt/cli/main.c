/* main.c: the simulator's command line: which subcommand. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "host/bench.h"
#include "machine/emitted.h"
#include "info.h"
#include "data.h"
#include "observers.h"
#include "replay.h"
#include "run.h"
#include "oplog_dump.h"
#include "common/arena.h"
#include "common/diag.h"

static void help(FILE *out)
{
    fprintf(out,
            "usage: %s list                          benches, their parameters, kernels\n"
            "       %s run BENCH [NAME=VALUE ...]    run a bench; run --help shows the options\n"
            "       %s replay STREAM.yaml            run a recorded command stream; replay --help\n"
            "       %s oplog FILE                    an op log as JSON lines, or its --summary\n"
            "       %s data FILE                     the data pass of an op log\n"
            "       %s info                          the machine: counts, memories, peaks\n"
            "A simulator of the machine %s, topology %s.\n",
            program_name, program_name, program_name, program_name, program_name, program_name, kb_machine_name,
            kb_topology_hash);
}

/* `list` and `info` take nothing but --help. */
static void nothing_more(int argc, char **argv)
{
    if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
        help(stdout);
    else if (argc > 2)
        usage_error("%s takes no arguments: '%s'", argv[1], argv[2]);
}

static int subcommand(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "run"))
        return run_main(argc - 1, argv + 1);
    if (!strcmp(argv[1], "replay"))
        return replay_main(argc - 1, argv + 1);
    if (!strcmp(argv[1], "oplog"))
        return show_main(argc - 1, argv + 1);
    if (!strcmp(argv[1], "data"))
        return later_main(argc - 1, argv + 1);
    if (!strcmp(argv[1], "--version")) {
        printf("%s: topology %s, kbgen %s\n", kb_machine_name, kb_topology_hash, kb_version);
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        help(stdout);
        return 0;
    }
    static const char *const names[] = {"list", "run", "replay", "oplog", "data", "info"};
    bool list = !strcmp(argv[1], "list");
    if (!list && strcmp(argv[1], "info")) {
        const char *near = nearest_name(argv[1], names, COUNT_OF(names));
        usage_error(near ? "no subcommand '%s'; did you mean '%s'?" : "no subcommand '%s'; see --help", argv[1], near);
    }
    nothing_more(argc, argv);
    if (argc == 2)
        (list ? bench_list : info_print)(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    program_name = slash ? slash + 1 : argv[0];
    signal(SIGXFSZ, SIG_IGN);                           /* a file that may not grow is an error of its write */
    observers_init();
    int status = subcommand(argc, argv);
    if (fflush(stdout) || ferror(stdout))
        die("write to standard output:");
    return status;
}
