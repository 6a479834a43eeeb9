/* front.c: `kbgen front`: prints the best points of a store. */
#include "front.h"

#include "../../rt/common/fail.h"

static int front_main(int argc, char **argv);

static const struct cli_option options[] = {
    {0},
};

const struct subcommand front_subcommand = {
    "front", "STORE.db", "prints the best points of a store",
    "Prints the Pareto front of a store, or its best points if there is one objective.",
    options, front_main,
};

static int front_main(int argc, char **argv)
{
    while (subcommand_option(&front_subcommand, argc, argv) != -1)
        continue;
    run_failed("front is not part of this kbgen");
}
