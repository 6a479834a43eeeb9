/* schema.c: `SIM schema WHAT`: the JSON Schemas of what a simulator writes. They are definitions of one document,
 * rt/report/schema.json; a printed schema is this document with one definition as its root. */
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/packed.h"
#include "common/arena.h"
#include "common/command_line.h"
#include "common/diag.h"
#include "common/fail.h"

PACKED_FILE(schema_packed, SCHEMA);

static int schema_main(int argc, char **argv);

const struct subcommand schema_subcommand = {
    "schema", "WHAT: result|point|metrics|stats|trace|oplog|plan|probe|whatif", "prints the JSON Schema of a result, or of other JSON that is written",
    "Prints the JSON Schema (draft-07) of one kind of JSON that this simulator writes:\n\n"
    "  result   --json of run and replay\n"
    "  point    a line of --points\n"
    "  metrics  a line of --points with --metrics\n"
    "  stats    --stats\n"
    "  trace    a line of --trace\n"
    "  oplog    a line of oplog\n"
    "  plan     a line of --dump plan\n"
    "  probe    --json of probe\n"
    "  whatif   --json of whatif\n"
    "  compare  --json of compare\n",
    NULL, schema_main,
};

static int schema_main(int argc, char **argv)
{
    static const char *const kinds[] = {"result", "point", "metrics", "stats", "trace", "oplog", "plan", "probe", "whatif", "compare"};
    while (subcommand_option(&schema_subcommand, argc, argv) != -1)
        continue;
    const char *word = subcommand_argument(&schema_subcommand, argc, argv, "one kind of JSON");
    bool is_known = false;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        is_known |= !strcmp(word, kinds[i]);
    if (!is_known) {
        const char *near = nearest_name(word, kinds, COUNT_OF(kinds));
        usage_error(near ? "no schema '%s'; did you mean '%s'?" : "no schema '%s'; see schema --help", word, near);
    }
    char *document = unpack(schema_packed, schema_packed_end, "the JSON Schemas");
    printf("{\n \"allOf\": [ { \"$ref\": \"#/definitions/%s\" } ],\n%s", word, document + strlen("{\n"));
    free(document);
    return STATUS_GOOD;
}
