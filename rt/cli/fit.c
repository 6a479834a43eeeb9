/* fit.c: nonlinear least squares by the method of Levenberg and Marquardt.
 *
 * What is fitted are differences of two times of one PE: how long a command took, and how long after the event before it
 * the command was issued. The Jacobian is numerical, one run for each constant.
 *
 * A constant x enters as u = x if less of it is better, such as a time, else as u = 1 / x, such as a bandwidth: times are
 * then piecewise linear in u. Where another part of the machine becomes the bottleneck, the slope changes; so a fit also
 * begins at constants several times as large or small.
 *
 * Errors of measured times are not known. After a first fit, the scale of each is the median of what is left of those of
 * similar length; larger ones count linearly (Huber), so that single outliers matter little. Then the fit is repeated. */
#include "fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "base/progress.h"
#include "bringup/least_squares.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/diag.h"
#include "common/fail.h"
#include "machine/pe.h"
#include "session/numbers.h"

enum { ITERATIONS_MOST = 40, FOUND_MOST = 6, TRIED_MOST = 4, NEIGHBOURS = 15, LATTICE_MOST = 4096, STARTS = 5, PLATEAU_MOST = 200,
       SCATTERED = 24 };                                /* points for each constant */

static const double huber = 2.5;                        /* scales */
static const double first_scale = 0.05;                 /* of a measured time, in the first fit */
static const double least_scale_ps = 1;
#define GOOD 0.05                                       /* a loss of an observation that no other start will make much less */

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
    const char *twin;                                   /* the constant that it cannot be told from, or NULL */
    const char *alternatives;                           /* constants that explain the times as well, or NULL */
};

struct fit {
    fit_run *run;
    const struct command_list *simulated;
    struct ARRAY(struct observation) observations;
    struct ARRAY(struct constant) constants;            /* all that may be fitted */
    unsigned chosen[UNKNOWNS_MOST], count;              /* those that are */
    uint64_t runs;
    double before_ps, after_ps;                         /* the mean absolute of what is left */
    bool is_automatic;
    struct command_list times;                          /* of the last run */
};

/* Times of all events of a run. */
struct events {
    int64_t *ps;
};

/* ---- constants as numbers */

static double number_of_u(const struct constant *c, double u)
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

static double shown_number(const struct constant *c, double x)
{
    return c->key.shown ? x * (double)c->key.shown->down / (double)c->key.shown->up : x;
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
        keys = renumber_both(keys, renumber_option(arena_printf("%s=%s", c->key.path, set_text(c, number_of_u(c, c->u)))));
    }
    const struct numbers *numbers = numbers_of_keys(keys);
    if (!numbers)
        errors_forget();
    return numbers;
}

/* Runs the machine with these constants. Returns false if it cannot, or its commands are others. */
static bool run_with(struct fit *fit, const unsigned *chosen, unsigned count, struct events *events)
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
        events->ps[2 * i] = t->start_ps;
        events->ps[2 * i + 1] = command_done_ps(t);
    }
    arena_release(mark);
    if (progress_is_due())
        progress_show(arena_printf("fit: %" PRIu64 " runs", fit->runs));
    return good;
}

static struct events new_events(const struct fit *fit)
{
    return (struct events){arena_alloc(2 * fit->simulated->count, sizeof(int64_t))};
}

static double simulated_ps(const struct observation *o, const struct events *events)
{
    return (double)(events->ps[o->event] - events->ps[o->from]);
}

/* What is left of an observation, in its scale. */
static double left_of(const struct observation *o, const struct events *events)
{
    return (simulated_ps(o, events) - o->measured_ps) / o->scale_ps;
}

static double weight_of(double left)
{
    return fabs(left) <= huber ? 1 : huber / fabs(left);
}

static double loss(const struct fit *fit, const struct events *events)
{
    double sum = 0;
    for (size_t i = 0; i < fit->observations.count; i++) {
        double left = fabs(left_of(&fit->observations.at[i], events));
        sum += left <= huber ? left * left : huber * (2 * left - huber);
    }
    return sum;
}

static double mean_left_ps(const struct fit *fit, const struct events *events)
{
    double sum = 0;
    for (size_t i = 0; i < fit->observations.count; i++) {
        const struct observation *o = &fit->observations.at[i];
        sum += fabs(simulated_ps(o, events) - o->measured_ps);
    }
    return sum / (double)fit->observations.count;
}

/* ---- scales */

static const struct fit *sorted_fit;
static const double *sorted_left;

static int by_length(const void *a, const void *b)
{
    const struct observation *x = &sorted_fit->observations.at[*(const uint32_t *)a];
    const struct observation *y = &sorted_fit->observations.at[*(const uint32_t *)b];
    if (x->is_gap != y->is_gap)
        return x->is_gap - y->is_gap;
    return (x->measured_ps > y->measured_ps) - (x->measured_ps < y->measured_ps);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The scale of each observation is that of what is left of its neighbours by length, of the same kind. */
static void set_scales(struct fit *fit, const struct events *events)
{
    struct arena_mark mark = arena_mark();
    size_t count = fit->observations.count;
    uint32_t *order = arena_alloc(count, sizeof *order);
    double *left = arena_alloc(count, sizeof *left);
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        left[i] = fabs(simulated_ps(&fit->observations.at[i], events) - fit->observations.at[i].measured_ps);
    }
    sorted_fit = fit;
    sorted_left = left;
    qsort(order, count, sizeof *order, by_length);
    for (size_t i = 0; i < count; i++) {
        struct observation *o = &fit->observations.at[order[i]];
        double near[2 * NEIGHBOURS + 1];
        size_t found = 0, first = i > NEIGHBOURS ? i - NEIGHBOURS : 0;
        if (first + 2 * NEIGHBOURS >= count)
            first = count > 2 * NEIGHBOURS + 1 ? count - 2 * NEIGHBOURS - 1 : 0;
        for (size_t j = first; j < count && j <= first + 2 * NEIGHBOURS; j++)
            if (fit->observations.at[order[j]].is_gap == o->is_gap)
                near[found++] = left[order[j]];
        qsort(near, found, sizeof *near, by_value);
        double median = found % 2 ? near[found / 2] : (near[found / 2 - 1] + near[found / 2]) / 2;
        o->scale_ps = fmax(1.4826 * median, least_scale_ps);
    }
    arena_release(mark);
}

static void set_first_scales(struct fit *fit)
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

/* The slopes of all observations over one constant. */
struct column {
    unsigned constant;
    double scale;                                       /* a step of 1 of the linear problem is this in u */
    double *slope;                                      /* in ps per step */
};

static double step_scale(const struct constant *c)
{
    return fmax(fabs(c->u), c->unit);
}

/* Computes the slopes by a run with a step of a share of the constant; the other way if it cannot go this way. Returns
 * false if it cannot go either way. */
static bool column_compute(struct fit *fit, const struct events *now, struct events *room, double share, struct column *column)
{
    struct constant *c = &fit->constants.at[column->constant];
    double u = c->u, x = number_of_u(c, u), from = u_of_number(c, x);
    column->scale = step_scale(c);
    for (int way = 0; way < 2; way++, share = -share) {
        c->u = fmax(u + share * column->scale, 0);
        double to = u_of_number(c, number_of_u(c, c->u));
        if (c->key.whole && to == from) {               /* at least the next number */
            double next = x + ((share > 0) == !c->is_rate ? 1 : -1);
            c->u = next > 0 || !c->is_rate ? u_of_number(c, fmax(next, 0)) : u;
            to = u_of_number(c, number_of_u(c, c->u));
        }
        bool good = to != from && run_with(fit, fit->chosen, fit->count, room);
        c->u = u;
        if (!good)
            continue;
        for (size_t i = 0; i < fit->observations.count; i++) {
            const struct observation *o = &fit->observations.at[i];
            column->slope[i] = (simulated_ps(o, room) - simulated_ps(o, now)) / (to - from) * column->scale;
        }
        return true;
    }
    memset(column->slope, 0, fit->observations.count * sizeof *column->slope);
    return false;
}

/* Sums up the linear problem: what a step of each constant changes in what is left. */
static struct least_squares linear_problem(const struct fit *fit, const struct events *now, const struct column *columns, unsigned count)
{
    struct least_squares squares;
    least_squares_begin(&squares, count);
    for (size_t i = 0; i < fit->observations.count; i++) {
        double row[UNKNOWNS_MOST], left = left_of(&fit->observations.at[i], now), root = sqrt(weight_of(left));
        for (unsigned j = 0; j < count; j++)
            row[j] = root * columns[j].slope[i] / fit->observations.at[i].scale_ps;
        least_squares_add(&squares, row, -root * left);
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

static void columns_compute(struct fit *fit, const struct events *now, struct events *room, double share, struct column *columns)
{
    for (unsigned j = 0; j < fit->count; j++)
        columns[j].constant = fit->chosen[j];
    for (unsigned j = 0; j < fit->count; j++)
        column_compute(fit, now, room, share, &columns[j]);
}

static struct column *new_columns(const struct fit *fit, unsigned count)
{
    struct column *columns = arena_alloc(count + 1, sizeof *columns);
    for (unsigned j = 0; j < count; j++)
        columns[j].slope = arena_alloc(fit->observations.count, sizeof(double));
    return columns;
}

static void exchange(struct events *a, struct events *b)
{
    struct events kept = *a;
    *a = *b;
    *b = kept;
}

/* Tries a step of the constants. Returns whether it is better; else they are as before. */
static bool try_step(struct fit *fit, const struct column *columns, const double *step, struct events *now, struct events *room, double *best)
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
    double now_is = run_with(fit, fit->chosen, fit->count, room) ? loss(fit, room) : HUGE_VAL;
    if (now_is < *best) {
        *best = now_is;
        exchange(now, room);
        return true;
    }
    for (unsigned j = 0; j < fit->count; j++)
        fit->constants.at[fit->chosen[j]].u = before[j];
    return false;
}

/* Fits the chosen constants from where they are. Returns the loss; `now` are the events there. */
static double descend(struct fit *fit, struct events *now)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit), kept = *now;
    struct column *columns = new_columns(fit, fit->count);
    double best = run_with(fit, fit->chosen, fit->count, now) ? loss(fit, now) : HUGE_VAL, damping = 1e-4;
    static const double shares[] = {0.1, -0.1, 0.05, -0.05, 0.02, -0.02};       /* steps of slopes */
    unsigned failed = 0;
    for (unsigned iteration = 0; best < HUGE_VAL && fit->count && iteration < ITERATIONS_MOST && failed < 2; iteration++) {
        double share = shares[iteration < COUNT_OF(shares) ? iteration : COUNT_OF(shares) - 1 - iteration % 2], before = best, step[UNKNOWNS_MOST];
        columns_compute(fit, now, &room, share, columns);
        struct least_squares squares = linear_problem(fit, now, columns, fit->count);
        bool better = false;
        for (unsigned tries = 0; tries < 6 && !better; tries++) {
            struct least_squares with_damping = damped(squares, damping);
            least_squares_solve(&with_damping, step);
            better = try_step(fit, columns, step, now, &room, &best);
            damping = better ? fmax(damping / 10, 1e-9) : fmin(damping * 10, 1e6);
        }
        failed = (better && before - best > 1e-5 * before) || iteration + 2 < COUNT_OF(shares) ? 0 : failed + 1;
    }
    if (now->ps != kept.ps) {                           /* the caller's memory outlives this call */
        memcpy(kept.ps, now->ps, 2 * fit->simulated->count * sizeof *kept.ps);
        *now = kept;
    }
    arena_release(mark);
    return best;
}

/* ---- other starts */

static void keep_constants(const struct fit *fit, double *kept)
{
    for (unsigned j = 0; j < fit->count; j++)
        kept[j] = fit->constants.at[fit->chosen[j]].u;
}

static void put_constants(struct fit *fit, const double *kept)
{
    for (unsigned j = 0; j < fit->count; j++)
        fit->constants.at[fit->chosen[j]].u = kept[j];
}

/* Goes to the best of the points where one constant is several times as large or small. Returns whether one is better. */
static bool leap(struct fit *fit, struct events *room, double *best)
{
    static const double factors[] = {0.125, 0.25, 0.5, 2, 4, 8};
    unsigned leaps = UNKNOWNS_MOST;
    double leapt = 0, limit = *best * 0.9;
    for (unsigned j = 0; j < fit->count; j++) {
        struct constant *c = &fit->constants.at[fit->chosen[j]];
        double u = c->u;
        for (size_t i = 0; i < COUNT_OF(factors); i++) {
            c->u = fmax(u, c->unit) * factors[i];
            double there = run_with(fit, fit->chosen, fit->count, room) ? loss(fit, room) : HUGE_VAL;
            if (there < limit) {
                limit = there;
                leaps = j;
                leapt = c->u;
            }
        }
        c->u = u;
    }
    if (leaps == UNKNOWNS_MOST)
        return false;
    fit->constants.at[fit->chosen[leaps]].u = leapt;
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
    keep_constants(fit, starts[at].u);
}

/* Tries points around the constants, up to 2^octaves times as large and as small, and keeps the best. */
static void scatter(struct fit *fit, struct events *room, double octaves, struct start *starts)
{
    static const unsigned bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89};
    double center[UNKNOWNS_MOST];
    keep_constants(fit, center);
    for (unsigned i = 1; i <= SCATTERED * fit->count; i++) {
        for (unsigned j = 0; j < fit->count; j++) {
            struct constant *c = &fit->constants.at[fit->chosen[j]];
            c->u = fmax(center[j], c->unit) * exp2(octaves * (2 * halton(i, bases[j]) - 1));
        }
        keep_start(starts, fit, run_with(fit, fit->chosen, fit->count, room) ? loss(fit, room) : HUGE_VAL);
    }
    put_constants(fit, center);
}

/* Descends from each start, and keeps the best end. */
static void descend_from(struct fit *fit, struct events *now, struct events *room, const struct start *starts, bool leaps, struct start *end)
{
    for (unsigned i = 0; i < STARTS && starts[i].loss < HUGE_VAL; i++) {
        double at = starts[i].loss;
        put_constants(fit, starts[i].u);
        for (unsigned j = 0; leaps && j < 2 * fit->count && leap(fit, room, &at); j++)
            continue;
        double there = descend(fit, now);
        if (there < end->loss) {
            end->loss = there;
            keep_constants(fit, end->u);
        }
    }
    put_constants(fit, end->u);
}

/* Fits the chosen constants from where they are and, as long as that leaves much, from points around the best end. */
static double descend_from_several(struct fit *fit, struct events *now)
{
    static const double octaves[] = {0, 3, 1, 0.3};
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    struct start end = {HUGE_VAL, {0}};
    keep_constants(fit, end.u);
    for (size_t round = 0; round < COUNT_OF(octaves) && end.loss > GOOD * (double)fit->observations.count; round++) {
        struct start starts[STARTS];
        for (unsigned i = 0; i < STARTS; i++)
            starts[i].loss = HUGE_VAL;
        if (round == 0)
            keep_start(starts, fit, 0);
        else
            scatter(fit, &room, octaves[round], starts);
        descend_from(fit, now, &room, starts, round == 1, &end);
    }
    double best = run_with(fit, fit->chosen, fit->count, now) ? loss(fit, now) : HUGE_VAL;
    arena_release(mark);
    return best;
}

static bool is_lattice(const struct constant *c)
{
    return c->key.whole && !c->key.base && number_of_u(c, c->u) <= LATTICE_MOST;
}

/* Small whole numbers have no slope: their neighbours are tried. */
static double go_to_lattice(struct fit *fit, struct events *now, double best)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    bool better = true;
    for (unsigned round = 0; better && round < ITERATIONS_MOST; round++) {
        better = false;
        for (unsigned j = 0; j < fit->count; j++) {
            struct constant *c = &fit->constants.at[fit->chosen[j]];
            double u = c->u, x = number_of_u(c, u);
            if (!is_lattice(c))
                continue;
            for (int by = -2; by <= 2; by++) {
                if (by == 0 || x + by < c->key.least || (c->is_rate && x + by <= 0))
                    continue;
                double kept = c->u;
                c->u = u_of_number(c, x + by);
                double there = run_with(fit, fit->chosen, fit->count, &room) ? loss(fit, &room) : HUGE_VAL;
                if (there < best * (1 - 1e-9)) {
                    best = there;
                    better = true;
                    memcpy(now->ps, room.ps, 2 * fit->simulated->count * sizeof *now->ps);
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
static bool is_as_good(struct fit *fit, struct constant *c, double x, double best, struct events *room)
{
    double u = c->u;
    if (x < c->key.least || x > c->key.most || (c->is_rate && x <= 0))
        return false;
    c->u = u_of_number(c, x);
    bool good = run_with(fit, fit->chosen, fit->count, room) && loss(fit, room) <= best * (1 + 1e-12);
    c->u = u;
    return good;
}

/* Of the numbers around a small whole one that explain the times as well, takes the roundest in base 2. */
static void take_roundest(struct fit *fit, struct constant *c, double best)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    double x = number_of_u(c, c->u), low = x, high = x, round = x;
    while (x - low < PLATEAU_MOST && is_as_good(fit, c, low - 1, best, &room))
        low--;
    while (high - x < PLATEAU_MOST && is_as_good(fit, c, high + 1, best, &room))
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
static double fit_chosen(struct fit *fit, struct events *now)
{
    set_first_scales(fit);
    double best = descend_from_several(fit, now);
    best = go_to_lattice(fit, now, best);
    for (unsigned round = 0; round < 3 && best < HUGE_VAL; round++) {
        set_scales(fit, now);
        best = descend(fit, now);
        best = go_to_lattice(fit, now, best);
    }
    return best;
}

static void settle_lattice(struct fit *fit, struct events *now)
{
    for (unsigned j = 0; j < fit->count; j++)
        if (is_lattice(&fit->constants.at[fit->chosen[j]]))
            take_roundest(fit, &fit->constants.at[fit->chosen[j]], loss(fit, now));
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
static void flat_columns_compute(struct fit *fit, const struct events *now, struct events *room, struct column *columns)
{
    struct column *others = new_columns(fit, fit->count);
    for (unsigned j = 0; j < fit->count; j++) {
        columns[j].constant = others[j].constant = fit->chosen[j];
        for (double share = 0.02; share < 1; share *= 5) {
            column_compute(fit, now, room, share, &columns[j]);
            column_compute(fit, now, room, -share, &others[j]);
            for (size_t i = 0; i < fit->observations.count; i++) {
                double a = columns[j].slope[i], b = others[j].slope[i];
                columns[j].slope[i] = a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b;
            }
            if (!is_flat(fit, &columns[j]))
                break;
        }
    }
}

/* Sets the standard error of each chosen constant, and names those that others stand in for. A constant on which nothing
 * depends becomes that of the topology. */
static void set_errors(struct fit *fit, struct events *now)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    struct column *columns = new_columns(fit, fit->count);
    double variances[UNKNOWNS_MOST];
    unsigned count = 0;
    flat_columns_compute(fit, now, &room, columns);
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
    /* The damping is too small to matter, unless columns are all but parallel. */
    struct least_squares exact = linear_problem(fit, now, columns, count), squares = damped(exact, 1e-12);
    least_squares_variances(&squares, variances);
    double freedom = (double)fit->observations.count - count, rest = loss(fit, now) / fmax(freedom, 1);
    for (unsigned j = 0; j < count; j++) {
        struct constant *c = &fit->constants.at[columns[j].constant];
        double u = fmax(c->u, c->unit), x = number_of_u(c, c->u), error = sqrt(rest * variances[j]) * columns[j].scale;
        c->error = c->is_rate && x > 0 ? error * x * x : error;
        c->is_undetermined = c->plateau || !(error < 0.5 * u) || !(variances[j] * least_squares_column(&exact, j) < 1e4);
        for (unsigned k = 0; k < count; k++)
            if (k != j && fabs(least_squares_cosine(&exact, j, k)) > 0.995)
                c->twin = fit->constants.at[columns[k].constant].key.path;
    }
    run_with(fit, fit->chosen, fit->count, now);
    arena_release(mark);
}

/* ---- finding constants */

/* How much the loss falls if a constant is added, as one run with it changed says. */
static double gain_of(const struct fit *fit, const struct events *now, const struct events *there, struct column *columns, bool far)
{
    struct column *last = &columns[fit->count];
    bool changes = false;
    for (size_t i = 0; i < fit->observations.count; i++) {
        const struct observation *o = &fit->observations.at[i];
        last->slope[i] = simulated_ps(o, there) - simulated_ps(o, now);
        changes |= last->slope[i] != 0;
    }
    if (!changes)
        return -1;
    struct least_squares without = linear_problem(fit, now, columns, fit->count);
    struct least_squares with = linear_problem(fit, now, columns, fit->count + 1);
    double step[UNKNOWNS_MOST];
    least_squares_solve(&with, step);
    if (step[fit->count] <= 0 || (far && step[fit->count] > 1.6))
        return 0;
    return least_squares_rest(&without) - least_squares_rest(&with);
}

struct candidate {
    unsigned constant;
    double gain;
};

/* Puts the last chosen constant where the loss is least, of some points up to 8 times as large and as small. */
static void scan_last(struct fit *fit, struct events *room)
{
    struct constant *c = &fit->constants.at[fit->chosen[fit->count - 1]];
    double u = c->u, best_u = u, best = HUGE_VAL;
    for (int i = -12; i <= 12; i++) {
        c->u = fmax(u, c->unit) * exp2(i / 4.0);
        double there = run_with(fit, fit->chosen, fit->count, room) ? loss(fit, room) : HUGE_VAL;
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

static bool is_chosen(const struct fit *fit, unsigned constant)
{
    for (unsigned j = 0; j < fit->count; j++)
        if (fit->chosen[j] == constant)
            return true;
    return false;
}

/* Lists the constants that would explain most of what is left. */
static unsigned list_candidates(struct fit *fit, struct events *now, struct candidate *list)
{
    static const double factors[] = {0.25, 0.8, 1.25, 4};
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    struct column *columns = new_columns(fit, fit->count + 1);
    double loss_now = loss(fit, now);
    unsigned count = 0;
    columns_compute(fit, now, &room, 0.02, columns);
    for (unsigned i = 0; i < fit->constants.count; i++) {
        struct constant *c = &fit->constants.at[i];
        double u = c->u;
        if (is_chosen(fit, i) || c->key.dimension == DIMENSION_size || (c->is_rate && u == 0))
            continue;
        struct candidate candidate = {i, -1};
        unsigned all = fit->count;
        for (size_t f = 0; f < COUNT_OF(factors); f++) {
            c->u = u > 0 ? u * factors[f] : f ? c->unit * factors[f] : 0;
            fit->chosen[all] = i;
            if (number_of_u(c, c->u) == number_of_u(c, u) || !run_with(fit, fit->chosen, all + 1, &room))
                continue;
            double gain = gain_of(fit, now, &room, columns, f == 0 || f == 3), fall = loss_now - loss(fit, &room);
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

/* Whether a loss is so much less than another one that a further constant is worth it: the Bayesian information criterion,
 * extended by the number of constants that there were to choose from (Chen, Chen, Biometrika 2008). */
static double gained(const struct fit *fit, double without, double with)
{
    return (double)fit->observations.count * log(fmax(without, 1e-9) / fmax(with, 1e-9));
}

static bool is_worth_it(const struct fit *fit, double without, double with)
{
    double n = (double)fit->observations.count;
    return gained(fit, without, with) > log(n) + 2 * log((double)fit->constants.count) + 6;
}

/* Adds the best of the candidates. Returns false if none is worth it. */
static bool add_one(struct fit *fit, struct events *now)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    struct candidate *list = arena_alloc(fit->constants.count + 1, sizeof *list);
    double start[UNKNOWNS_MOST], best_at[UNKNOWNS_MOST + 1], best = HUGE_VAL, without;
    unsigned winner = 0;
    run_with(fit, fit->chosen, fit->count, now);
    without = loss(fit, now);
    unsigned found = list_candidates(fit, now, list);
    keep_constants(fit, start);
    fit->count++;
    for (unsigned i = 0; i < found && i < TRIED_MOST; i++) {
        struct constant *c = &fit->constants.at[list[i].constant];
        fit->chosen[fit->count - 1] = list[i].constant;
        scan_last(fit, &room);
        double loss_with = go_to_lattice(fit, now, descend(fit, now));
        if (loss_with < best) {
            best = loss_with;
            winner = list[i].constant;
            keep_constants(fit, best_at);
        }
        c->u = c->start;
        fit->count--;
        put_constants(fit, start);
        fit->count++;
    }
    /* Less is asked for than in the end: two constants may be worth it where each alone is not. */
    bool worth = best < HUGE_VAL && gained(fit, without, best) > log((double)fit->observations.count) + 2;
    fit->count -= !worth;
    if (worth) {
        fit->chosen[fit->count - 1] = winner;
        put_constants(fit, best_at);
    }
    run_with(fit, fit->chosen, fit->count, now);
    arena_release(mark);
    return worth;
}

/* Takes out constants that others have made needless. */
static void remove_needless(struct fit *fit, struct events *now)
{
    for (unsigned j = 0; j < fit->count;) {
        double kept[UNKNOWNS_MOST], with = loss(fit, now);
        unsigned out = fit->chosen[j], count = fit->count;
        struct constant *c = &fit->constants.at[out];
        keep_constants(fit, kept);
        memmove(&fit->chosen[j], &fit->chosen[j + 1], (count - j - 1) * sizeof *fit->chosen);
        fit->count--;
        c->u = c->start;
        if (!is_worth_it(fit, descend(fit, now), with))
            continue;
        memmove(&fit->chosen[j + 1], &fit->chosen[j], (count - j - 1) * sizeof *fit->chosen);
        fit->chosen[j++] = out;
        fit->count++;
        put_constants(fit, kept);
        run_with(fit, fit->chosen, fit->count, now);
    }
}

/* Notes for each constant which others would explain the times as well in its place. */
static void find_alternatives(struct fit *fit, struct events *now)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    struct candidate *list = arena_alloc(fit->constants.count + 1, sizeof *list);
    double best = loss(fit, now), kept[UNKNOWNS_MOST];
    unsigned chosen[UNKNOWNS_MOST];
    memcpy(chosen, fit->chosen, sizeof chosen);
    keep_constants(fit, kept);
    for (unsigned j = 0; j < fit->count; j++) {
        struct constant *c = &fit->constants.at[chosen[j]];
        unsigned last = fit->count - 1;
        fit->chosen[j] = chosen[last];
        fit->chosen[last] = chosen[j];
        fit->count--;
        c->u = c->start;
        run_with(fit, fit->chosen, fit->count, now);
        unsigned found = list_candidates(fit, now, list);
        fit->count++;
        for (unsigned i = 0; i < found && i < 2 * TRIED_MOST; i++) {
            struct constant *other = &fit->constants.at[list[i].constant];
            if (other == c)
                continue;
            fit->chosen[last] = list[i].constant;
            scan_last(fit, &room);
            if (!is_worth_it(fit, descend(fit, now), best)) {
                arena_keep_begin();
                c->alternatives = c->alternatives ? arena_printf("%s, %s", c->alternatives, other->key.path) : other->key.path;
                arena_keep_end();
            }
            other->u = other->start;
        }
        memcpy(fit->chosen, chosen, sizeof chosen);
        put_constants(fit, kept);
    }
    arena_release(mark);
    run_with(fit, fit->chosen, fit->count, now);
}

/* Exchanges constants for others that explain more. Returns whether it has. */
static bool exchange_one(struct fit *fit, struct events *now)
{
    struct arena_mark mark = arena_mark();
    struct events room = new_events(fit);
    struct candidate *list = arena_alloc(fit->constants.count + 1, sizeof *list);
    bool exchanged = false;
    for (unsigned j = 0; j < fit->count && !exchanged; j++) {
        double best = loss(fit, now), kept[UNKNOWNS_MOST];
        unsigned out = fit->chosen[j], last = fit->count - 1;
        struct constant *c = &fit->constants.at[out];
        fit->chosen[j] = fit->chosen[last];
        fit->chosen[last] = out;
        keep_constants(fit, kept);
        fit->count--;
        c->u = c->start;
        run_with(fit, fit->chosen, fit->count, now);
        unsigned found = list_candidates(fit, now, list);
        fit->count++;
        for (unsigned i = 0; i < found && i < TRIED_MOST && !exchanged; i++) {
            struct constant *other = &fit->constants.at[list[i].constant];
            if (other == c)
                continue;
            put_constants(fit, kept);
            c->u = c->start;
            fit->chosen[last] = list[i].constant;
            scan_last(fit, &room);
            exchanged = go_to_lattice(fit, now, descend(fit, now)) < best * 0.9;
            if (!exchanged)
                other->u = other->start;
        }
        if (!exchanged) {
            fit->chosen[last] = out;
            put_constants(fit, kept);
            run_with(fit, fit->chosen, fit->count, now);
        }
    }
    arena_release(mark);
    return exchanged;
}

/* Adds constants as long as one is worth it. */
static void add_all(struct fit *fit, struct events *now)
{
    while (fit->count < FOUND_MOST && add_one(fit, now))
        for (unsigned i = 0; i < FOUND_MOST && exchange_one(fit, now); i++)
            continue;
}

static double find_constants(struct fit *fit, struct events *now)
{
    /* Those that the first scales find may be too many: only the scales of the noise tell. */
    set_first_scales(fit);
    add_all(fit, now);
    if (fit->count)
        descend_from_several(fit, now);
    set_scales(fit, now);
    add_all(fit, now);
    if (fit->count)
        fit_chosen(fit, now);
    remove_needless(fit, now);
    double best = fit->count ? fit_chosen(fit, now) : loss(fit, now);
    if (fit->count)
        find_alternatives(fit, now);
    return best;
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
        if (has_before && (!from || from->simulated_ps < before.simulated_ps))
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
        if (is_chosen(fit, i))
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
    struct events now = new_events(fit);
    if (!run_with(fit, NULL, 0, &now))
        run_failed("the fit cannot repeat the run");
    fit->before_ps = mean_left_ps(fit, &now);
    if (fit->is_automatic)
        find_constants(fit, &now);
    else
        fit_chosen(fit, &now);
    settle_lattice(fit, &now);
    set_errors(fit, &now);
    fit->after_ps = mean_left_ps(fit, &now);
    progress_end();
    return fit;
}

/* ---- results */

static const char *value_text(const struct constant *c, double x)
{
    if (c->is_rate && x == 0)
        return "no limit";
    return c->key.shown ? arena_printf("%.6g %s", shown_number(c, x), c->key.shown->name) : arena_printf("%.6g", x);
}

/* The option that sets a constant, in the unit that needs no name: decimal factors keep all digits. */
static const char *set_option(const struct constant *c)
{
    double x = number_of_u(c, c->u);
    if (c->is_rate && x == 0)
        return arena_printf("%s=~", c->key.path);
    if (c->key.dimension == DIMENSION_size)
        return arena_printf("%s=%.0fB", c->key.path, x);
    return arena_printf("%s=%.15g", c->key.path, shown_number(c, x));
}

static const char *note_on(const struct constant *c)
{
    if (!c->is_found)
        return "no measured time depends on it";
    if (c->twin)
        return arena_printf("the times do not tell it from %s", c->twin);
    if (c->plateau)
        return c->plateau;
    if (c->is_undetermined)
        return "the times do not determine it";
    return c->alternatives ? arena_printf("explained as well by %s", c->alternatives) : "";
}

static bool is_changed(const struct constant *c)
{
    return c->is_found && number_of_u(c, c->u) != number_of_u(c, c->start);
}

void fit_print(const struct fit *fit, FILE *out)
{
    fprintf(out, "\nfit of %zu times in %" PRIu64 " runs: mean error %s before, %s after\n", fit->observations.count, fit->runs,
            human_time((uint64_t)fit->before_ps), human_time((uint64_t)(fit->after_ps + 0.5)));
    if (!fit->count) {
        fprintf(out, "  no number of the topology explains more than there is noise\n");
        return;
    }
    fprintf(out, "\n%14s    %-14s %12s  %s\n", "topology", "fitted", "error", "key");
    for (unsigned j = 0; j < fit->count; j++) {
        const struct constant *c = &fit->constants.at[fit->chosen[j]];
        const char *note = note_on(c), *error = c->error < HUGE_VAL ? arena_printf("+- %.2g", shown_number(c, c->error)) : "";
        fprintf(out, "%14s -> %-14s %12s  %s%s%s\n", value_text(c, number_of_u(c, c->start)), value_text(c, number_of_u(c, c->u)), error, c->key.path,
                *note ? "; " : "", note);
    }
    const char *options = "";
    for (unsigned j = 0; j < fit->count; j++)
        if (is_changed(&fit->constants.at[fit->chosen[j]]))
            options = arena_printf("%s --set %s", options, set_option(&fit->constants.at[fit->chosen[j]]));
    if (*options)
        fprintf(out, "\n %s\n", options);
}

void fit_write(struct json *json, const struct fit *fit)
{
    json_object(json, "fit");
    json_u64(json, "times", fit->observations.count);
    json_u64(json, "runs", fit->runs);
    json_double(json, "mean_error_before_ps", fit->before_ps);
    json_double(json, "mean_error_after_ps", fit->after_ps);
    json_array(json, "constants");
    for (unsigned j = 0; j < fit->count; j++) {
        const struct constant *c = &fit->constants.at[fit->chosen[j]];
        const char *note = note_on(c);
        json_object(json, NULL);
        json_string(json, "key", c->key.path);
        json_string(json, "place", c->key.place);
        json_string(json, "value", value_text(c, number_of_u(c, c->start)));
        json_string(json, "fitted", value_text(c, number_of_u(c, c->u)));
        json_double(json, "number", shown_number(c, number_of_u(c, c->u)));
        if (c->error < HUGE_VAL)
            json_double(json, "standard_error", shown_number(c, c->error));
        json_bool(json, "determined", !c->is_undetermined);
        if (*note)
            json_string(json, "note", note);
        json_string(json, "set", set_option(c));
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}
