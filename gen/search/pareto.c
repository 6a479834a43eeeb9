/* pareto.c: the Pareto front of points, by sorting and one sweep. */
#define _GNU_SOURCE                                     /* qsort_r */

#include "pareto.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/fail.h"

struct points {
    const objective_value *values;
    size_t objectives;
};

static int compare_values(const objective_value *a, const objective_value *b, size_t objectives)
{
    for (size_t i = 0; i < objectives; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int compare(const void *left, const void *right, void *arg)
{
    const struct points *points = arg;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = compare_values(points->values + a * points->objectives, points->values + b * points->objectives, points->objectives);
    return order ? order : (a > b) - (a < b);
}

static void sort(const objective_value *values, size_t count, size_t objectives, uint32_t *order)
{
    struct points points = {values, objectives};
    qsort_r(order, count, sizeof *order, compare, &points);
}

void pareto_sort(const objective_value *values, size_t count, size_t objectives, uint32_t *order)
{
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    sort(values, count, objectives, order);
}

static bool as_good(const objective_value *a, const objective_value *b, size_t objectives)
{
    for (size_t i = 0; i < objectives; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

/* The point with the least sum of objectives, each as a share of its range: it dominates most of the others. */
static const objective_value *strongest(const objective_value *values, size_t count, size_t objectives)
{
    const objective_value *best = NULL;
    objective_value least = 0;
    objective_value *low = calloc(2 * objectives + 1, sizeof *low), *scale = low + objectives;
    if (!low)
        die("not enough memory for %zu objectives", objectives);
    for (size_t j = 0; j < objectives; j++) {
        objective_value high = low[j] = count ? values[j] : 0;
        for (size_t i = 1; i < count; i++) {
            objective_value value = values[i * objectives + j];
            low[j] = value < low[j] ? value : low[j];
            high = value > high ? value : high;
        }
        scale[j] = high > low[j] ? 1 / (high - low[j]) : 0;
    }
    for (size_t i = 0; i < count; i++) {
        objective_value sum = 0;
        for (size_t j = 0; j < objectives; j++)
            sum += (values[i * objectives + j] - low[j]) * scale[j];
        if (!best || sum < least)
            best = values + i * objectives, least = sum;
    }
    free(low);
    return best;
}

/* Whether one of `found` points of the front dominates a point that comes later in the order and equals none of them. Of
 * two objectives, the last one of the front has the best second one, so only it can. Of more, one that dominates a point
 * moves forward: it is likely to dominate the next ones. */
static bool is_dominated(const struct points *points, uint32_t *tried, size_t found, const objective_value *point)
{
    size_t objectives = points->objectives;
    if (objectives <= 2)
        return found && as_good(points->values + tried[found - 1] * objectives, point, objectives);
    for (size_t i = 0; i < found; i++)
        if (as_good(points->values + tried[i] * objectives, point, objectives)) {
            uint32_t winner = tried[i];
            memmove(tried + i / 2 + 1, tried + i / 2, (i - i / 2) * sizeof *tried);
            tried[i / 2] = winner;
            return true;
        }
    return false;
}

size_t pareto_front(const objective_value *values, size_t count, size_t objectives, uint32_t *order)
{
    const objective_value *strong = strongest(values, count, objectives);
    size_t left = 0;                                    /* what it does not dominate is sorted */
    for (size_t i = 0; i < count; i++) {
        const objective_value *point = values + i * objectives;
        if (!as_good(strong, point, objectives) || !compare_values(strong, point, objectives))
            order[left++] = (uint32_t)i;
    }
    count = left;
    sort(values, count, objectives, order);
    struct points points = {values, objectives};
    uint32_t *tried = malloc((count + 1) * sizeof *tried);      /* a point for each vector of the front */
    if (!tried)
        die("not enough memory for %zu points", count);
    size_t front = 0, vectors = 0;
    const objective_value *last = NULL;                 /* of the front */
    for (size_t i = 0; i < count; i++) {
        const objective_value *point = values + order[i] * objectives;
        bool same = last && !compare_values(last, point, objectives);
        if (!same && is_dominated(&points, tried, vectors, point))
            continue;
        if (!same)
            tried[vectors++] = order[i];
        last = point;
        order[front++] = order[i];
    }
    free(tried);
    return front;
}
