/* point.c: `kbgen point`: writes the machine of a stored point as a topology. */
#include "point.h"

#include "../../rt/common/fail.h"

static int point_main(int argc, char **argv);

static const struct cli_option options[] = {
    {0},
};

const struct subcommand point_subcommand = {
    "point", "STORE.db HASH", "writes the machine of a stored point as a topology",
    "Writes the machine of a stored point as a topology.",
    options, point_main,
};

static int point_main(int argc, char **argv)
{
    while (subcommand_option(&point_subcommand, argc, argv) != -1)
        continue;
    run_failed("point is not part of this kbgen");
}
