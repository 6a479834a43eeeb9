/* selection.c: stepwise selection of the constants that explain measured times: the one that explains most is added,
 * exchanged for a better one, or removed where it is needless. */
#include "selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"

enum { FOUND_MOST = 6, TRIED_MOST = 4 };

/* Margins of twice the logarithm of a likelihood ratio (Kass, Raftery, Bayes factors, 1995). */
static const double positive_evidence = 2, strong_evidence = 6;
static const double far_step_most = 1.6;                /* of a far probe: a longer step is an extrapolation of its slope */
static const double exchange_share = 0.9;               /* of the loss: a smaller gain does not tell one constant from another */

/* How much the loss falls if a constant is added, as one run with it changed says. */
static double gain_of(const struct fit *fit, const int64_t *now, const int64_t *there, struct column *columns, bool far)
{
    struct column *last = &columns[fit->count];
    bool changes = false;
    for (size_t i = 0; i < fit->observations.count; i++) {
        const struct observation *o = &fit->observations.at[i];
        last->slope[i] = fit_simulated_ps(o, there) - fit_simulated_ps(o, now);
        changes |= last->slope[i] != 0;
    }
    if (!changes)
        return -1;
    struct least_squares without = fit_linear_problem(fit, now, columns, fit->count);
    struct least_squares with = fit_linear_problem(fit, now, columns, fit->count + 1);
    double step[UNKNOWNS_MOST];
    least_squares_solve(&with, step);
    if (step[fit->count] <= 0 || (far && step[fit->count] > far_step_most))
        return 0;
    return least_squares_residual_sum(&without) - least_squares_residual_sum(&with);
}

struct candidate {
    unsigned constant;
    double gain;
};

/* Puts the last chosen constant where the loss is least, of some points up to 8 times as large and as small. */
static void scan_last(struct fit *fit, int64_t *scratch)
{
    struct constant *c = &fit->constants.at[fit->chosen[fit->count - 1]];
    double u = c->u, best_u = u, best = HUGE_VAL;
    for (int i = -12; i <= 12; i++) {
        c->u = fmax(u, c->unit) * exp2(i / 4.0);
        double there = fit_loss_at(fit, scratch);
        if (there < best) {
            best = there;
            best_u = c->u;
        }
    }
    c->u = best_u;
}

static int by_gain(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    return (x->constant > y->constant) - (x->constant < y->constant);
}

/* Lists the constants that would explain most of the residuals. */
static unsigned list_candidates(struct fit *fit, int64_t *now, struct candidate *list)
{
    static const double factors[] = {0.25, 0.8, 1.25, 4};
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    struct column *columns = fit_columns_new(fit, fit->count + 1);
    double loss_now = fit_loss(fit, now);
    unsigned count = 0;
    fit_columns_compute(fit, now, scratch, 0.02, columns);
    for (unsigned i = 0; i < fit->constants.count; i++) {
        struct constant *c = &fit->constants.at[i];
        double u = c->u;
        if (fit_has(fit, i) || c->key.dimension == DIMENSION_size || (c->is_rate && u == 0))
            continue;
        struct candidate candidate = {i, -1};
        unsigned all = fit->count;
        for (size_t f = 0; f < COUNT_OF(factors); f++) {
            c->u = u > 0 ? u * factors[f] : f ? c->unit * factors[f] : 0;
            fit->chosen[all] = i;
            if (fit_number(c, c->u) == fit_number(c, u) || !fit_run_with(fit, fit->chosen, all + 1, scratch))
                continue;
            double gain = gain_of(fit, now, scratch, columns, f == 0 || f == 3), fall = loss_now - fit_loss(fit, scratch);
            candidate.gain = fmax(candidate.gain, gain < 0 ? gain : fmax(gain, fall));
        }
        c->u = u;
        c->is_found = candidate.gain >= 0;
        if (candidate.gain > 0)
            list[count++] = candidate;
    }
    arena_release(mark);
    qsort(list, count, sizeof *list, by_gain);
    return count;
}

/* Twice the logarithm of the likelihood ratio that a further constant gains. */
static double gained(const struct fit *fit, double without, double with)
{
    return (double)fit->observations.count * log(fmax(without, 1e-9) / fmax(with, 1e-9));
}

/* Whether a loss is so much less than another one that a further constant is worth it: the Bayesian information criterion,
 * extended by the number of constants that there were to choose from (Chen, Chen, Biometrika 2008), by a margin. */
static bool is_worth_it(const struct fit *fit, double without, double with)
{
    double n = (double)fit->observations.count;
    return gained(fit, without, with) > log(n) + 2 * log((double)fit->constants.count) + strong_evidence;
}

/* Adds the best of the candidates. Returns false if none is worth it. */
static bool add_one(struct fit *fit, int64_t *now)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    struct candidate *list = arena_alloc(fit->constants.count + 1, sizeof *list);
    double start[UNKNOWNS_MOST], best_at[UNKNOWNS_MOST + 1], best = HUGE_VAL, without;
    unsigned winner = 0;
    fit_run_with(fit, fit->chosen, fit->count, now);
    without = fit_loss(fit, now);
    unsigned found = list_candidates(fit, now, list);
    fit_keep_constants(fit, start);
    fit->count++;
    for (unsigned i = 0; i < found && i < TRIED_MOST; i++) {
        struct constant *c = &fit->constants.at[list[i].constant];
        fit->chosen[fit->count - 1] = list[i].constant;
        scan_last(fit, scratch);
        double loss_with = fit_go_to_lattice(fit, now, fit_levenberg_marquardt(fit, now));
        if (loss_with < best) {
            best = loss_with;
            winner = list[i].constant;
            fit_keep_constants(fit, best_at);
        }
        c->u = c->start;
        fit->count--;
        fit_put_constants(fit, start);
        fit->count++;
    }
    /* Less is asked for than in the end: two constants may be worth it where each alone is not. */
    bool worth = best < HUGE_VAL && gained(fit, without, best) > log((double)fit->observations.count) + positive_evidence;
    fit->count -= !worth;
    if (worth) {
        fit->chosen[fit->count - 1] = winner;
        fit_put_constants(fit, best_at);
    }
    fit_run_with(fit, fit->chosen, fit->count, now);
    arena_release(mark);
    return worth;
}

/* Takes out constants that others have made needless. */
static void remove_needless(struct fit *fit, int64_t *now)
{
    for (unsigned j = 0; j < fit->count;) {
        double kept[UNKNOWNS_MOST], with = fit_loss(fit, now);
        unsigned out = fit->chosen[j], count = fit->count;
        struct constant *c = &fit->constants.at[out];
        fit_keep_constants(fit, kept);
        memmove(&fit->chosen[j], &fit->chosen[j + 1], (count - j - 1) * sizeof *fit->chosen);
        fit->count--;
        c->u = c->start;
        if (!is_worth_it(fit, fit_levenberg_marquardt(fit, now), with))
            continue;
        memmove(&fit->chosen[j + 1], &fit->chosen[j], (count - j - 1) * sizeof *fit->chosen);
        fit->chosen[j++] = out;
        fit->count++;
        fit_put_constants(fit, kept);
        fit_run_with(fit, fit->chosen, fit->count, now);
    }
}

static void move_to_last(struct fit *fit, unsigned j)
{
    unsigned moved = fit->chosen[j];
    fit->chosen[j] = fit->chosen[fit->count - 1];
    fit->chosen[fit->count - 1] = moved;
}

/* Puts the last chosen constant back where it was, and lists the constants that could take its place. */
static unsigned list_candidates_for_last(struct fit *fit, int64_t *now, struct candidate *list)
{
    struct constant *last = &fit->constants.at[fit->chosen[fit->count - 1]];
    fit->count--;
    last->u = last->start;
    fit_run_with(fit, fit->chosen, fit->count, now);
    unsigned found = list_candidates(fit, now, list);
    fit->count++;
    return found;
}

/* Notes for each constant which others would explain the times as well in its place. */
static void find_alternatives(struct fit *fit, int64_t *now)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    struct candidate *list = arena_alloc(fit->constants.count + 1, sizeof *list);
    double best = fit_loss(fit, now), kept[UNKNOWNS_MOST];
    unsigned chosen[UNKNOWNS_MOST];
    memcpy(chosen, fit->chosen, sizeof chosen);
    fit_keep_constants(fit, kept);
    for (unsigned j = 0; j < fit->count; j++) {
        struct constant *c = &fit->constants.at[chosen[j]];
        unsigned last = fit->count - 1;
        move_to_last(fit, j);
        unsigned found = list_candidates_for_last(fit, now, list);
        for (unsigned i = 0; i < found && i < 2 * TRIED_MOST; i++) {
            struct constant *other = &fit->constants.at[list[i].constant];
            if (other == c)
                continue;
            fit->chosen[last] = list[i].constant;
            scan_last(fit, scratch);
            if (!is_worth_it(fit, fit_levenberg_marquardt(fit, now), best)) {
                arena_keep_begin();
                c->alternatives = c->alternatives ? arena_printf("%s, %s", c->alternatives, other->key.path) : other->key.path;
                arena_keep_end();
            }
            other->u = other->start;
        }
        memcpy(fit->chosen, chosen, sizeof chosen);
        fit_put_constants(fit, kept);
    }
    arena_release(mark);
    fit_run_with(fit, fit->chosen, fit->count, now);
}

/* Exchanges constants for others that explain more. Returns whether it has. */
static bool exchange_one(struct fit *fit, int64_t *now)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    struct candidate *list = arena_alloc(fit->constants.count + 1, sizeof *list);
    bool exchanged = false;
    for (unsigned j = 0; j < fit->count && !exchanged; j++) {
        double best = fit_loss(fit, now), kept[UNKNOWNS_MOST];
        unsigned out = fit->chosen[j], last = fit->count - 1;
        struct constant *c = &fit->constants.at[out];
        move_to_last(fit, j);
        fit_keep_constants(fit, kept);
        unsigned found = list_candidates_for_last(fit, now, list);
        for (unsigned i = 0; i < found && i < TRIED_MOST && !exchanged; i++) {
            struct constant *other = &fit->constants.at[list[i].constant];
            if (other == c)
                continue;
            fit_put_constants(fit, kept);
            c->u = c->start;
            fit->chosen[last] = list[i].constant;
            scan_last(fit, scratch);
            exchanged = fit_go_to_lattice(fit, now, fit_levenberg_marquardt(fit, now)) < best * exchange_share;
            if (!exchanged)
                other->u = other->start;
        }
        if (!exchanged) {
            fit->chosen[last] = out;
            fit_put_constants(fit, kept);
            fit_run_with(fit, fit->chosen, fit->count, now);
        }
    }
    arena_release(mark);
    return exchanged;
}

/* Adds constants as long as one is worth it. */
static void add_all(struct fit *fit, int64_t *now)
{
    while (fit->count < FOUND_MOST && add_one(fit, now))
        for (unsigned i = 0; i < FOUND_MOST && exchange_one(fit, now); i++)
            continue;
}

void select_constants(struct fit *fit, int64_t *now)
{
    /* Those that the first scales find may be too many: only the scales of the noise tell. */
    fit_set_first_scales(fit);
    add_all(fit, now);
    if (fit->count)
        fit_from_several(fit, now);
    fit_set_scales(fit, now);
    add_all(fit, now);
    if (fit->count)
        fit_chosen(fit, now);
    remove_needless(fit, now);
    if (fit->count) {
        fit_chosen(fit, now);
        find_alternatives(fit, now);
    }
}
