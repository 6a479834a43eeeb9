/* report.c: `kbgen report`: writes a page with pictures of a search. */
#include "report.h"

#include "../../rt/common/fail.h"

static int report_main(int argc, char **argv);

static const struct cli_option options[] = {
    {0},
};

const struct subcommand report_subcommand = {
    "report", "STORE.db", "writes a page with pictures of a search",
    "Writes a page with pictures of a search, for a browser.",
    options, report_main,
};

static int report_main(int argc, char **argv)
{
    while (subcommand_option(&report_subcommand, argc, argv) != -1)
        continue;
    run_failed("report is not part of this kbgen");
}
