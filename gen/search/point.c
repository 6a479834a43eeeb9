/* point.c: `kbgen point`: writes the machine of a stored point as a topology, and says how to repeat the point. */
#include "point.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "axis.h"
#include "file_out.h"
#include "repeat.h"
#include "stored.h"

static int point_main(int argc, char **argv);

enum { OPTION_OUTPUT = 'o', OPTION_SEARCH = 's' };
enum { HASH_DIGITS = 32, NAMED_DIGITS = 12, CANDIDATES_SHOWN = 5 };

static const struct cli_option options[] = {
    {OPTION_OUTPUT, "output", "FILE.yaml", "write the topology to a file, and print how to build and run it"},
    {OPTION_SEARCH, "search", "N", "the point as search N of the store has it (default: the last one that has it)"},
    {0},
};

const struct subcommand point_subcommand = {
    "point", "STORE.db HASH", "writes the machine of a stored point as a topology",
    "Writes the machine of a stored point as one topology, which needs no other file, and how to repeat the point.\n"
    "HASH may be the first digits of a hash, if only one point has them.",
    options, point_main,
};

/* Returns the only hash that begins with some digits. */
static const char *find_hash(const struct stored *stored, const char *digits)
{
    char *prefix = arena_printf("%s", digits);
    for (char *at = prefix; *at; at++) {
        *at = (char)tolower((unsigned char)*at);
        if (!strchr("0123456789abcdef", *at))
            usage_error("'%s' is no hash of a point, nor the first digits of one: 0 to 9 and a to f", printable(digits));
    }
    if (!*prefix || strlen(prefix) > HASH_DIGITS)
        usage_error("a hash of a point has 1 to %d digits; not %zu", HASH_DIGITS, strlen(prefix));
    sqlite3_stmt *query = stored_query(stored, "SELECT hash FROM point WHERE hash >= '%s' AND hash < '%sg' LIMIT %d", prefix,
                                       prefix, CANDIDATES_SHOWN + 1);
    const char *found = NULL, *list = "";
    size_t count = 0;
    while (stored_next(stored, query)) {
        found = stored_hash_text(stored_hash(stored, query, 0));
        if (++count <= CANDIDATES_SHOWN)
            list = arena_printf("%s%s%s", list, count > 1 ? ", " : "", found);
    }
    if (!count)
        usage_error("%s has no point whose hash begins with %s", stored->path, prefix);
    if (count > 1)
        usage_error("several points of %s have hashes that begin with %s: %s%s", stored->path, prefix, list, count > CANDIDATES_SHOWN ? " ..." : "");
    return found;
}

/* Returns the number of the last search that has a point, or of `only` unless that is 0; 0 if there is none. *trial: the
 * first trial there that is the point. */
static int64_t search_of(const struct stored *stored, const char *hash, int64_t only, int64_t *trial)
{
    sqlite3_stmt *query = stored_query(stored, "SELECT search, min(number) FROM trial WHERE hash = ?1 AND ?2 IN (0, search) "
                                               "GROUP BY search ORDER BY search DESC LIMIT 1");
    sqlite3_bind_text(query, 1, hash, -1, SQLITE_STATIC);
    sqlite3_bind_int64(query, 2, only);
    int64_t search = 0;
    if (stored_step(stored, query)) {
        search = sqlite3_column_int64(query, 0);
        *trial = sqlite3_column_int64(query, 1);
    }
    sqlite3_finalize(query);
    return search;
}

/* What a point has in its search. */
struct stored_machine {
    const char *told;                                   /* "ok; end_ps 487200000, area_mm2 612.4" */
    char **sets;                                        /* --set options */
    size_t set_count;
    const char **values;                                /* by column of the store; NULL where it has none */
};

static struct stored_machine read_machine(const struct stored *stored, const char *hash)
{
    struct stored_machine machine = {.values = arena_alloc(stored->count, sizeof(char *)), .sets = arena_alloc(stored->count, sizeof(char *))};
    const char *list = "";
    for (size_t i = 0; i < stored->count; i++)
        list = arena_printf("%s%s%s", list, i ? ", " : "", stored->columns[i].quoted);
    sqlite3_stmt *row = stored_query(stored, "SELECT %s FROM point WHERE hash = '%s'", list, hash);
    if (!stored_step(stored, row))
        usage_error("%s has no point %s", stored->path, hash);
    for (size_t i = 0; i < stored->count; i++) {
        const struct stored_column *column = &stored->columns[i];
        machine.values[i] = repeat_value(row, (int)i);
        if (column->role == COLUMN_AXIS && machine.values[i] && strncmp(column->name, AXIS_PARAMS, strlen(AXIS_PARAMS)))
            machine.sets[machine.set_count++] = arena_printf("%s=%s", column->name, machine.values[i]);
        if (!strcmp(column->name, "status"))
            machine.told = machine.values[i];
        if (!strcmp(column->name, "why") && machine.values[i])
            machine.told = arena_printf("%s: %s", machine.told, machine.values[i]);
    }
    for (size_t i = 0; i < stored->objective_count; i++) {
        const char *value = machine.values[stored->objectives[i].column - stored->columns];
        if (value)
            machine.told = arena_printf("%s%s %s %s", machine.told, i ? "," : ";", stored->objectives[i].column->name, value);
    }
    sqlite3_finalize(row);
    return machine;
}

/* The arguments of a workload at the point. */
static const char *arguments_of(const struct stored *stored, const struct repeat_workload *workload, const struct stored_machine *machine)
{
    const char *arguments = workload->fixed;
    for (size_t i = 0; i < stored->count; i++) {
        const char *name = stored->columns[i].role == COLUMN_AXIS && machine->values[i]
                         ? repeat_param_name(stored, workload, stored->columns[i].name) : NULL;
        if (name)
            arguments = arena_printf("%s %s", arguments, repeat_quoted(arena_printf("%s=%s", name, machine->values[i])));
    }
    return arguments;
}

/* Writes the commands that build and run the machine of a topology file, each behind `before`. */
static void write_commands(FILE *out, const char *before, const struct stored *stored, const struct stored_machine *machine, const char *topology)
{
    const char *base = strrchr(topology, '/');
    base = base ? base + 1 : topology;
    size_t stem = strlen(base);
    if (stem > 5 && !strcmp(base + stem - 5, ".yaml"))
        stem -= 5;
    const char *program = repeat_quoted(arena_printf("build/%.*s", (int)stem, base));
    fprintf(out, "%skbgen %s -o %s%s\n", before, repeat_quoted(topology), program, printable(repeat_build_options(stored)));
    struct repeat_workloads workloads = repeat_workloads(stored);
    for (size_t i = 0; i < workloads.count; i++) {
        const struct repeat_workload *workload = &workloads.list[i];
        const char *run = printable(arena_printf("%s %s%s", program, workload->verb, arguments_of(stored, workload, machine)));
        const char *page = workloads.count > 1 ? arena_printf("%.*s-%s.html", (int)stem, base, workload->name) : arena_printf("%.*s.html", (int)stem, base);
        fprintf(out, "%s%s\n%s%s --report %s\n", before, run, before, run, printable(repeat_quoted(page)));
    }
}

static int point_main(int argc, char **argv)
{
    const char *output = NULL;
    int64_t search = 0, trial = 0;
    for (int letter; (letter = subcommand_option(&point_subcommand, argc, argv)) != -1;) {
        if (letter == OPTION_OUTPUT)
            output = optarg;
        if (letter == OPTION_SEARCH)
            search = stored_search_number(optarg);
    }
    if (argc - optind != 2)
        usage_error("point takes a store and a hash; see kbgen point --help");
    struct stored stored = stored_open(argv[optind], search);
    const char *hash = find_hash(&stored, argv[optind + 1]);
    int64_t found = search_of(&stored, hash, search, &trial);
    if (!found)
        usage_error("%s of %s has no point %s", search ? arena_printf("search %" PRId64, search) : "each search", stored.path, hash);
    if (found != stored.search) {
        stored_close(&stored);
        stored = stored_open(argv[optind], found);
    }
    struct stored_machine machine = read_machine(&stored, hash);
    const struct node *topology = repeat_topology(&stored, machine.sets, machine.set_count);
    errors_end();

    const char *told = printable(arena_printf("point %s: trial %" PRId64 " of search %" PRId64 "; %s", hash, trial, stored.search, machine.told));
    const char *file = output && strcmp(output, "-") ? output : arena_printf("point-%.*s.yaml", NAMED_DIGITS, hash);
    struct file_out out = file_out_open(output, stored.path);
    fprintf(out.file, "# %s\n", told);
    write_commands(out.file, "# ", &stored, &machine, file);
    repeat_write(out.file, topology);
    file_out_close(&out);
    if (out.path) {
        printf("%s\n", told);
        write_commands(stdout, "", &stored, &machine, file);
    }
    stored_close(&stored);
    return STATUS_GOOD;
}
