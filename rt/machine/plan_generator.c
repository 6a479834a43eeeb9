/* plan_generator.c: plans that a user's generator makes, and the check that they cover the result of a composite once.
 *
 * Tiles are sorted by the first row and column of their output tile, which brings the tiles of an output tile together.
 * Above them runs a skyline: how many rows of each column are covered. An output tile must stand on it without a step. */
#include "plan_generator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "common/arena.h"
#include "common/array.h"

enum { TILES_MOST = 1 << 20 };

extern const struct kb_plan *const __start_kb_plans[] __attribute__((weak));
extern const struct kb_plan *const __stop_kb_plans[] __attribute__((weak));

const struct kb_plan *plan_generator(void)
{
    bool none = (uintptr_t)__start_kb_plans == (uintptr_t)__stop_kb_plans;      /* weak: both NULL */
    return none ? NULL : __start_kb_plans[0];
}

/* A step of the covered area: its columns go from the end of the step before to `end`, and the same number of rows is
 * covered in all of them. Tile `by` covered the last of these rows. */
struct step {
    uint64_t end, rows, by;
};

static struct ARRAY(struct planned_tile) tiles;                 /* by number */
static struct ARRAY(const struct planned_tile *) sorted;
static struct ARRAY(struct step) skyline, raised;

static const char *tile_name(const struct planned_tile *t)
{
    return arena_printf("tile %" PRIu64 " (rows from %" PRIu64 ", %" PRIu64 " of them; columns from %" PRIu64 ", %" PRIu64
                        "; k from %" PRIu64 ", %" PRIu64 ")", t->id, t->i_m, t->m, t->i_n, t->n, t->i_k, t->k);
}

/* ---- the tiles */

static const char *ask_for_tiles(const struct kb_plan *plan, const struct kb_plan_request *ask)
{
    tiles.count = 0;
    for (uint64_t number = 0; ; number++) {
        struct kb_plan_tile t = plan->tile(ask, number), again = plan->tile(ask, number), none = {0};
        if (memcmp(&t, &again, sizeof t))
            return arena_printf("tile %" PRIu64 " is another one when it is asked for again: a plan is a pure function",
                                number);
        if (!memcmp(&t, &none, sizeof t))
            return number ? NULL : "it has no tile";
        if (number == TILES_MOST)
            return arena_printf("it has more than %d tiles", TILES_MOST);
        struct planned_tile tile = {.id = number, .i_m = t.m0, .i_k = t.k0, .i_n = t.n0, .m = t.m, .k = t.k, .n = t.n};
        bool inside = t.m && t.k && t.n && t.m0 < ask->m && t.m <= ask->m - t.m0 && t.k0 < ask->k
                      && t.k <= ask->k - t.k0 && t.n0 < ask->n && t.n <= ask->n - t.n0;
        if (!inside)
            return arena_printf("%s is empty or not within %" PRIu64 " x %" PRIu64 " x %" PRIu64 " (m, k, n)",
                                tile_name(&tile), ask->m, ask->k, ask->n);
        *array_add(&tiles) = tile;
    }
}

static bool same_output(const struct planned_tile *a, const struct planned_tile *b)
{
    return a->i_m == b->i_m && a->i_n == b->i_n && a->m == b->m && a->n == b->n;
}

static int by_output(const void *x, const void *y)
{
    const struct planned_tile *a = *(const struct planned_tile *const *)x, *b = *(const struct planned_tile *const *)y;
    if (a->i_m != b->i_m)
        return a->i_m < b->i_m ? -1 : 1;
    if (a->i_n != b->i_n)
        return a->i_n < b->i_n ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Checks the parts of k of the output tile that begins at sorted[*next], and passes over its tiles. */
static const char *check_parts(const struct kb_plan_request *ask, bool parts_are_asked, size_t *next)
{
    const struct planned_tile *first = sorted.at[*next];
    uint64_t end = 0;
    for (; *next < sorted.count && same_output(first, sorted.at[*next]); ++*next) {
        const struct planned_tile *t = sorted.at[*next];
        if (t->i_k < end)
            return arena_printf("%s has a part of k that tiles of its output before it have", tile_name(t));
        if (t->i_k > end)
            return arena_printf("%s comes before k %" PRIu64 " of its output, which is in no tile before it", tile_name(t),
                                end);
        end = t->i_k + t->k;
        uint64_t left = ask->k - t->i_k, asked = left < ask->tile_k ? left : ask->tile_k;
        if (parts_are_asked && t->k != asked)
            return arena_printf("%s has not the part of k that the kernel asks for, %" PRIu64 ", as an epilogue of scope "
                                "k_tile needs", tile_name(t), ask->tile_k);
    }
    if (end < ask->k)
        return arena_printf("k %" PRIu64 " of the output of %s is in no tile", end, tile_name(first));
    return NULL;
}

/* Puts an output tile on the skyline. */
static const char *put(const struct planned_tile *t)
{
    uint64_t begin = 0, end = t->i_n + t->n;
    bool is_put = false;
    raised.count = 0;
    for (size_t i = 0; i < skyline.count; begin = skyline.at[i++].end) {
        struct step step = skyline.at[i];
        if (step.end <= t->i_n || begin >= end) {
            *array_add(&raised) = step;
            continue;
        }
        if (step.rows > t->i_m)
            return arena_printf("%s overlaps tile %" PRIu64, tile_name(t), step.by);
        if (step.rows < t->i_m)
            return arena_printf("row %" PRIu64 ", column %" PRIu64 " of the result is in no tile", step.rows,
                                begin > t->i_n ? begin : t->i_n);
        if (begin < t->i_n)
            *array_add(&raised) = (struct step){t->i_n, step.rows, step.by};
        if (!is_put)
            *array_add(&raised) = (struct step){end, t->i_m + t->m, t->id};
        is_put = true;
        if (step.end > end)
            *array_add(&raised) = step;
    }
    skyline.count = 0;
    for (size_t i = 0; i < raised.count; i++)
        *array_add(&skyline) = raised.at[i];
    return NULL;
}

static const char *check_tiles(const struct kb_plan_request *ask, bool parts_are_asked)
{
    sorted.count = skyline.count = 0;
    for (size_t i = 0; i < tiles.count; i++)
        *array_add(&sorted) = &tiles.at[i];
    qsort(sorted.at, sorted.count, sizeof *sorted.at, by_output);
    *array_add(&skyline) = (struct step){ask->n, 0, 0};
    for (size_t next = 0; next < sorted.count;) {
        const struct planned_tile *first = sorted.at[next];
        const char *wrong = put(first);
        if (!wrong)
            wrong = check_parts(ask, parts_are_asked, &next);
        if (wrong)
            return wrong;
        tiles.at[sorted.at[next - 1]->id].kind = TILE_STORES;
    }
    uint64_t begin = 0;
    for (size_t i = 0; i < skyline.count; begin = skyline.at[i++].end)
        if (skyline.at[i].rows < ask->m)
            return arena_printf("row %" PRIu64 ", column %" PRIu64 " of the result is in no tile", skyline.at[i].rows,
                                begin);
    return NULL;
}

const char *plan_generate(const struct kb_plan *plan, const struct command *command, const struct planned_tile **out,
                          uint64_t *count)
{
    const struct request *given = &command->ask;
    bool is_math = given->kind == COMMAND_math_tiles;
    struct kb_plan_request ask = {
        .is_math = is_math, .dtype = (enum kb_dtype)given->dtype, .out_dtype = (enum kb_dtype)given->out_dtype,
        .pinned_a = given->pinned[OPERAND_A], .pinned_b = given->pinned[OPERAND_B],
        .m = given->m, .k = is_math ? 1 : given->k, .n = given->n,
        .tile_m = given->tile_m, .tile_k = is_math ? 1 : given->tile_k, .tile_n = given->tile_n,
        .buffer_bytes = kb_attrs.pe_tcm_reserved_bytes};
    const char *wrong = ask_for_tiles(plan, &ask);
    if (!wrong)
        wrong = check_tiles(&ask, command->epilogue_count[SCOPE_K_TILE] > 0);
    if (wrong)
        return wrong;
    tiles.at[tiles.count - 1].kind = TILE_LAST;
    *out = tiles.at;
    *count = tiles.count;
    return NULL;
}
