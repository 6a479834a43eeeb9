/* best.c: the best points of a search. */
#include "best.h"

#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/array.h"
#include "../../rt/common/fail.h"
#include "pareto.h"

struct candidates ARRAY(struct row);
struct values ARRAY(objective_value);

/* Reads an objective of a good point, so that less is better. Returns false if it is no number. */
static bool read_objective(const struct stored_objective *objective, sqlite3_stmt *query, int column, objective_value *value)
{
    int type = sqlite3_column_type(query, column);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return false;
    *value = type == SQLITE_INTEGER ? (objective_value)sqlite3_column_int64(query, column) : (objective_value)sqlite3_column_double(query, column);
    if (objective->largest)
        *value = -*value;
    return true;
}

/* Reads the points that may be on the front, with their objectives. */
static struct census read_candidates(const struct stored *stored, const struct stored_points *points, struct candidates *candidates,
                                     struct values *values)
{
    struct census census = {0};
    const char *list = "";
    for (size_t i = 0; i < stored->objective_count; i++)
        list = arena_printf("%s, %s", list, stored->objectives[i].column->quoted);
    sqlite3_stmt *query = stored_query(stored, "SELECT hash, status = 'ok', %s%s FROM point", stored->partial, list);
    while (stored_next(stored, query)) {
        struct point_hash hash = stored_hash(stored, query, 0);
        const struct stored_point *known = stored_point(points, hash);
        if (!known)
            continue;
        bool good = sqlite3_column_int(query, 1);
        census.points++;
        census.failed += !good;
        bool partial = sqlite3_column_int(query, 2);
        census.partial += good && partial;
        census.infeasible += good && !partial && known->infeasible;
        if (!good || partial || known->infeasible)
            continue;
        array_reserve(values, values->count + stored->objective_count);
        bool whole = true;
        for (size_t i = 0; i < stored->objective_count; i++)
            whole &= read_objective(&stored->objectives[i], query, 3 + (int)i, &values->at[values->count + i]);
        census.without += !whole;
        if (!whole)
            continue;
        values->count += stored->objective_count;
        *array_add(candidates) = (struct row){hash, known->number, 1, false};
    }
    return census;
}

static bool is_same(const objective_value *a, const objective_value *b, size_t objectives)
{
    for (size_t i = 0; i < objectives; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static int by_trial(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return (a->trial > b->trial) - (a->trial < b->trial);
}

/* Adds the rows of points with equal objectives, by trial: with `ties` all of them, else the first one. */
static void add_group(const struct candidates *candidates, const uint32_t *members, size_t count, bool ties, struct candidates *front)
{
    size_t first = front->count;
    for (size_t i = 0; i < count; i++) {
        struct row row = candidates->at[members[i]];
        row.same = count;
        *array_add(front) = row;
    }
    qsort(front->at + first, count, sizeof *front->at, by_trial);
    if (!ties)
        front->count = first + 1;
}

/* Lists the front in the order of its objectives; with one objective, the best points. */
static void list_front(const struct candidates *candidates, const struct values *values, size_t objectives, bool ties, uint64_t most,
                       struct candidates *front)
{
    uint32_t *order = malloc((candidates->count + 1) * sizeof *order);
    if (!order)
        die("not enough memory for %zu points", candidates->count);
    size_t count = candidates->count;
    if (objectives == 1)
        pareto_sort(values->at, count, objectives, order);
    else
        count = pareto_front(values->at, count, objectives, order);
    for (size_t i = 0, next; i < count && front->count < most; i = next) {
        for (next = i + 1; next < count && is_same(&values->at[order[i] * objectives], &values->at[order[next] * objectives], objectives);)
            next++;
        add_group(candidates, order + i, next - i, ties, front);
    }
    if (front->count > most)
        front->count = most;
    free(order);
}

struct best best_points(const struct stored *stored, const struct stored_points *points, bool ties, uint64_t most)
{
    struct candidates candidates = {0}, front = {0};
    struct values values = {0};
    struct census census = read_candidates(stored, points, &candidates, &values);
    list_front(&candidates, &values, stored->objective_count, ties, most, &front);
    array_free(&candidates);
    array_free(&values);
    return (struct best){census, front.at, front.count};
}
