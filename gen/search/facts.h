/* facts.h: what expressions can name of a point: keys of its machine, counts, parameters, metrics of its runs.
 *
 * A number key of the topology is TABLE.COLUMN: COLUMN is its last name; TABLE is the nearest name above that is not
 * `attrs` or `components`, without `pe_`: gemm.rows, tcm.size_mb, noc.link_bw_gbs. Its value is in the key's unit. It is
 * "cube.noc.link_bw_gbs" as well, in double quotes. */
#ifndef GEN_SEARCH_FACTS_H
#define GEN_SEARCH_FACTS_H

#include "machine.h"
#include "value.h"
#include "workload.h"

enum fact_of { FACT_COUNT, FACT_KEY, FACT_PARAM, FACT_METRIC };

struct fact {
    enum fact_of of;
    const char *table;                                  /* NULL: a name without a table: "pes", "end_ps" */
    const char *column;
    const char *path;                                   /* another name, "cube.noc.link_bw_gbs", "params.tile_m"; NULL: none */
    const struct key *key;                              /* of a FACT_KEY */
    size_t index;                                       /* of a count, parameter or metric; of an entry of the key */
};

/* "gemm.rows" of "cube.pe_template.components.pe_gemm.attrs.rows". */
const char *fact_short_name(const char *path);

/* The name that an expression has for it: "pes", "gemm.rows". */
const char *fact_name(const struct fact *fact);

struct facts {
    struct fact *list;
    size_t count;
};

/* A metric of a workload, or of all workloads. */
struct metric_fact {
    const char *workload;                               /* NULL: of all */
    const char *name;
};

/* Lists the facts of a space's points. Metrics are given by the caller, in the order of facts_of_point.metrics. Reports
 * derived values, workloads and parameters whose names are taken. `workloads` NULL: without parameters. */
struct facts *facts_of(const struct space *space, const struct workloads *workloads, const struct metric_fact *metrics,
                       size_t metric_count);

struct facts_of_point {
    const struct machine *machine;
    const struct sql_value *params;                     /* of workload_values */
    const int64_t *metrics;                             /* NULL before the runs */
};

struct sql_value fact_value(const struct fact *fact, const struct facts_of_point *point);

#endif
