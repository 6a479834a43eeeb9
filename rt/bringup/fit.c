/* fit.c: nonlinear least squares by the method of Levenberg and Marquardt.
 *
 * What is fitted are differences of two times of one PE: how long a command took, and how long after the event before it
 * the command was issued. The Jacobian is numerical, one run for each constant.
 *
 * A constant x enters as u = x if less of it is better, such as a time, else as u = 1 / x, such as a bandwidth: times are
 * then piecewise linear in u. Where another part of the machine becomes the bottleneck, the slope changes; so a fit also
 * begins at constants several times as large or small.
 *
 * Errors of measured times are not known. After a first fit, each residual is scaled by the median absolute residual of
 * observations of similar length. Residuals over 2.5 scales count linearly (Huber's loss), so that single outliers matter
 * little. Then the fit is repeated. */
#include "fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "selection.h"
#include "session/numbers.h"

enum { ITERATIONS_MOST = 40, NEIGHBOURS = 15, LATTICE_MOST = 4096, STARTS = 5, PLATEAU_MOST = 200,
       HALTON_POINTS = 24 };                            /* points for each constant */

static const double huber = 2.5;                        /* scales */
static const double first_scale = 0.05;                 /* of a measured time, in the first fit */
static const double least_scale_ps = 1;
static const double good_loss = 0.05;                   /* of an observation: no other start will make it much less */
static const double deviation_of_median = 1.4826;       /* normal noise: standard deviation over median absolute value */
static const double much_less = 0.9;                    /* of a loss: less than that is worth starting there */
static const double rounding = 1e-12;                   /* of a loss: sums of equal times in another order differ by less */
static const double damping_of_errors = 1e-12;          /* too small to matter, unless columns are all but parallel */
static const double collinear_cosine = 0.995;           /* the variance is 100 times that of one constant alone: 1 / (1 - cos^2) */
static const double variance_inflation_most = 1e4;      /* a standard error 100 times that of one constant alone */

/* ---- constants as numbers */

double fit_number(const struct constant *c, double u)
{
    double x = c->is_rate ? u > 0 ? 1 / u : 0 : u;
    if (c->is_rate && x == 0 && c->key.unlimited)
        return 0;                                       /* no limit */
    x = fmin(fmax(x, c->key.least), c->key.most);
    return c->key.whole ? floor(x + 0.5) : x;
}

static double u_of_number(const struct constant *c, double x)
{
    return !c->is_rate ? x : x > 0 ? 1 / x : 0;
}

/* What --set takes, exactly. */
static const char *set_text(const struct constant *c, double x)
{
    if (c->is_rate && x == 0)
        return "~";
    const char *number = arena_printf(c->key.whole ? "%.0f" : "%.12g", x);
    return c->key.base ? arena_printf("%s %s", number, c->key.base->name) : number;
}

bool fit_has(const struct fit *fit, unsigned constant)
{
    for (unsigned j = 0; j < fit->count; j++)
        if (fit->chosen[j] == constant)
            return true;
    return false;
}

/* ---- runs */

static void ignore(const char *text, void *arg)
{
    (void)text;
    (void)arg;
}

/* The numbers of the machine with the chosen constants, and `more` of them, as they are. NULL: it cannot have them. */
static const struct numbers *numbers_with(const struct fit *fit, const unsigned *chosen, unsigned count)
{
    const struct node *keys = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct constant *c = &fit->constants.at[chosen[i]];
        keys = renumber_both(keys, renumber_option(arena_printf("%s=%s", c->key.path, set_text(c, fit_number(c, c->u)))));
    }
    const struct numbers *numbers = numbers_of_keys(keys);
    if (!numbers)
        errors_forget();
    return numbers;
}

/* Runs the machine with these constants. Returns false if it cannot, or its commands are others. */
bool fit_run_with(struct fit *fit, const unsigned *chosen, unsigned count, int64_t *events)
{
    struct arena_mark mark = arena_mark();
    message_set_take(ignore, NULL);
    const struct numbers *numbers = numbers_with(fit, chosen, count);
    fit->times.count = 0;
    bool good = numbers && fit->run(numbers, &fit->times) && fit->times.count == fit->simulated->count;
    message_set_take(NULL, NULL);
    fit->runs++;
    for (size_t i = 0; good && i < fit->times.count; i++) {
        const struct command_times *t = &fit->times.at[i], *was = &fit->simulated->at[i];
        good = t->pe == was->pe && t->launch == was->launch && t->number == was->number && t->has_took == was->has_took;
        events[2 * i] = t->start_ps;
        events[2 * i + 1] = command_done_ps(t);
    }
    arena_release(mark);
    if (progress_is_due())
        progress_show(arena_printf("fit: %" PRIu64 " runs", fit->runs));
    return good;
}

int64_t *fit_events_new(const struct fit *fit)
{
    return arena_alloc(2 * fit->simulated->count, sizeof(int64_t));
}

double fit_simulated_ps(const struct observation *o, const int64_t *events)
{
    return (double)(events[o->event] - events[o->from]);
}

/* In the scale of the observation. */
static double residual(const struct observation *o, const int64_t *events)
{
    return (fit_simulated_ps(o, events) - o->measured_ps) / o->scale_ps;
}

static double huber_weight(double r)
{
    return fabs(r) <= huber ? 1 : huber / fabs(r);
}

double fit_loss(const struct fit *fit, const int64_t *events)
{
    double sum = 0;
    for (size_t i = 0; i < fit->observations.count; i++) {
        double r = fabs(residual(&fit->observations.at[i], events));
        sum += r <= huber ? r * r : huber * (2 * r - huber);
    }
    return sum;
}

/* The loss of the machine with the chosen constants, HUGE_VAL if it cannot run; `events` are those of its run. */
double fit_loss_at(struct fit *fit, int64_t *events)
{
    return fit_run_with(fit, fit->chosen, fit->count, events) ? fit_loss(fit, events) : HUGE_VAL;
}

static double mean_absolute_residual_ps(const struct fit *fit, const int64_t *events)
{
    double sum = 0;
    for (size_t i = 0; i < fit->observations.count; i++) {
        const struct observation *o = &fit->observations.at[i];
        sum += fabs(fit_simulated_ps(o, events) - o->measured_ps);
    }
    return sum / (double)fit->observations.count;
}

/* ---- scales */

struct scaled {
    struct observation *observation;
    double length_ps;                                   /* simulated: that of commands that are alike is the same */
    double residual_ps;                                 /* absolute */
};

static int by_length(const void *a, const void *b)
{
    const struct scaled *x = a, *y = b;
    if (x->observation->is_gap != y->observation->is_gap)
        return x->observation->is_gap - y->observation->is_gap;
    return (x->length_ps > y->length_ps) - (x->length_ps < y->length_ps);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median residual from `first` to before `end`, widened to at least 2 * NEIGHBOURS + 1 of one kind, as long as there
 * are any. `values` has room for them. */
static double median_near(const struct scaled *sorted, size_t count, size_t first, size_t end, double *values)
{
    const bool is_gap = sorted[first].observation->is_gap;
    size_t wanted = end - first, middle = first + wanted / 2;
    if (wanted < 2 * NEIGHBOURS + 1) {
        while (first > 0 && middle - first < NEIGHBOURS && sorted[first - 1].observation->is_gap == is_gap)
            first--;
        while (end < count && end - first < 2 * NEIGHBOURS + 1 && sorted[end].observation->is_gap == is_gap)
            end++;
        while (first > 0 && end - first < 2 * NEIGHBOURS + 1 && sorted[first - 1].observation->is_gap == is_gap)
            first--;
    }
    size_t found = end - first;
    for (size_t i = 0; i < found; i++)
        values[i] = sorted[first + i].residual_ps;
    qsort(values, found, sizeof *values, by_value);
    return found % 2 ? values[found / 2] : (values[found / 2 - 1] + values[found / 2]) / 2;
}

/* Sets the scales of observations with a residual, sorted: all of equal length have one. */
static void scale_groups(struct scaled *sorted, size_t count)
{
    double *values = arena_alloc(count + 1, sizeof *values);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && by_length(&sorted[first], &sorted[end]) == 0;)
            end++;
        double scale_ps = fmax(deviation_of_median * median_near(sorted, count, first, end, values), least_scale_ps);
        for (size_t i = first; i < end; i++)
            sorted[i].observation->scale_ps = scale_ps;
    }
}

/* Each residual is scaled by the median absolute residual of observations of its kind and of similar simulated length.
 * Residuals of 0 do not count for it: a stream that was made of the log has its gaps. Such observations get the scale of
 * the next shorter one that has a residual. */
void fit_set_scales(struct fit *fit, const int64_t *events)
{
    struct arena_mark mark = arena_mark();
    size_t count = fit->observations.count, with_residual = 0;
    struct scaled *all = arena_alloc(count + 1, sizeof *all), *sorted = arena_alloc(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        struct observation *o = &fit->observations.at[i];
        double length_ps = fit_simulated_ps(o, events);
        all[i] = (struct scaled){o, length_ps, fabs(length_ps - o->measured_ps)};
    }
    qsort(all, count, sizeof *all, by_length);
    for (size_t i = 0; i < count; i++)
        if (all[i].residual_ps > 0)
            sorted[with_residual++] = all[i];
    scale_groups(sorted, with_residual);
    for (size_t i = 0, behind = 0; i < count; i++) {
        if (all[i].residual_ps > 0) {
            behind++;
            continue;
        }
        const struct scaled *near = behind > 0 ? &sorted[behind - 1] : sorted;
        if (behind < with_residual && near->observation->is_gap != all[i].observation->is_gap)
            near = &sorted[behind];
        bool has_near = with_residual > 0 && near->observation->is_gap == all[i].observation->is_gap;
        all[i].observation->scale_ps = has_near ? near->observation->scale_ps : least_scale_ps;
    }
    arena_release(mark);
}

void fit_set_first_scales(struct fit *fit)
{
    double sum = 0;
    size_t count = fit->observations.count;
    for (size_t i = 0; i < count; i++)
        sum += fit->observations.at[i].measured_ps;
    for (size_t i = 0; i < count; i++) {
        struct observation *o = &fit->observations.at[i];
        o->scale_ps = fmax(first_scale * fmax(o->measured_ps, sum / (double)count / 20), least_scale_ps);
    }
}

/* ---- the method of Levenberg and Marquardt */

static double step_scale(const struct constant *c)
{
    return fmax(fabs(c->u), c->unit);
}

/* Computes the slopes by a run with a step of a share of the constant; the other way if it cannot go this way. They are 0
 * if it cannot go either way. */
static void column_compute(struct fit *fit, const int64_t *now, int64_t *scratch, double share, struct column *column)
{
    struct constant *c = &fit->constants.at[column->constant];
    double u = c->u, x = fit_number(c, u), from = u_of_number(c, x);
    column->scale = step_scale(c);
    for (int way = 0; way < 2; way++, share = -share) {
        c->u = fmax(u + share * column->scale, 0);
        double to = u_of_number(c, fit_number(c, c->u));
        if (c->key.whole && to == from) {               /* at least the next number */
            double next = x + ((share > 0) == !c->is_rate ? 1 : -1);
            c->u = next > 0 || !c->is_rate ? u_of_number(c, fmax(next, 0)) : u;
            to = u_of_number(c, fit_number(c, c->u));
        }
        bool good = to != from && fit_run_with(fit, fit->chosen, fit->count, scratch);
        c->u = u;
        if (!good)
            continue;
        for (size_t i = 0; i < fit->observations.count; i++) {
            const struct observation *o = &fit->observations.at[i];
            column->slope[i] = (fit_simulated_ps(o, scratch) - fit_simulated_ps(o, now)) / (to - from) * column->scale;
        }
        return;
    }
    memset(column->slope, 0, fit->observations.count * sizeof *column->slope);
}

/* Sums up the linear problem: what a step of each constant changes in the residuals. */
struct least_squares fit_linear_problem(const struct fit *fit, const int64_t *now, const struct column *columns, unsigned count)
{
    struct least_squares squares;
    least_squares_begin(&squares, count);
    for (size_t i = 0; i < fit->observations.count; i++) {
        double row[UNKNOWNS_MOST], r = residual(&fit->observations.at[i], now), root = sqrt(huber_weight(r));
        for (unsigned j = 0; j < count; j++)
            row[j] = root * columns[j].slope[i] / fit->observations.at[i].scale_ps;
        least_squares_add(&squares, row, -root * r);
    }
    return squares;
}

/* The same with steps that cost something: the smaller the larger `damping` is. */
static struct least_squares damped(struct least_squares squares, double damping)
{
    double norms[UNKNOWNS_MOST];
    for (unsigned i = 0; i < squares.unknowns; i++)
        norms[i] = sqrt(least_squares_column(&squares, i));
    for (unsigned i = 0; i < squares.unknowns; i++) {
        double row[UNKNOWNS_MOST] = {0};
        row[i] = sqrt(damping) * norms[i];
        least_squares_add(&squares, row, 0);
    }
    return squares;
}

void fit_columns_compute(struct fit *fit, const int64_t *now, int64_t *scratch, double share, struct column *columns)
{
    for (unsigned j = 0; j < fit->count; j++)
        columns[j].constant = fit->chosen[j];
    for (unsigned j = 0; j < fit->count; j++)
        column_compute(fit, now, scratch, share, &columns[j]);
}

struct column *fit_columns_new(const struct fit *fit, unsigned count)
{
    struct column *columns = arena_alloc(count + 1, sizeof *columns);
    for (unsigned j = 0; j < count; j++)
        columns[j].slope = arena_alloc(fit->observations.count, sizeof(double));
    return columns;
}

/* Tries a step of the constants. Returns whether it is better; else they are as before. */
static bool try_step(struct fit *fit, const struct column *columns, const double *step, int64_t **now, int64_t **scratch,
                     double *best)
{
    double before[UNKNOWNS_MOST];
    for (unsigned j = 0; j < fit->count; j++) {
        struct constant *c = &fit->constants.at[fit->chosen[j]];
        before[j] = c->u;
        /* A step through 0 is one into the unknown: it ends before. */
        c->u = fmax(c->u + step[j] * columns[j].scale, c->u / 10);
        c->u = fmin(c->u, fmax(before[j], c->unit) * 10);
        c->u = u_of_number(c, fmin(fmax(c->is_rate && c->u <= 0 ? c->key.most : c->is_rate ? 1 / c->u : c->u, c->key.least), c->key.most));
    }
    double there = fit_loss_at(fit, *scratch);
    if (there < *best) {
        int64_t *old = *now;
        *best = there;
        *now = *scratch;
        *scratch = old;
        return true;
    }
    for (unsigned j = 0; j < fit->count; j++)
        fit->constants.at[fit->chosen[j]].u = before[j];
    return false;
}

/* Fits the chosen constants from where they are. Returns the loss; `now` are the events there. */
double fit_levenberg_marquardt(struct fit *fit, int64_t *now)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit), *given = now;
    struct column *columns = fit_columns_new(fit, fit->count);
    double best = fit_loss_at(fit, now), damping = 1e-4;
    static const double shares[] = {0.1, -0.1, 0.05, -0.05, 0.02, -0.02};       /* steps of slopes */
    unsigned failed = 0;
    for (unsigned iteration = 0; best < HUGE_VAL && fit->count && iteration < ITERATIONS_MOST && failed < 2; iteration++) {
        double share = shares[iteration < COUNT_OF(shares) ? iteration : COUNT_OF(shares) - 1 - iteration % 2], before = best, step[UNKNOWNS_MOST];
        fit_columns_compute(fit, now, scratch, share, columns);
        struct least_squares squares = fit_linear_problem(fit, now, columns, fit->count);
        bool better = false;
        for (unsigned tries = 0; tries < 6 && !better; tries++) {
            struct least_squares with_damping = damped(squares, damping);
            least_squares_solve(&with_damping, step);
            better = try_step(fit, columns, step, &now, &scratch, &best);
            damping = better ? fmax(damping / 10, 1e-9) : fmin(damping * 10, 1e6);
        }
        failed = (better && before - best > 1e-5 * before) || iteration + 2 < COUNT_OF(shares) ? 0 : failed + 1;
    }
    if (now != given)                                   /* the caller's memory outlives this call */
        memcpy(given, now, 2 * fit->simulated->count * sizeof *given);
    arena_release(mark);
    return best;
}

/* ---- other starts */

void fit_keep_constants(const struct fit *fit, double *kept)
{
    for (unsigned j = 0; j < fit->count; j++)
        kept[j] = fit->constants.at[fit->chosen[j]].u;
}

void fit_put_constants(struct fit *fit, const double *kept)
{
    for (unsigned j = 0; j < fit->count; j++)
        fit->constants.at[fit->chosen[j]].u = kept[j];
}

/* Goes to the best of the points where one constant is several times as large or small. Returns whether one is better. */
static bool coarse_search(struct fit *fit, int64_t *scratch, double *best)
{
    static const double factors[] = {0.125, 0.25, 0.5, 2, 4, 8};
    unsigned moved = UNKNOWNS_MOST;
    double best_u = 0, limit = *best * much_less;
    for (unsigned j = 0; j < fit->count; j++) {
        struct constant *c = &fit->constants.at[fit->chosen[j]];
        double u = c->u;
        for (size_t i = 0; i < COUNT_OF(factors); i++) {
            c->u = fmax(u, c->unit) * factors[i];
            double there = fit_loss_at(fit, scratch);
            if (there < limit) {
                limit = there;
                moved = j;
                best_u = c->u;
            }
        }
        c->u = u;
    }
    if (moved == UNKNOWNS_MOST)
        return false;
    fit->constants.at[fit->chosen[moved]].u = best_u;
    *best = limit;
    return true;
}

/* A number from 0 to 1 of the sequence of Halton: those of several bases fill a space evenly. */
static double halton(unsigned index, unsigned base)
{
    double sum = 0, share = 1;
    for (; index; index /= base) {
        share /= base;
        sum += share * (index % base);
    }
    return sum;
}

/* Where a fit may begin. */
struct start {
    double loss, u[UNKNOWNS_MOST];
};

static void keep_start(struct start *starts, const struct fit *fit, double loss)
{
    unsigned at = STARTS - 1;
    if (loss >= starts[at].loss)
        return;
    for (; at > 0 && starts[at - 1].loss > loss; at--)
        starts[at] = starts[at - 1];
    starts[at].loss = loss;
    fit_keep_constants(fit, starts[at].u);
}

/* Tries points around the constants, up to 2^octaves times as large and as small, and keeps the best. */
static void halton_starts(struct fit *fit, int64_t *scratch, double octaves, struct start *starts)
{
    static const unsigned bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89};
    double center[UNKNOWNS_MOST];
    fit_keep_constants(fit, center);
    for (unsigned i = 1; i <= HALTON_POINTS * fit->count; i++) {
        for (unsigned j = 0; j < fit->count; j++) {
            struct constant *c = &fit->constants.at[fit->chosen[j]];
            c->u = fmax(center[j], c->unit) * exp2(octaves * (2 * halton(i, bases[j]) - 1));
        }
        keep_start(starts, fit, fit_loss_at(fit, scratch));
    }
    fit_put_constants(fit, center);
}

/* Fits from each start, and keeps the best end. */
static void fit_from(struct fit *fit, int64_t *now, int64_t *scratch, const struct start *starts, bool coarse, struct start *end)
{
    for (unsigned i = 0; i < STARTS && starts[i].loss < HUGE_VAL; i++) {
        double at = starts[i].loss;
        fit_put_constants(fit, starts[i].u);
        for (unsigned j = 0; coarse && j < 2 * fit->count && coarse_search(fit, scratch, &at); j++)
            continue;
        double there = fit_levenberg_marquardt(fit, now);
        if (there < end->loss) {
            end->loss = there;
            fit_keep_constants(fit, end->u);
        }
    }
    fit_put_constants(fit, end->u);
}

/* Fits the chosen constants from where they are and, as long as that leaves much, from points around the best end. */
double fit_from_several(struct fit *fit, int64_t *now)
{
    static const double octaves[] = {0, 3, 1, 0.3};
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    struct start end = {HUGE_VAL, {0}};
    fit_keep_constants(fit, end.u);
    for (size_t round = 0; round < COUNT_OF(octaves) && end.loss > good_loss * (double)fit->observations.count; round++) {
        struct start starts[STARTS];
        for (unsigned i = 0; i < STARTS; i++)
            starts[i].loss = HUGE_VAL;
        if (round == 0)
            keep_start(starts, fit, 0);
        else
            halton_starts(fit, scratch, octaves[round], starts);
        fit_from(fit, now, scratch, starts, round == 1, &end);
    }
    double best = fit_loss_at(fit, now);
    arena_release(mark);
    return best;
}

static bool is_lattice(const struct constant *c)
{
    return c->key.whole && !c->key.base && fit_number(c, c->u) <= LATTICE_MOST;
}

/* Small whole numbers have no slope: their neighbours are tried. */
double fit_go_to_lattice(struct fit *fit, int64_t *now, double best)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    bool better = true;
    for (unsigned round = 0; better && round < ITERATIONS_MOST; round++) {
        better = false;
        for (unsigned j = 0; j < fit->count; j++) {
            struct constant *c = &fit->constants.at[fit->chosen[j]];
            double u = c->u, x = fit_number(c, u);
            if (!is_lattice(c))
                continue;
            for (int by = -2; by <= 2; by++) {
                if (by == 0 || x + by < c->key.least || (c->is_rate && x + by <= 0))
                    continue;
                double kept = c->u;
                c->u = u_of_number(c, x + by);
                double there = fit_loss_at(fit, scratch);
                if (there < best * (1 - 1e-9)) {
                    best = there;
                    better = true;
                    memcpy(now, scratch, 2 * fit->simulated->count * sizeof *now);
                } else {
                    c->u = kept;
                }
            }
        }
    }
    arena_release(mark);
    return best;
}

static unsigned trailing_zeros(double x)
{
    return x >= 1 && x < 0x1p63 ? (unsigned)__builtin_ctzll((uint64_t)x) : 0;
}

/* Whether the loss is the same with a lattice constant at x. */
static bool is_as_good(struct fit *fit, struct constant *c, double x, double best, int64_t *scratch)
{
    double u = c->u;
    if (x < c->key.least || x > c->key.most || (c->is_rate && x <= 0))
        return false;
    c->u = u_of_number(c, x);
    bool good = fit_run_with(fit, fit->chosen, fit->count, scratch) && fit_loss(fit, scratch) <= best * (1 + rounding);
    c->u = u;
    return good;
}

/* Of the numbers around a small whole one that explain the times as well, takes the roundest in base 2. */
static void take_roundest(struct fit *fit, struct constant *c, double best)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    double x = fit_number(c, c->u), low = x, high = x, round = x;
    while (x - low < PLATEAU_MOST && is_as_good(fit, c, low - 1, best, scratch))
        low--;
    while (high - x < PLATEAU_MOST && is_as_good(fit, c, high + 1, best, scratch))
        high++;
    for (double other = low; other <= high; other++)
        if (trailing_zeros(other) > trailing_zeros(round))
            round = other;
    c->u = u_of_number(c, round);
    if (high > low) {
        arena_keep_begin();
        c->plateau = arena_printf("from %.0f to %.0f the times are the same", low, high);
        arena_keep_end();
    }
    arena_release(mark);
}

/* Fits the chosen constants, and then again with the scales that the first fit has found. Returns the loss. */
double fit_chosen(struct fit *fit, int64_t *now)
{
    fit_set_first_scales(fit);
    double best = fit_from_several(fit, now);
    best = fit_go_to_lattice(fit, now, best);
    for (unsigned round = 0; round < 3 && best < HUGE_VAL; round++) {
        fit_set_scales(fit, now);
        best = fit_levenberg_marquardt(fit, now);
        best = fit_go_to_lattice(fit, now, best);
    }
    return best;
}

static void settle_lattice(struct fit *fit, int64_t *now)
{
    for (unsigned j = 0; j < fit->count; j++)
        if (is_lattice(&fit->constants.at[fit->chosen[j]]))
            take_roundest(fit, &fit->constants.at[fit->chosen[j]], fit_loss(fit, now));
}

/* ---- what the data determine */

/* Whether no observation changes. */
static bool is_flat(const struct fit *fit, const struct column *column)
{
    for (size_t i = 0; i < fit->observations.count; i++)
        if (column->slope[i] != 0)
            return false;
    return true;
}

/* Computes slopes of both sides, and keeps for each observation the flatter one: where the order of events changes, times
 * jump, which is no slope. A constant so small that its steps are below a ps gets larger ones. */
static void flat_columns_compute(struct fit *fit, const int64_t *now, int64_t *scratch, struct column *columns)
{
    struct column *others = fit_columns_new(fit, fit->count);
    for (unsigned j = 0; j < fit->count; j++) {
        columns[j].constant = others[j].constant = fit->chosen[j];
        for (double share = 0.02; share < 1; share *= 5) {
            column_compute(fit, now, scratch, share, &columns[j]);
            column_compute(fit, now, scratch, -share, &others[j]);
            for (size_t i = 0; i < fit->observations.count; i++) {
                double a = columns[j].slope[i], b = others[j].slope[i];
                columns[j].slope[i] = a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b;
            }
            if (!is_flat(fit, &columns[j]))
                break;
        }
    }
}

/* The observations with a residual. */
static size_t residuals_count(const struct fit *fit, const int64_t *events)
{
    size_t count = 0;
    for (size_t i = 0; i < fit->observations.count; i++)
        count += residual(&fit->observations.at[i], events) != 0;
    return count;
}

/* Sets the standard error of each chosen constant, and names the constants that explain the same times as another one. A
 * constant on which no time depends becomes that of the topology. */
static void set_errors(struct fit *fit, int64_t *now)
{
    struct arena_mark mark = arena_mark();
    int64_t *scratch = fit_events_new(fit);
    struct column *columns = fit_columns_new(fit, fit->count);
    double variances[UNKNOWNS_MOST];
    unsigned count = 0;
    flat_columns_compute(fit, now, scratch, columns);
    for (unsigned j = 0; j < fit->count; j++) {
        struct constant *c = &fit->constants.at[fit->chosen[j]];
        c->is_found = !is_flat(fit, &columns[j]);
        c->is_undetermined = !c->is_found;
        if (c->is_found)
            columns[count++] = columns[j];
        else if (!c->plateau)
            c->u = c->start;
        c->error = HUGE_VAL;
    }
    struct least_squares exact = fit_linear_problem(fit, now, columns, count), squares = damped(exact, damping_of_errors);
    least_squares_variances(&squares, variances);
    double freedom = (double)residuals_count(fit, now) - count, residual_variance = fit_loss(fit, now) / fmax(freedom, 1);
    for (unsigned j = 0; j < count; j++) {
        struct constant *c = &fit->constants.at[columns[j].constant];
        double u = fmax(c->u, c->unit), x = fit_number(c, c->u), error = sqrt(residual_variance * variances[j]) * columns[j].scale;
        c->error = c->is_rate && x > 0 ? error * x * x : error;
        c->is_undetermined = c->plateau || !(error < 0.5 * u) || !(variances[j] * least_squares_column(&exact, j) < variance_inflation_most);
        for (unsigned k = 0; k < count; k++)
            if (k != j && fabs(least_squares_cosine(&exact, j, k)) > collinear_cosine)
                c->collinear_with = fit->constants.at[columns[k].constant].key.path;
    }
    fit_run_with(fit, fit->chosen, fit->count, now);
    arena_release(mark);
}

/* ---- observations */

static void add_observation(struct fit *fit, uint32_t event, uint32_t from, bool is_gap, int64_t measured_ps)
{
    *array_add(&fit->observations) = (struct observation){event, from, is_gap, (double)measured_ps, 1};
}

struct known_event {
    int64_t simulated_ps, measured_ps;
    uint32_t event;
};

static int by_end(const void *a, const void *b)
{
    const struct known_event *x = a, *y = b;
    if (x->simulated_ps != y->simulated_ps)
        return x->simulated_ps < y->simulated_ps ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* The last of some sorted events that is not later than a time; NULL: there is none. */
static const struct known_event *last_until(const struct known_event *events, size_t count, int64_t ps)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (events[middle].simulated_ps <= ps)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &events[low - 1] : NULL;
}

/* Adds the observations of one launch of a PE: simulated commands from `first` to before `end`. */
static void observe_launch(struct fit *fit, const struct command_list *measured, size_t first, size_t end)
{
    struct arena_mark mark = arena_mark();
    struct known_event *ends = arena_alloc(end - first, sizeof *ends), before = {0};
    bool has_before = false;
    size_t known = 0;
    for (size_t i = first; i < end; i++) {
        const struct command_times *s = &fit->simulated->at[i], *m = command_list_find(measured, s);
        if (m && m->has_took && s->has_took)
            add_observation(fit, (uint32_t)(2 * i + 1), (uint32_t)(2 * i), false, m->took_ps);
        if (m && m->has_took && m->has_start && s->has_took)
            ends[known++] = (struct known_event){command_done_ps(s), command_done_ps(m), (uint32_t)(2 * i + 1)};
    }
    qsort(ends, known, sizeof *ends, by_end);
    for (size_t i = first; i < end; i++) {
        const struct command_times *s = &fit->simulated->at[i], *m = command_list_find(measured, s);
        if (!m || !m->has_start)
            continue;
        /* The event before the issue: what the kernel may have waited for, or its last call. */
        const struct known_event *from = last_until(ends, known, s->start_ps);
        /* In a stream that was made of the log, starts are those of the log, whatever ends when. */
        bool of_log = s->start_ps - before.simulated_ps == m->start_ps - before.measured_ps;
        if (has_before && (!from || from->simulated_ps < before.simulated_ps || of_log))
            from = &before;
        if (from && from->event / 2 != i)
            add_observation(fit, (uint32_t)(2 * i), from->event, true, m->start_ps - from->measured_ps);
        before = (struct known_event){s->start_ps, m->start_ps, (uint32_t)(2 * i)};
        has_before = true;
    }
    arena_release(mark);
}

static void observe_all(struct fit *fit, const struct command_list *measured)
{
    const struct command_times *at = fit->simulated->at;
    size_t end;
    for (size_t i = 0; i < fit->simulated->count; i = end) {
        for (end = i; end < fit->simulated->count && at[end].pe == at[i].pe && at[end].launch == at[i].launch;)
            end++;
        observe_launch(fit, measured, i, end);
    }
}

/* ---- the fit */

static double unit_of(const struct better_key *key, bool is_rate)
{
    static const double of_times[] = {[DIMENSION_time] = 1000, [DIMENSION_length] = 1000};
    if (is_rate)
        return 1e-3 / key->most;
    return key->dimension < COUNT_OF(of_times) && of_times[key->dimension] > 0 ? of_times[key->dimension] : key->whole ? 1 : 1e-3;
}

static void list_constants(struct fit *fit)
{
    struct better_keys keys = numbers_better((struct better_by){.up = 1.1, .down = 0.9});
    for (size_t i = 0; i < keys.count; i++) {
        if (keys.list[i].in_list)
            continue;
        struct constant c = {.key = keys.list[i], .is_rate = keys.list[i].more_is_better};
        c.unit = unit_of(&c.key, c.is_rate);
        c.u = c.start = u_of_number(&c, c.key.number);
        *array_add(&fit->constants) = c;
    }
}

static void choose(struct fit *fit, const char *path)
{
    const char **names = arena_alloc(fit->constants.count + 1, sizeof *names);
    if (fit->count == UNKNOWNS_MOST - 2)
        usage_error("--fit takes up to %d keys", UNKNOWNS_MOST - 2);
    for (unsigned i = 0; i < fit->constants.count; i++) {
        names[i] = fit->constants.at[i].key.path;
        if (strcmp(names[i], path))
            continue;
        if (fit_has(fit, i))
            usage_error("--fit %s is given twice", path);
        fit->chosen[fit->count++] = i;
        return;
    }
    const char *near = nearest_name(path, names, fit->constants.count);
    usage_error(near ? "--fit %s: the topology has no such number; did you mean '%s'?" : "--fit %s: the topology has no such number; whatif lists them",
                path, near);
}

const struct fit *fit_constants(fit_run *run, const struct command_list *simulated, const struct command_list *measured,
                                const char *const *keys, size_t count)
{
    struct fit *fit = arena_alloc(1, sizeof *fit);
    *fit = (struct fit){.run = run, .simulated = simulated, .is_automatic = !count};
    list_constants(fit);
    for (size_t i = 0; i < count; i++)
        choose(fit, keys[i]);
    observe_all(fit, measured);
    if (!fit->observations.count)
        return NULL;
    int64_t *now = fit_events_new(fit);
    if (!fit_run_with(fit, NULL, 0, now))
        run_failed("the fit cannot repeat the run");
    fit->before_ps = mean_absolute_residual_ps(fit, now);
    if (fit->is_automatic)
        select_constants(fit, now);
    else
        fit_chosen(fit, now);
    settle_lattice(fit, now);
    set_errors(fit, now);
    fit->after_ps = mean_absolute_residual_ps(fit, now);
    progress_end();
    return fit;
}
