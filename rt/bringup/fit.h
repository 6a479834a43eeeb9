/* fit.h: which constants of the machine explain measured times: least squares over runs with other numbers. */
#ifndef KB_FIT_H
#define KB_FIT_H

#include "command_times.h"
#include "common/array.h"
#include "common/renumber.h"
#include "least_squares.h"

/* Simulates on a machine with these numbers (NULL: those of the command line), and adds the times of its commands. Returns
 * false if the run did not end well. */
typedef bool fit_run(const struct numbers *numbers, struct command_list *times);

/* A difference of two times. An event is 2 * command for its issue, 2 * command + 1 for its end. */
struct observation {
    uint32_t event, from;
    bool is_gap;
    double measured_ps, scale_ps;
};

struct constant {
    struct better_key key;
    bool is_rate;
    double unit;                                        /* of u, for steps where u is 0 */
    double u, start;                                    /* start: as the topology has it */
    double error;                                       /* standard error of the number */
    bool is_found;                                      /* the run depends on it */
    bool is_undetermined;
    const char *plateau;                                /* which numbers around it give the same times, or NULL */
    const char *collinear_with;                         /* the constant that it cannot be told from, or NULL */
    const char *alternatives;                           /* constants that explain the times as well, or NULL */
};

struct fit {
    fit_run *run;
    const struct command_list *simulated;
    struct ARRAY(struct observation) observations;
    struct ARRAY(struct constant) constants;            /* all that may be fitted */
    unsigned chosen[UNKNOWNS_MOST], count;              /* those that are */
    uint64_t runs;
    double before_ps, after_ps;                         /* mean absolute residuals */
    bool is_automatic;
    struct command_list times;                          /* of the last run */
};

/* Fits constants so that simulated times become those of `measured`. `simulated` are those of the machine as it is. Without
 * `keys` it finds them: constants that the run depends on and that explain the measured times. Returns NULL if nothing that
 * was measured can be compared. A key that is no number of the topology is a usage error. */
const struct fit *fit_constants(fit_run *run, const struct command_list *simulated, const struct command_list *measured,
                                const char *const *keys, size_t count);

/* The number of a constant that u stands for. */
double fit_number(const struct constant *c, double u);

/* ---- parts of the fit, for selection.c. `events` are times of all events of a run, from fit_events_new: of a command,
 * that of its issue and that of its end. */

/* The slopes of all observations over one constant. */
struct column {
    unsigned constant;
    double scale;                                       /* a step of 1 of the linear problem is this in u */
    double *slope;                                      /* in ps per step */
};

int64_t *fit_events_new(const struct fit *fit);
struct column *fit_columns_new(const struct fit *fit, unsigned count);

/* Whether a constant is a chosen one. */
bool fit_has(const struct fit *fit, unsigned constant);

/* Read and set u of the chosen constants. */
void fit_keep_constants(const struct fit *fit, double *kept);
void fit_put_constants(struct fit *fit, const double *kept);

/* Runs the machine with these constants. Returns false if it cannot, or its commands are others. */
bool fit_run_with(struct fit *fit, const unsigned *chosen, unsigned count, int64_t *events);

double fit_simulated_ps(const struct observation *o, const int64_t *events);
double fit_loss(const struct fit *fit, const int64_t *events);

/* The loss of the machine with the chosen constants, HUGE_VAL if it cannot run. */
double fit_loss_at(struct fit *fit, int64_t *events);

void fit_set_first_scales(struct fit *fit);
void fit_set_scales(struct fit *fit, const int64_t *events);

/* Computes the columns of the chosen constants, by steps of a share of each. */
void fit_columns_compute(struct fit *fit, const int64_t *now, int64_t *scratch, double share, struct column *columns);

/* The linear problem: what a step of each constant changes in the residuals. */
struct least_squares fit_linear_problem(const struct fit *fit, const int64_t *now, const struct column *columns, unsigned count);

/* Fit the chosen constants and return the loss; `now` are the events there. The first begins where they are; the second
 * also at points around, if much is left; the third tries the neighbours of small whole numbers, from the loss `best`; the
 * last does all of it, with scales. */
double fit_levenberg_marquardt(struct fit *fit, int64_t *now);
double fit_from_several(struct fit *fit, int64_t *now);
double fit_go_to_lattice(struct fit *fit, int64_t *now, double best);
double fit_chosen(struct fit *fit, int64_t *now);

#endif
