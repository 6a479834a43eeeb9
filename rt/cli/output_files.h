/* output_files.h: the options of `run` and `replay` that name output files, and these files. */
#ifndef KB_OUTPUT_FILES_H
#define KB_OUTPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "report/result.h"

/* Rows of a list of struct cli_option, whose letters output_files_option understands. */
#define OUTPUT_OPTIONS                                                                                                 \
    {'j', "json", "FILE", "write the result as JSON; - is standard output"},                                           \
    {'t', "trace", "FILE", "write the trace events, one JSON object a line; - is standard output"},                    \
    {'A', "trace-all", NULL, "the trace and the op log also tell of nodes, links, memories and messages,\n"             \
                             "and name the host's request of each row"},                                               \
    {'S', "stats", "FILE", "write what each node, link, memory channel and engine served, was busy and waited\n"       \
                           "for, as JSON; - is standard output"},                                                      \
    {'D', "dump", "WHAT", "plan: print the tiles and stages of composites as JSON, a line each; composites\n"           \
                          "of one shape once"}

struct output_files {
    const char *json, *trace, *stats, *oplog;           /* paths; "-": standard output; NULL: not given */
    bool trace_all, plans;
    struct output json_file;
};

/* Takes an option with its argument. Returns false if the letter is not one of these. */
bool output_files_option(struct output_files *files, int letter, const char *argument);

/* A usage error if two options name one file. */
void output_files_check(const struct output_files *files);

/* Opens the files of json, trace and stats before the run, so that a path that cannot be written is reported at once. */
void output_files_open(struct output_files *files);

/* Ends trace and statistics at a time, and writes what `fill` says into the result. */
void output_files_close(struct output_files *files, uint64_t end_ps, void (*fill)(struct json *, void *), void *arg);

/* Whether one of them is standard output, which then has no place for a summary. */
bool output_files_take_standard_output(const struct output_files *files);

#endif
