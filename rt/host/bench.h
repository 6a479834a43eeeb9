/* bench.h: the benches and kernels that are linked into this binary, and the parameters of the bench that runs. */
#ifndef KB_BENCH_H
#define KB_BENCH_H

#include <stdio.h>

#include "common/json.h"
#include "kb/host.h"

/* All benches, by name. Returns how many there are. */
size_t bench_all(const struct kb_bench ***all);

/* What shows the benches, for messages; NULL: the subcommand list. */
extern const char *bench_list_name;

/* Finds a bench by name; an unknown name is a usage error, which suggests the nearest one. */
const struct kb_bench *bench_find(const char *name);

/* Finds a kernel by name; NULL: there is none. */
const struct kb_kernel *kernel_find(const char *name);

/* Selects a bench, with the values of NAME=VALUE arguments and the defaults of the other parameters. Reports all wrong
 * arguments, and ends with status 2 if there is one. */
void bench_select(const struct kb_bench *bench, int count, char *const *arguments);

/* The selected bench, and the values of its parameters, in their order. */
extern const struct kb_bench *bench_current;
extern struct kb_value *bench_values;

/* Writes its parameters as a JSON object. */
void bench_write_params(struct json *json, const char *key);

/* Writes those that count as another value than was given, as a JSON object; nothing if there are none. */
void bench_write_used(struct json *json, const char *key);

/* Forgets which those are. */
void bench_used_reset(void);

/* Prints all benches with their parameters, and all kernels. */
void bench_list(FILE *out);

/* Writes the benches with their parameters, and the kernels, into an open object; as a JSON object. */
void bench_list_write(struct json *json);
void bench_list_json(FILE *out);

#endif
