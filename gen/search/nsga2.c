/* nsga2.c: NSGA-II on a lattice.
 *
 * The first generation is a Latin hypercube. Then the best half of parents and children are the parents of the next
 * generation. A child comes of two parents, each the better one of two drawn. Half of the ordered axes are crossed by
 * simulated binary crossover, rounded to levels; all are exchanged with probability 1/2, without which the children stay so
 * near their parents that a search of ZDT2 is left with one end of its front. Mutation is polynomial on ordered axes, and
 * any other level on others. No point is asked for twice. */
#include "nsga2.h"

#include <math.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "distinct.h"
#include "draw.h"
#include "ranking.h"
#include "sampling.h"

/* Distribution indices: the larger, the nearer a child is to its parents. */
static const double crossover_index = 15, mutation_index = 20;

/* How often a child that was asked for before is mutated once more, before a random point takes its place. */
enum { TRIES = 16 };

/* `population` parents, then as many children. */
struct nsga2 {
    struct distinct *asked;
    size_t population, parents, children, told;
    double crossover, mutation;
    uint32_t generation;
    uint32_t *levels, *best_levels;                     /* vectors of all; of the best, while they are chosen */
    double *objectives, *best_objectives;
    struct ranked *ranked, *best;
    uint32_t *order;
};

static uint32_t *vector(const struct method *method, size_t i)
{
    const struct nsga2 *state = method->state;
    return state->levels + i * method->space->axis_count;
}

/* ---- variation of an ordered axis */

static uint32_t clamp_level(double level, uint64_t count)
{
    double most = (double)(count - 1);
    return (uint32_t)(level <= 0 ? 0 : level >= most ? most : floor(level + 0.5));
}

/* How many times as far apart as the parents two children are, which lie evenly on both sides of them. `room`: the largest
 * such factor within the bound of that side. */
static double crossover_spread(double u, double room)
{
    double alpha = 2 - pow(room, -(crossover_index + 1));
    return pow(u <= 1 / alpha ? u * alpha : 1 / (2 - u * alpha), 1 / (crossover_index + 1));
}

/* Simulated binary crossover within bounds (Deb and Agrawal, 1995). */
static void cross_levels(struct draws *draws, uint64_t count, uint32_t *a, uint32_t *b)
{
    double low = *a < *b ? *a : *b, high = *a < *b ? *b : *a, most = (double)(count - 1), distance = high - low;
    double u = draw_real(draws);
    double left = (low + high - crossover_spread(u, 1 + 2 * low / distance) * distance) / 2;
    double right = (low + high + crossover_spread(u, 1 + 2 * (most - high) / distance) * distance) / 2;
    bool exchange = draw_chance(draws, 0.5);
    *a = clamp_level(exchange ? right : left, count);
    *b = clamp_level(exchange ? left : right, count);
}

/* Polynomial mutation within bounds. It changes the level by one at least: rounding would leave short axes as they are. */
static uint32_t mutate_level(struct draws *draws, uint64_t count, uint32_t level)
{
    double most = (double)(count - 1), u = draw_real(draws), power = mutation_index + 1, change;
    if (u < 0.5)
        change = pow(2 * u + (1 - 2 * u) * pow(1 - level / most, power), 1 / power) - 1;
    else
        change = 1 - pow(2 * (1 - u) + (2 * u - 1) * pow(1 - (most - level) / most, power), 1 / power);
    uint32_t out = clamp_level(level + change * most, count);
    if (out != level)
        return out;
    bool up = level == 0 || (u >= 0.5 && level < count - 1);
    return up ? level + 1 : level - 1;
}

/* ---- variation of points */

static void cross(struct draws *draws, const struct method_space *space, uint32_t *a, uint32_t *b)
{
    for (size_t i = 0; i < space->axis_count; i++) {
        if (a[i] == b[i])
            continue;
        if (space->axes[i].ordered && draw_chance(draws, 0.5)) {
            cross_levels(draws, space->axes[i].count, &a[i], &b[i]);
        } else if (draw_chance(draws, 0.5)) {
            uint32_t level = a[i];
            a[i] = b[i];
            b[i] = level;
        }
    }
}

static void mutate(struct draws *draws, const struct method_space *space, double probability, uint32_t *levels)
{
    for (size_t i = 0; i < space->axis_count; i++) {
        uint64_t count = space->axes[i].count;
        if (count == 1 || !draw_chance(draws, probability))
            continue;
        if (space->axes[i].ordered)
            levels[i] = mutate_level(draws, count, levels[i]);
        else
            levels[i] = (uint32_t)((levels[i] + 1 + draw_below(draws, count - 1)) % count);
    }
}

/* Draws two parents and returns the better one. */
static const uint32_t *draw_parent(struct draws *draws, const struct method *method)
{
    const struct nsga2 *state = method->state;
    size_t a = draw_below(draws, state->parents), b = draw_below(draws, state->parents);
    const struct ranked *x = &state->ranked[a], *y = &state->ranked[b];
    bool first = x->front != y->front ? x->front < y->front : x->crowding >= y->crowding;
    return vector(method, first ? a : b);
}

/* Takes a child, changed until it is a point that was not asked for. */
static void add_child(struct draws *draws, struct method *method, uint32_t *levels)
{
    struct nsga2 *state = method->state;
    const struct method_space *space = method->space;
    if (state->children == state->population)
        return;
    mutate(draws, space, state->mutation, levels);
    for (unsigned try = 0; !distinct_add(state->asked, levels); try++) {
        if (try < TRIES) {
            mutate(draws, space, state->mutation, levels);
        } else {
            if (!distinct_draw(state->asked, method->known + state->children, levels))
                return;
            break;
        }
    }
    memcpy(vector(method, state->population + state->children++), levels, space->axis_count * sizeof *levels);
}

static void breed(struct method *method)
{
    struct nsga2 *state = method->state;
    const struct method_space *space = method->space;
    struct arena_mark mark = arena_mark();
    size_t bytes = space->axis_count * sizeof(uint32_t);
    uint32_t *a = arena_alloc(1, bytes), *b = arena_alloc(1, bytes);
    struct draws draws = {.seed = space->seed, .stream = STREAM_generation + state->generation};
    state->children = 0;
    for (; state->children < state->population && !distinct_all(state->asked); draws.item++) {
        draws.index = 0;
        memcpy(a, draw_parent(&draws, method), bytes);
        memcpy(b, draw_parent(&draws, method), bytes);
        if (draw_chance(&draws, state->crossover))
            cross(&draws, space, a, b);
        add_child(&draws, method, a);
        add_child(&draws, method, b);
    }
    arena_release(mark);
}

/* The first generation. A point of the hypercube that is there already is replaced by a random one. */
static void found(struct method *method)
{
    struct nsga2 *state = method->state;
    for (size_t i = 0; i < state->population; i++) {
        uint32_t *levels = vector(method, state->population + i);
        lhs_point(method->space, state->population, i, levels);
        if (!distinct_add(state->asked, levels) && !distinct_draw(state->asked, i, levels))
            return;
        state->children++;
    }
}

/* ---- selection */

/* Makes the best of parents and children the parents. */
static void select_parents(struct method *method)
{
    struct nsga2 *state = method->state;
    size_t objective_count = method->space->objective_count, axis_count = method->space->axis_count;
    /* There are fewer parents than the population only before any are chosen, or if the space is smaller than it. */
    size_t empty = state->population - state->parents, count = state->parents + state->children;
    struct ranked *candidates = state->ranked + empty;
    memmove(candidates, state->ranked, state->parents * sizeof *candidates);
    rank(candidates, count, objective_count, state->order);
    size_t chosen = count < state->population ? count : state->population;
    for (size_t i = 0; i < chosen; i++) {
        size_t from = state->order[i], place = from < state->parents ? from : from + empty;
        state->best[i] = candidates[from];
        memcpy(state->best_levels + i * axis_count, vector(method, place), axis_count * sizeof(uint32_t));
        if (!candidates[from].objectives)
            continue;
        memcpy(state->best_objectives + i * objective_count, candidates[from].objectives, objective_count * sizeof(double));
        state->best[i].objectives = state->objectives + i * objective_count;
    }
    memcpy(state->levels, state->best_levels, chosen * axis_count * sizeof(uint32_t));
    memcpy(state->objectives, state->best_objectives, chosen * objective_count * sizeof(double));
    memcpy(state->ranked, state->best, chosen * sizeof *state->ranked);
    state->parents = chosen;
}

/* ---- the method */

static void next_batch(struct method *method)
{
    struct nsga2 *state = method->state;
    state->told = 0;
    method->first = method->known;
    method->known += state->children;
    if (distinct_all(state->asked))
        method->total = method->known;
}

static void nsga2_begin(struct method *method)
{
    const struct method_space *space = method->space;
    struct nsga2 *state = method->state = arena_alloc(1, sizeof *state);
    size_t population = (size_t)space->choice.number[OPTION_nsga2_population];
    double mutation = space->choice.number[OPTION_nsga2_mutation];
    *state = (struct nsga2){
        .asked = distinct_begin(space),
        .population = population,
        .crossover = space->choice.number[OPTION_nsga2_crossover],
        .mutation = mutation > 0 ? mutation : 1 / (double)space->axis_count,
        .levels = arena_alloc(2 * population * space->axis_count, sizeof(uint32_t)),
        .best_levels = arena_alloc(population * space->axis_count, sizeof(uint32_t)),
        .objectives = arena_alloc(2 * population * space->objective_count, sizeof(double)),
        .best_objectives = arena_alloc(population * space->objective_count, sizeof(double)),
        .ranked = arena_alloc(2 * population, sizeof *state->ranked),
        .best = arena_alloc(population, sizeof *state->best),
        .order = arena_alloc(2 * population, sizeof *state->order),
    };
    method->total = METHOD_ENDLESS;
    found(method);
    next_batch(method);
}

static void nsga2_end(struct method *method)
{
    distinct_end(((struct nsga2 *)method->state)->asked);
}

static size_t place_of(const struct method *method, uint64_t number)
{
    return ((const struct nsga2 *)method->state)->population + (size_t)(number - method->first);
}

static void nsga2_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    memcpy(levels, vector(method, place_of(method, number)), method->space->axis_count * sizeof *levels);
}

static void nsga2_tell(struct method *method, uint64_t number, const struct evaluation *evaluation)
{
    struct nsga2 *state = method->state;
    size_t i = place_of(method, number), objective_count = method->space->objective_count;
    state->ranked[i] = ranked_of(evaluation, state->objectives + i * objective_count, objective_count);
    if (++state->told < state->children)
        return;
    select_parents(method);
    state->generation++;
    breed(method);
    next_batch(method);
}

const struct method_kind method_nsga2 = {
    .begin = nsga2_begin, .end = nsga2_end, .point = nsga2_point, .tell = nsga2_tell,
};
