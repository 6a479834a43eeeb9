/* ranking.c: sorts points into fronts and orders them.
 *
 * Fronts of points without violations are found by efficient non-dominated sort with binary search (Zhang, Tian, Cheng and
 * Jin, "An efficient approach to nondominated sorting", 2015): points in the order of their objectives are never
 * dominated by a later one, so each goes to the first front none of whose points dominates it. */
#include "ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/array.h"

struct ranked ranked_of(const struct evaluation *evaluation, double *objectives, size_t objective_count)
{
    struct ranked out = {.violated = evaluation->failed ? RANK_FAILED : evaluation->violated};
    if (out.violated)
        return out;
    memcpy(objectives, evaluation->objectives, objective_count * sizeof *objectives);
    for (size_t i = 0; i < objective_count; i++)
        if (isnan(objectives[i]))
            out.violated = RANK_FAILED;
    out.objectives = objectives;
    return out;
}

/* ---- orders; qsort has no argument for its comparison, and kbgen is one thread */

static const struct ranked *sorted;
static size_t sorted_objectives, sorted_objective;

static int by_index(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_objectives(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const double *x = sorted[i].objectives, *y = sorted[j].objectives;
    for (size_t k = 0; k < sorted_objectives; k++)
        if (x[k] != y[k])
            return x[k] < y[k] ? -1 : 1;
    return by_index(i, j);
}

static int by_one_objective(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    double x = sorted[i].objectives[sorted_objective], y = sorted[j].objectives[sorted_objective];
    return x != y ? (x < y ? -1 : 1) : by_index(i, j);
}

static int by_rank(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct ranked *x = &sorted[i], *y = &sorted[j];
    if (x->front != y->front)
        return x->front < y->front ? -1 : 1;
    return x->crowding != y->crowding ? (x->crowding > y->crowding ? -1 : 1) : by_index(i, j);
}

static int by_violation(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint32_t x = sorted[i].violated, y = sorted[j].violated;
    return x != y ? (x < y ? -1 : 1) : by_index(i, j);
}

/* ---- fronts */

struct front ARRAY(uint32_t);

static bool dominates(const struct ranked *a, const struct ranked *b, size_t objective_count)
{
    bool better = false;
    for (size_t k = 0; k < objective_count; k++) {
        if (a->objectives[k] > b->objectives[k])
            return false;
        better |= a->objectives[k] < b->objectives[k];
    }
    return better;
}

/* Whether a point of a front dominates one that comes after all of them. Of two objectives, the second one of a front
 * falls from point to point: if the last point does not dominate, none does. */
static bool front_dominates(const struct ranked *points, const struct front *front, uint32_t point, size_t objective_count)
{
    size_t least = objective_count <= 2 ? front->count - 1 : 0;
    for (size_t i = front->count; i-- > least;)
        if (dominates(&points[front->at[i]], &points[point], objective_count))
            return true;
    return false;
}

/* The distance of the neighbours on both sides, summed over objectives as parts of the front's extent. */
static void find_crowding(struct ranked *points, struct front *front, size_t objective_count)
{
    for (size_t i = 0; i < front->count; i++)
        points[front->at[i]].crowding = 0;
    for (size_t k = 0; k < objective_count; k++) {
        sorted_objective = k;
        qsort(front->at, front->count, sizeof *front->at, by_one_objective);
        const uint32_t *at = front->at;
        size_t last = front->count - 1;
        double extent = points[at[last]].objectives[k] - points[at[0]].objectives[k];
        points[at[0]].crowding = points[at[last]].crowding = INFINITY;
        for (size_t i = 1; i < last && extent > 0 && isfinite(extent); i++)
            points[at[i]].crowding += (points[at[i + 1]].objectives[k] - points[at[i - 1]].objectives[k]) / extent;
    }
}

/* Sorts points without violations, which `order` has, into fronts. Returns how many fronts there are. */
static uint32_t find_fronts(struct ranked *points, uint32_t *order, size_t count, size_t objective_count)
{
    struct ARRAY(struct front) fronts = {0};
    qsort(order, count, sizeof *order, by_objectives);
    for (size_t i = 0; i < count; i++) {
        size_t low = 0, high = fronts.count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (front_dominates(points, &fronts.at[middle], order[i], objective_count))
                low = middle + 1;
            else
                high = middle;
        }
        if (low == fronts.count)
            *array_add(&fronts) = (struct front){0};
        *array_add(&fronts.at[low]) = order[i];
        points[order[i]].front = (uint32_t)low;
    }
    uint32_t front_count = (uint32_t)fronts.count;
    for (size_t i = 0; i < front_count; i++) {
        find_crowding(points, &fronts.at[i], objective_count);
        array_free(&fronts.at[i]);
    }
    array_free(&fronts);
    return front_count;
}

/* Points that violate equally many conditions are one front: their objectives are not compared, since those that were
 * refused before a run have none. */
void rank(struct ranked *points, size_t count, size_t objective_count, uint32_t *order)
{
    sorted = points;
    sorted_objectives = objective_count;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort(order, count, sizeof *order, by_violation);
    size_t good = 0;
    while (good < count && points[order[good]].violated == 0)
        good++;
    uint32_t front = find_fronts(points, order, good, objective_count);
    for (size_t i = good; i < count; i++) {
        front += i > good && points[order[i]].violated != points[order[i - 1]].violated;
        points[order[i]].front = front;
        points[order[i]].crowding = 0;
    }
    qsort(order, count, sizeof *order, by_rank);
}
