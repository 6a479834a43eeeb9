/* bench.h: the benches and kernels of this binary, and the parameters of the bench that runs. */
#ifndef KB_BENCH_H
#define KB_BENCH_H

#include <stdio.h>

#include "base/json.h"
#include "kb/host.h"

/* The bench of a name; a wrong one is a usage error with the nearest. */
const struct kb_bench *bench_find(const char *name);

/* Takes NAME=VALUE arguments for a bench, and the defaults of all others; wrong ones are all reported, status 2. */
void bench_take(const struct kb_bench *bench, int count, char *const *arguments);

/* The bench that was taken, and the values of its parameters. */
extern const struct kb_bench *bench_current;
extern struct kb_value *bench_values;

/* Its parameters as a JSON object. */
void bench_write_params(struct json *json, const char *key);

/* `list`: all benches with their parameters, and all kernels. */
void bench_list(FILE *out);

/* Runs a bench's body, on the host's coroutine. */
void bench_run(const struct kb_bench *bench);

#endif
