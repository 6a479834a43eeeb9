/* output_files.c: the files that `run` and `replay` write: result, trace, statistics, op log. */
#include "output_files.h"

#include <string.h>

#include "common/arena.h"
#include "common/fail.h"
#include "report/plan_dump.h"
#include "report/trace.h"
#include "report/usage.h"

static bool is_standard_output(const char *path)
{
    return path && !strcmp(path, "-");
}

bool output_files_option(struct output_files *files, int letter, const char *argument)
{
    switch (letter) {
    case 'j': files->json = argument; return true;
    case 't': files->trace = argument; return true;
    case 'A': files->trace_all = true; return true;
    case 'S': files->stats = argument; return true;
    case 'D':
        if (strcmp(argument, "plan"))
            usage_error("--dump %s: plan is needed", argument);
        files->plans = true;
        return true;
    default: return false;
    }
}

void output_files_check(const struct output_files *files)
{
    const char *const options[][2] = {
        {"json", files->json}, {"trace", files->trace}, {"stats", files->stats}, {"oplog", files->oplog},
        {"dump", files->plans ? "-" : NULL}};
    for (size_t i = 0; i < COUNT_OF(options); i++)
        for (size_t j = i + 1; j < COUNT_OF(options); j++) {
            const char *path = options[i][1], *other_path = options[j][1];
            if (path && other_path && !strcmp(path, other_path))
                usage_error("--%s and --%s cannot both go to %s", options[i][0], options[j][0],
                            is_standard_output(path) ? "standard output" : path);
        }
    if (files->trace_all && !files->trace && !files->oplog)
        usage_error("--trace-all says what is in the file of --trace or --oplog; neither is given");
}

void output_files_open(struct output_files *files)
{
    if (files->json)
        files->json_file = output_open(files->json);
    if (files->trace)
        trace_open(files->trace, files->trace_all);
    if (files->stats)
        usage_open(files->stats);
    observer_watch(&plan_observer, files->plans);
}

void output_files_close(struct output_files *files, uint64_t end_ps, void (*fill)(struct json *, void *), void *arg)
{
    trace_close();
    usage_close(end_ps);
    if (files->json)
        json_write_output(&files->json_file, fill, arg);
}

bool output_files_take_standard_output(const struct output_files *files)
{
    return files->plans || is_standard_output(files->json) || is_standard_output(files->trace)
           || is_standard_output(files->stats);
}
