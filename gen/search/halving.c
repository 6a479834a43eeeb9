/* halving.c: successive halving. A batch is a rung: points that survived so far, at one level of the fidelity. */
#include "halving.h"

#include <inttypes.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "distinct.h"
#include "ranking.h"
#include "sampling.h"

/* The points of a rung are in memory. */
enum { RUNGS_MOST = 64, FIRST_RUNG_MOST = 1 << 28 };

struct halving {
    size_t fidelity;                                    /* an axis */
    uint64_t keep, rung, rungs;
    size_t first, count, told;                          /* points of the first rung and of the current one */
    uint32_t *levels, *best_levels;                     /* vectors */
    double *objectives;
    struct ranked *ranked;
    uint32_t *order;
};

uint64_t halving_rung(uint64_t n, uint64_t keep, uint64_t rung)
{
    for (; rung > 0; rung--)
        n = n >= keep ? n / keep : 1;
    return n;
}

static uint64_t points_of_rungs(uint64_t n, uint64_t keep, uint64_t rungs)
{
    uint64_t sum = 0;
    for (uint64_t rung = 0; rung < rungs; rung++, n = n >= keep ? n / keep : 1)
        sum += n;
    return sum;
}

uint64_t halving_points(uint64_t points, uint64_t keep, uint64_t rungs)
{
    uint64_t low = 0, high = points;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (points_of_rungs(middle, keep, rungs) <= points)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static size_t fidelity_of(const struct method_space *space)
{
    return (size_t)space->choice.number[OPTION_halving_fidelity];
}

/* The space without its fidelity: that axis has one level. */
static struct method_space *first_rung_space(const struct method_space *space)
{
    struct method_space *out = arena_alloc(1, sizeof *out);
    struct method_axis *axes = arena_alloc(space->axis_count, sizeof *axes);
    memcpy(axes, space->axes, space->axis_count * sizeof *axes);
    axes[fidelity_of(space)].count = 1;
    *out = *space;
    out->axes = axes;
    return out;
}

/* Points of the first rung. A small space has all its points there. */
static uint64_t first_rung(const struct method_space *space)
{
    uint64_t size = method_space_size(first_rung_space(space)), rungs = space->axes[fidelity_of(space)].count;
    uint64_t n = halving_points(space->points, (uint64_t)space->choice.number[OPTION_halving_keep], rungs);
    return n < size ? n : size;
}

static const char *halving_refusal(const struct method_space *space)
{
    uint64_t rungs = space->axes[fidelity_of(space)].count;
    if (rungs > RUNGS_MOST)
        return arena_printf("halving has at most %d fidelities", RUNGS_MOST);
    if (space->points < rungs)
        return arena_printf("halving needs a budget of %" PRIu64 " points at least: one for each fidelity", rungs);
    return first_rung(space) > FIRST_RUNG_MOST ? "halving begins with at most 2^28 points: the budget is too large" : NULL;
}

static uint32_t *vector(const struct method *method, size_t i)
{
    const struct halving *state = method->state;
    return state->levels + i * method->space->axis_count;
}

/* The first rung is a Latin hypercube; a point that is there already is replaced by a random one. */
static void draw_first_rung(struct method *method)
{
    struct halving *state = method->state;
    const struct method_space *space = first_rung_space(method->space);
    struct distinct *asked = distinct_begin(space);
    for (size_t i = 0; i < state->count; i++) {
        lhs_point(space, state->count, i, vector(method, i));
        if (!distinct_add(asked, vector(method, i)))
            distinct_draw(asked, i, vector(method, i));
    }
    distinct_end(asked);
}

static void halving_begin(struct method *method)
{
    const struct method_space *space = method->space;
    struct halving *state = method->state = arena_alloc(1, sizeof *state);
    size_t n = (size_t)first_rung(space);
    *state = (struct halving){
        .fidelity = fidelity_of(space),
        .keep = (uint64_t)space->choice.number[OPTION_halving_keep],
        .rungs = space->axes[fidelity_of(space)].count,
        .first = n, .count = n,
        .levels = arena_alloc(n * space->axis_count, sizeof(uint32_t)),
        .best_levels = arena_alloc(n * space->axis_count, sizeof(uint32_t)),
        .objectives = arena_alloc(n * space->objective_count, sizeof(double)),
        .ranked = arena_alloc(n, sizeof *state->ranked),
        .order = arena_alloc(n, sizeof *state->order),
    };
    draw_first_rung(method);
    method->known = n;
    method->total = points_of_rungs(n, state->keep, state->rungs);
}

static void halving_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    memcpy(levels, vector(method, (size_t)(number - method->first)), method->space->axis_count * sizeof *levels);
}

/* Lets the best points go on to the next fidelity, the best one first. */
static void next_rung(struct method *method)
{
    struct halving *state = method->state;
    size_t axis_count = method->space->axis_count, bytes = axis_count * sizeof(uint32_t);
    rank(state->ranked, state->count, method->space->objective_count, state->order);
    state->rung++;
    state->count = (size_t)halving_rung(state->first, state->keep, state->rung);
    for (size_t i = 0; i < state->count; i++) {
        memcpy(state->best_levels + i * axis_count, vector(method, state->order[i]), bytes);
        state->best_levels[i * axis_count + state->fidelity] = (uint32_t)state->rung;
    }
    memcpy(state->levels, state->best_levels, state->count * bytes);
    state->told = 0;
    method->first = method->known;
    method->known += state->count;
}

static bool halving_is_result(const struct method *method, const uint32_t *levels)
{
    const struct halving *state = method->state;
    return levels[state->fidelity] == state->rungs - 1;
}

static void halving_tell(struct method *method, uint64_t number, const struct evaluation *evaluation)
{
    struct halving *state = method->state;
    size_t i = (size_t)(number - method->first), objective_count = method->space->objective_count;
    state->ranked[i] = ranked_of(evaluation, state->objectives + i * objective_count, objective_count);
    if (++state->told == state->count && state->rung + 1 < state->rungs)
        next_rung(method);
}

const struct method_kind method_halving = {
    .refusal = halving_refusal, .begin = halving_begin, .point = halving_point,
    .is_result = halving_is_result, .tell = halving_tell,
};
