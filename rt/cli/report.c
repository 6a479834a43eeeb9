/* report.c: `SIM report A.json ... -o F.html`: one page of the results of one or more runs. */
#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/fail.h"
#include "common/path_error.h"
#include "report/page.h"

static int report_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'o', "output", "FILE", "the page; - is standard output"},
    {0},
};

const struct subcommand report_subcommand = {
    "report", "RESULT.json ... -o FILE", "shows results of runs on one page",
    "Writes an HTML page of the results of runs, as `run --json` writes them. The pictures of a result are those of its\n"
    "machine and activity, which are in it if the run had --report as well. Of several results the page also has the\n"
    "differences. A file may hold several results, as `run --points` writes them.",
    options, report_main,
};

void report_write(struct output *output, void (*fill)(struct json *, void *), void *arg)
{
    char *text;
    size_t length;
    struct json json;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        die("cannot write %s:", output->path);
    json_open(&json, memory);
    json.one_line = true;
    json_object(&json, NULL);
    fill(&json, arg);
    json_object_end(&json);
    if (fclose(memory))
        die("cannot write %s:", output->path);
    page_begin(output->file, false);
    const char *wrong = page_add(output->file, NULL, text, length);
    if (wrong)
        die("the result is not JSON: %s", wrong);
    page_end(output->file, NULL);
    free(text);
    output_close(output);
}

/* The last part of a path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Ends if the page would replace a result. */
static void refuse_input(const char *page, char *const *results)
{
    if (!strcmp(page, "-"))
        return;
    for (; *results; results++)
        if (strcmp(*results, "-") && is_same_file(page, *results))
            usage_error("-o %s: the page would replace the result %s", page, *results);
}

static void add_file(FILE *out, const char *path)
{
    size_t length;
    const char *text = strcmp(path, "-") ? read_file(path, &length) : read_standard_input(&length);
    if (!text)
        usage_error("cannot read %s: %s", path, errno == ENOENT ? path_error(path) : strerror(errno));
    const char *wrong = page_add(out, base_name(path), text, length);
    if (wrong)
        usage_error("%s is not a result: %s", path, wrong);
}

static int report_main(int argc, char **argv)
{
    const char *path = NULL;
    while (subcommand_option(&report_subcommand, argc, argv) != -1)
        path = optarg;
    if (optind == argc)
        usage_error("report needs results; see %s report --help", program_name);
    if (!path)
        usage_error("report needs -o FILE, the page that it writes");
    refuse_input(path, argv + optind);
    struct output output = output_open(path);
    page_begin(output.file, false);
    for (int i = optind; i < argc; i++)
        add_file(output.file, argv[i]);
    page_end(output.file, NULL);
    output_close(&output);
    return STATUS_GOOD;
}
