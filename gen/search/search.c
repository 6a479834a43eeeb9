/* search.c: `kbgen search`: searches a space of machines and keeps every result in a store. */
#include "search.h"

#include "../../rt/common/fail.h"

static int search_main(int argc, char **argv);

static const struct cli_option options[] = {
    {0},
};

const struct subcommand search_subcommand = {
    "search", "SPACE.yaml", "searches a space of machines and keeps every result in a store",
    "Searches a space of machines.",
    options, search_main,
};

static int search_main(int argc, char **argv)
{
    while (subcommand_option(&search_subcommand, argc, argv) != -1)
        continue;
    run_failed("search is not part of this kbgen");
}
