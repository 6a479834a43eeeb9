/* space.h: a space file: machines and runs to search, as a product of finite axes.
 *
 * Requires nothing of the machine: names and values that only a topology or a simulator knows are checked by machine.h,
 * workload.h and expression.h. Paths of a space begin at the folder of its file. */
#ifndef GEN_SEARCH_SPACE_H
#define GEN_SEARCH_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "axis.h"

/* A run that each machine does: a bench, or a stream to replay. */
struct workload {
    const char *name;                                   /* of its metrics; by default that of the bench or of the stream's file */
    const char *bench;                                  /* NULL: a stream is replayed */
    const char *stream;                                 /* its path */
    uint64_t weight;                                    /* its share in sums over workloads */
    const struct node *params;                          /* a mapping; NULL: none are given */
    struct where where;
};

/* A text of the file: an expression, and the name of a derived value. */
struct expression_text {
    const char *name;                                   /* NULL: a condition */
    const char *text;
    struct where where, name_where;
};

struct objective {
    const char *name;
    bool largest;                                       /* max; else min */
    struct where where;
};

enum method_name {
#define METHOD(name, order, budget, doc) METHOD_##name,
#include "methods.def"
    METHODS
};

/* OPTION_nsga2_population ... */
enum method_option {
#define OPTION(method, name, kind, least, most, standard, doc) OPTION_##method##_##name,
#include "methods.def"
    METHOD_OPTIONS
};

extern const char *const method_names[METHODS];

/* Columns of methods.def. */
enum method_order { ORDER_BY_NUMBER, ORDER_BY_BATCHES, ORDER_ASKED };
enum method_budget { BUDGET_NONE, BUDGET_ANY, BUDGET_POINTS };
extern const enum method_order method_orders[METHODS];
extern const enum method_budget method_budgets[METHODS];

struct method_option_row {
    enum method_name method;
    const char *name;
    enum { OPTION_KIND_count, OPTION_KIND_real, OPTION_KIND_file, OPTION_KIND_axis } kind;
    double least, most, standard;
};
extern const struct method_option_row method_options[METHOD_OPTIONS];

struct method_choice {
    enum method_name name;
    struct where where;
    double number[METHOD_OPTIONS];                      /* by option; of an axis, its index */
    const char *file[METHOD_OPTIONS];
};

struct space {
    const struct source *source;                        /* the file */
    const char *topology;                               /* path */
    struct where topology_where;
    char **impls, **kernels;                            /* paths: files of the user's, as --impl and -k take them */
    size_t impl_count, kernel_count;
    struct workload *workloads;
    size_t workload_count;
    struct axis *axes;                                  /* in the order of the file */
    size_t axis_count;
    struct expression_text *derive, *conditions;        /* `where` */
    size_t derive_count, condition_count;
    struct objective *objectives;
    size_t objective_count;
    struct method_choice method;
    uint64_t budget_points;                             /* 0: no limit */
    double budget_hours;                                /* 0: no limit */
    uint64_t seed;                                      /* of the method */
    uint64_t size;                                      /* points of the product; SPACE_HUGE: more than that */
};
#define SPACE_HUGE (UINT64_C(1) << 63)

/* Reads a space file, "-" being standard input, and reports all its errors. `method` replaces the file's, as a value of
 * its key `method`; NULL: it stays. Returns NULL if the file is no mapping. A file that cannot be read is a usage
 * error. */
struct space *space_read(const char *path, const char *method);

/* Reports a method without the end that it needs; options of a command line may have given it one. */
void space_check_budget(const struct space *space);

#endif
