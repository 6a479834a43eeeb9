/* sampling.c: grid, list, random, lhs. */
#include "sampling.h"

#include <string.h>

#include "draw.h"

/* ---- grid: the digits of the number, in a mixed radix; numbers end at 2^64, so of a larger grid only the first keys' first
 * levels are there */

static void grid_begin(struct method *method)
{
    method->total = method->known = method_space_size(method->space);
}

static void grid_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    const struct method_space *space = method->space;
    for (size_t i = space->axis_count; i-- > 0; number /= space->axes[i].count)
        levels[i] = (uint32_t)(number % space->axes[i].count);
}

const struct method_kind method_grid = {.begin = grid_begin, .point = grid_point};

/* ---- list */

static void list_begin(struct method *method)
{
    method->total = method->known = method->space->listed_count;
}

static void list_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    size_t count = method->space->axis_count;
    memcpy(levels, method->space->listed + number * count, count * sizeof *levels);
}

const struct method_kind method_list = {.begin = list_begin, .point = list_point};

/* ---- random */

static void random_begin(struct method *method)
{
    method->total = method->known = METHOD_ENDLESS;
}

static void random_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    const struct method_space *space = method->space;
    for (size_t i = 0; i < space->axis_count; i++)
        levels[i] = (uint32_t)draw_scale(draw_bits(space->seed, STREAM_point, number, (uint32_t)i), space->axes[i].count);
}

const struct method_kind method_random = {.begin = random_begin, .point = random_point};

/* ---- lhs */

#define LHS_MOST (UINT64_C(1) << 32)

static const char *lhs_refusal(const struct method_space *space)
{
    if (space->points == 0)
        return "lhs needs a budget of points: it divides each key into that many parts";
    return space->points > LHS_MOST ? "lhs has at most 2^32 points" : NULL;
}

static void lhs_begin(struct method *method)
{
    method->total = method->known = method->space->points;
}

/* A point lies at a random place of its part. In units of 2^-32 of a part, places are whole numbers below n * 2^32, and
 * `count` levels divide them evenly. */
void lhs_point(const struct method_space *space, uint64_t n, uint64_t k, uint32_t *levels)
{
    for (size_t i = 0; i < space->axis_count; i++) {
        uint64_t part = draw_permuted(space->seed, (uint32_t)i, k, n);
        uint64_t within = draw_bits(space->seed, STREAM_stratum, k, (uint32_t)i) >> 32;
        unsigned __int128 place = (unsigned __int128)(part << 32 | within) * space->axes[i].count;
        levels[i] = (uint32_t)(place / ((unsigned __int128)n << 32));
    }
}

static void lhs_numbered(const struct method *method, uint64_t number, uint32_t *levels)
{
    lhs_point(method->space, method->space->points, number, levels);
}

const struct method_kind method_lhs = {.refusal = lhs_refusal, .begin = lhs_begin, .point = lhs_numbered};
