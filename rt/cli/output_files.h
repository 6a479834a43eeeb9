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
    {'F', "command-log", "FILE", "write the commands with their fields and times as a firmware log, which `import` reads;\n" \
                                 "- is standard output"},                                                              \
    {'E', "timeline", "FILE",                                                                                          \
     "write what each part did when, as a trace for ui.perfetto.dev; FILE.gz is compressed"},                           \
    {'W', "waves", "FILE",                                                                                             \
     "write engines and links busy, queue depths and credits as a VCD file for\n"                                       \
     "GTKWave; FILE.gz is compressed"},                                                                                \
    {'B', "timeline-from", "T", "timeline and waves begin at this simulated time, such as 10 us"},                     \
    {'C', "timeline-to", "T", "and end at this one"},                                                                  \
    {'G', "timeline-pes", "GLOB", "show only PEs of these names, such as 'sip0.cube0.*', and what they cause"},        \
    {'N', "timeline-slices", "N", "a timeline has up to N slices (2000000)"},                                          \
    {'S', "stats", "FILE", "write what each node, link, memory channel and engine served, was busy and waited\n"       \
                           "for, as JSON; - is standard output"},                                                      \
    {'R', "report", "FILE", "write a page with pictures of the run, for a browser; the result of --json then has the\n" \
                            "figures of the pictures as well"},                                                        \
    {'Q', "probe-matrix", "A:B", "the result also has the transfers of all pairs of two kinds of ends, such as pe:hbm, each alone\n" \
                                 "in an idle machine; as `probe --matrix`"},                                            \
    {'Y', "why", NULL, "report why the run took that long: its critical path, by reason, resource and line"},                 \
    {'X', "why-launches", NULL, "--why, and the same path of each launch, from its submission to the last answer"},     \
    {'D', "dump", "WHAT: plan", "plan: print the tiles and stages of composites as JSON, a line each; composites\n"           \
                          "of one shape once"}

struct output_files {
    const char *json, *trace, *commands, *stats, *oplog, *timeline, *waves, *report;    /* paths; "-": standard output; NULL: not given */
    const char *pairs;                                  /* of --probe-matrix */
    bool trace_all, plans, windowed;                    /* windowed: an option says what timeline and waves show */
    struct output json_file, report_file;
};

/* Takes an option with its argument. Returns false if the letter is not one of these. */
bool output_files_option(struct output_files *files, int letter, const char *argument);

/* A usage error if two options name one file, or some do not fit together. */
void output_files_check(const struct output_files *files);

/* Simulates what --probe-matrix asks for, before the run: the machine is reset afterwards. */
void output_files_probe(const struct output_files *files);

/* Writes it into the open object of a result. */
void output_files_write_probes(struct json *json);

/* Opens the files before the run, except that of the op log, so that a path that cannot be written is reported at once.
 * `what` runs. */
void output_files_open(struct output_files *files, const char *what);

/* The option of one of the files that a sweep cannot write; NULL: none is given. */
const char *output_files_of_one_run(const struct output_files *files);

/* Ends trace, statistics, timeline and waves at a time, and writes what `fill` says into the result. After why_end. */
void output_files_close(struct output_files *files, uint64_t end_ps, void (*fill)(struct json *, void *), void *arg);

/* Whether one of them is standard output, which then has no place for a summary. */
bool output_files_take_standard_output(const struct output_files *files);

#endif
