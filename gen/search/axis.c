/* axis.c: the levels of a key of a space.
 *
 * A range's levels are computed: exactly where they are sums or doublings of what the file says, else rounded to nine
 * digits, so that every machine gets the same. Short ranges are listed once. */
#include "axis.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/read.h"
#include "../../rt/common/yaml.h"
#include "../fill.h"
#include "../replace.h"
#include "facts.h"

enum { LISTED_MOST = 4096 };

enum spacing { SPACING_STEP, SPACING_DOUBLE, SPACING_EVEN, SPACING_RATIO };

struct axis_range {
    enum spacing spacing;
    mpq_t from, to, step;                               /* in the unit that they are written in */
    const char *unit;                                   /* "": none */
    bool whole;                                         /* levels in between are whole numbers */
    struct where where;
};

/* The value of a level: a number, or a text that cannot be read as one. */
struct axis_number {
    const char *text;                                   /* equal values have equal texts */
    uint64_t level;
};

/* ---- numbers */

/* Reads a number, which may be negative, and its unit. */
static bool read_number(const struct node *node, mpq_t value, const char **unit)
{
    if (node->type != NODE_SCALAR)
        return false;
    bool negative = *node->text == '-';
    if (quantity_lex(node->text + negative, value, unit) || (!**unit && !node->plain))
        return false;
    if (negative)
        mpq_neg(value, value);
    return true;
}

/* Reads a number in base units; a bare one counts what the key's numbers count. */
static bool read_base(const struct axis *axis, const struct node *node, mpq_t value)
{
    const char *unit;
    if (!read_number(node, value, &unit))
        return false;
    const struct unit *known = unit_named(unit), *bare = axis->key ? schema_unit(axis->key) : NULL;
    enum dimension dimension = axis->key ? schema_dimension(axis->key) : known ? known->dimension : DIMENSION_none;
    return !quantity_scale(value, unit, dimension, bare);
}

/* An exact decimal, or nine digits if it has more than that many places. */
static const char *decimal(const mpq_t value)
{
    enum { PLACES_MOST = 18 };
    mpq_t scaled, ten;
    mpq_inits(scaled, ten, NULL);
    mpq_set(scaled, value);
    mpq_set_ui(ten, 10, 1);
    unsigned places = 0;
    for (; places < PLACES_MOST && mpz_cmp_ui(mpq_denref(scaled), 1); places++)
        mpq_mul(scaled, scaled, ten);
    const char *text;
    if (mpz_cmp_ui(mpq_denref(scaled), 1)) {
        text = arena_printf("%.9g", mpq_get_d(value));
    } else {
        bool negative = mpq_sgn(scaled) < 0;
        mpz_abs(mpq_numref(scaled), mpq_numref(scaled));
        char *digits = mpz_get_str(NULL, 10, mpq_numref(scaled));
        size_t length = strlen(digits), zeros = length <= places ? places + 1 - length : 0;
        const char *all = arena_printf("%0*d%s", (int)zeros, 0, digits);
        all += zeros ? 0 : 1;                           /* a width of 0 prints one zero all the same */
        length += zeros;
        text = arena_printf("%s%.*s%s%s", negative ? "-" : "", (int)(length - places), all, places ? "." : "",
                            all + length - places);
        free(digits);
    }
    mpq_clears(scaled, ten, NULL);
    return text;
}

/* A text that equal numbers, and equal texts that are no numbers, have in common. */
static const char *identity(const struct axis *axis, const struct node *node)
{
    mpq_t value;
    mpq_init(value);
    const char *text;
    if (read_base(axis, node, value)) {
        char *number = mpq_get_str(NULL, 10, value);
        text = arena_printf("%s", number);
        free(number);
    } else {
        text = arena_printf("=%s", flow_text(node));
    }
    mpq_clear(value);
    return text;
}

/* ---- ranges */

static void make_whole(mpq_t value)
{
    mpz_t twice;
    mpz_init(twice);
    mpz_mul_ui(twice, mpq_numref(value), 2);            /* half up: floor((2 n + d) / 2 d) */
    mpz_add(twice, twice, mpq_denref(value));
    mpz_mul_ui(mpq_denref(value), mpq_denref(value), 2);
    mpz_fdiv_q(twice, twice, mpq_denref(value));
    mpq_set_z(value, twice);
    mpz_clear(twice);
}

/* The number at a level of a range of `count` levels, in the unit that the range is written in. */
static void range_number(const struct axis_range *range, uint64_t count, uint64_t level, mpq_t value)
{
    mpq_t factor;
    if (level == 0) {
        mpq_set(value, range->from);
        return;
    }
    if (level == count - 1 && range->spacing > SPACING_DOUBLE) {
        mpq_set(value, range->to);
        return;
    }
    mpq_init(factor);
    switch (range->spacing) {
    case SPACING_STEP:
        mpz_set_ui(mpq_numref(factor), level);
        mpq_mul(value, range->step, factor);
        mpq_add(value, range->from, value);
        break;
    case SPACING_DOUBLE:
        mpq_mul_2exp(value, range->from, level);
        break;
    case SPACING_EVEN:
        mpz_set_ui(mpq_numref(factor), level);
        mpz_set_ui(mpq_denref(factor), count - 1);
        mpq_canonicalize(factor);
        mpq_sub(value, range->to, range->from);
        mpq_mul(value, value, factor);
        mpq_add(value, range->from, value);
        break;
    case SPACING_RATIO: {
        double from = mpq_get_d(range->from), to = mpq_get_d(range->to);
        double share = (double)level / (double)(count - 1);
        const char *unit;
        quantity_lex(arena_printf("%.9g", from * pow(to / from, share)), value, &unit);
        break;
    }
    }
    mpq_clear(factor);
    if (range->whole)
        make_whole(value);
}

static const struct node *range_node(const struct axis *axis, uint64_t level)
{
    mpq_t value;
    mpq_init(value);
    range_number(axis->range, axis->count, level, value);
    struct node *node = node_new(axis->range->where, NODE_SCALAR);
    node->text = arena_printf("%s%s%s", decimal(value), *axis->range->unit ? " " : "", axis->range->unit);
    mpq_clear(value);
    return node;
}

static const char from_key[] = "from", to_key[] = "to", step_key[] = "step", scale_key[] = "scale", count_key[] = "count";

/* Reads a number of a range; its unit must be that of the first one. */
static bool range_bound(struct axis_range *range, const struct node *values, const char *key, mpq_t value)
{
    const struct node *node = node_get(values, key);
    const char *unit;
    if (!node) {
        error_at(values->where, "a range needs '%s': { from: 32, to: 256, step: 32 }", key);
        return false;
    }
    if (!read_number(node, value, &unit)) {
        error_expected(node, key, "a number, with or without a unit", NULL);
        return false;
    }
    if (range->unit && strcmp(unit, range->unit)) {
        error_at(node->where, "'%s' must have the unit of 'from', %s", key, *range->unit ? range->unit : "none");
        return false;
    }
    range->unit = unit;
    return true;
}

/* Reads how the levels lie between both ends. */
static bool range_spacing(struct axis *axis, const struct node *values)
{
    static const char *const scales[] = {"log2", "log"};
    struct axis_range *range = axis->range;
    const struct node *step = node_get(values, step_key), *scale = node_get(values, scale_key);
    const struct node *count = node_get(values, count_key);
    unsigned which = 2;
    if (scale && !node_choice(scale, scale_key, scales, COUNT_OF(scales), &which))
        return false;
    if ((step != NULL) + (count != NULL) + (which == 0) != 1 || (which == 1 && !count)) {
        error_at(values->where, "a range has one of: 'step', 'scale: log2', 'count', or 'count' with 'scale: log'");
        return false;
    }
    range->spacing = step ? SPACING_STEP : which == 0 ? SPACING_DOUBLE : which == 1 ? SPACING_RATIO : SPACING_EVEN;
    if (count)
        return node_u64(count, count_key, 1, AXIS_LEVELS_MOST, &axis->count);
    return !step || range_bound(range, values, step_key, range->step);
}

/* Counts the levels of a range that does not say how many it has. */
static bool range_count(struct axis *axis, const struct node *values)
{
    struct axis_range *range = axis->range;
    mpq_t level;
    uint64_t count = 0;
    if (mpq_cmp(range->from, range->to) > 0) {
        error_at(values->where, "'from' is above 'to'");
        return false;
    }
    if (range->spacing != SPACING_STEP && range->spacing != SPACING_EVEN && mpq_sgn(range->from) <= 0) {
        error_at(values->where, "a range with a scale begins above 0");
        return false;
    }
    if (range->spacing > SPACING_DOUBLE) {
        if (axis->count == 1 || mpq_cmp(range->from, range->to) < 0)
            return true;
        error_at(values->where, "'from' and 'to' are equal: that is one level");
        return false;
    }
    if (range->spacing == SPACING_STEP && mpq_sgn(range->step) <= 0) {
        error_at(node_get(values, step_key)->where, "'step' must be above 0");
        return false;
    }
    mpq_init(level);
    if (range->spacing == SPACING_DOUBLE) {
        mpq_set(level, range->from);
        for (; mpq_cmp(level, range->to) <= 0; count++)
            mpq_mul_2exp(level, level, 1);
    } else {
        mpq_sub(level, range->to, range->from);
        mpq_div(level, level, range->step);
        mpz_fdiv_q(mpq_numref(level), mpq_numref(level), mpq_denref(level));
        bool few = mpz_cmp_ui(mpq_numref(level), AXIS_LEVELS_MOST) < 0;
        count = few ? mpz_get_ui(mpq_numref(level)) + 1 : AXIS_LEVELS_MOST + 1;
    }
    mpq_clear(level);
    axis->count = count;
    if (count > AXIS_LEVELS_MOST)
        error_at(values->where, "%s has more than 2^32 levels", axis->name);
    return count <= AXIS_LEVELS_MOST;
}

static void list_range(struct axis *axis)
{
    if (axis->count > LISTED_MOST)
        return;
    const struct node **list = arena_alloc(axis->count, sizeof *list);
    for (uint64_t i = 0; i < axis->count; i++)
        list[i] = range_node(axis, i);
    axis->list = list;
}

static bool read_range(struct axis *axis, const struct node *values)
{
    static const char *const names[] = {from_key, to_key, step_key, scale_key, count_key};
    unsigned errors = error_count();
    struct axis_range *range = axis->range = arena_alloc(1, sizeof *range);
    mpq_inits(range->from, range->to, range->step, NULL);
    range->where = values->where;
    node_check_keys(values, arena_printf("the range of %s", axis->name), names, COUNT_OF(names));
    bool good = range_bound(range, values, from_key, range->from);
    good &= range_bound(range, values, to_key, range->to);
    good &= range_spacing(axis, values);
    good = good && range_count(axis, values) && error_count() == errors;
    axis->ordered = true;
    if (good)
        list_range(axis);
    return good;
}

void axis_make_whole(struct axis *axis)
{
    struct axis_range *range = axis->range;
    if (!range || range->spacing <= SPACING_DOUBLE)
        return;
    range->whole = true;
    list_range(axis);
    /* Neighbours are nearest to one another at the lower end. */
    if (axis->count > 1 && !strcmp(axis_text(axis, 0), axis_text(axis, 1)))
        error_at(range->where, "%s: there are fewer whole numbers than %" PRIu64 " from %s to %s", axis->name, axis->count,
                 axis_text(axis, 0), axis_text(axis, axis->count - 1));
}

/* ---- lists */

static int by_identity(const void *a, const void *b)
{
    const struct axis_number *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->level > y->level) - (x->level < y->level);
}

/* Sorts the levels for axis_find, and reports those that are given twice. */
static bool sort_levels(struct axis *axis)
{
    bool good = true;
    axis->numbers = arena_alloc(axis->count, sizeof *axis->numbers);
    for (uint64_t i = 0; i < axis->count; i++)
        axis->numbers[i] = (struct axis_number){identity(axis, axis->list[i]), i};
    qsort(axis->numbers, axis->count, sizeof *axis->numbers, by_identity);
    for (uint64_t i = 1; i < axis->count; i++) {
        const struct axis_number *a = &axis->numbers[i - 1], *b = &axis->numbers[i];
        if (strcmp(a->text, b->text))
            continue;
        good = false;
        error_at(axis->list[b->level]->where, "%s has this value twice", axis->name);
        note_at(axis->list[a->level]->where, "it is first given here");
    }
    return good;
}

/* Whether all levels are numbers that ascend or descend. */
static bool is_ordered(const struct axis *axis)
{
    mpq_t value, before;
    int direction = 0;
    bool ordered = true;
    mpq_inits(value, before, NULL);
    for (uint64_t i = 0; ordered && i < axis->count; i++) {
        ordered = read_base(axis, axis->list[i], value);
        int step = i ? mpq_cmp(value, before) : 0;
        step = (step > 0) - (step < 0);
        ordered &= i == 0 || (step && (!direction || step == direction));
        direction = step;
        mpq_set(before, value);
    }
    mpq_clears(value, before, NULL);
    return ordered;
}

static bool read_list(struct axis *axis, const struct node *values)
{
    if (values->count == 0) {
        error_at(values->where, "%s has no values", axis->name);
        return false;
    }
    axis->count = values->count;
    axis->list = (const struct node **)values->items;
    axis->ordered = is_ordered(axis);
    return sort_levels(axis);
}

/* ---- names */

/* Lists the paths of all keys below a key. */
static void list_paths(const struct key *of, const char ***paths, size_t *count)
{
    for (size_t i = 0; i < of->count; i++) {
        *paths = arena_grow(*paths, *count, sizeof **paths);
        (*paths)[(*count)++] = of->keys[i].path;
        if (of->keys[i].kind == KIND_mapping)
            list_paths(&of->keys[i], paths, count);
    }
}

static void unknown_name(const struct axis *axis, struct where where)
{
    const char **paths = NULL, *nearest = NULL;
    size_t count = 0;
    list_paths(schema(), &paths, &count);
    error_at(where, "the topology has no key '%s'", axis->name);
    for (size_t i = 0; i < count && !nearest; i++)
        if (!strcmp(fact_short_name(paths[i]), axis->name))
            nearest = paths[i];
    if (!nearest)
        nearest = nearest_name(axis->name, paths, count);
    if (nearest)
        note_at(where, "did you mean '%s'?", nearest);
    else
        note_at(where, "kbgen --dump schema lists its keys; those of the bench begin with 'params.'");
}

/* Finds the key of a dotted name, and the entry of one that holds numbers by name. */
static bool find_key(struct axis *axis, struct where where)
{
    const struct key *key = schema();
    const char *at = axis->name;
    for (size_t length; *at; at += length + (at[length] == '.')) {
        length = strcspn(at, ".");
        if (key->kind == KIND_dtypes || key->kind == KIND_ops)
            break;
        key = schema_key(key, arena_text(at, length));
        if (!key || (at[length] == '.' && !at[length + 1])) {
            unknown_name(axis, where);
            return false;
        }
    }
    axis->key = key;
    axis->entry = *at ? at : NULL;
    if (key->kind == KIND_path) {
        error_at(where, "'%s' cannot differ from point to point", axis->name);
        return false;
    }
    return true;
}

static bool find_param(struct axis *axis, struct where where)
{
    const char *name = axis->name + strlen(AXIS_PARAMS), *dot = strchr(name, '.');
    axis->workload = dot ? arena_text(name, (size_t)(dot - name)) : NULL;
    axis->param = dot ? dot + 1 : name;
    if (is_identifier(axis->param) && (!dot || is_identifier(axis->workload)))
        return true;
    error_at(where, "'%s' must be params.NAME or params.WORKLOAD.NAME", axis->name);
    return false;
}

/* ---- values against the schema */

static void check_value(const struct axis *axis, const struct node *value)
{
    if (!axis->entry) {
        fill_alone(axis->key, value);
        return;
    }
    struct node *key = node_new(axis->where, NODE_SCALAR), *around = node_new(value->where, NODE_MAPPING);
    key->text = axis->entry;
    node_add(around, key, (struct node *)value);
    fill_alone(axis->key, around);
}

/* Checks each level by itself. The ends of a range and its first step tell of all its levels. */
static void check_values(const struct axis *axis)
{
    if (!axis->range) {
        for (uint64_t i = 0; i < axis->count; i++)
            check_value(axis, axis->list[i]);
        return;
    }
    const uint64_t levels[] = {0, axis->count - 1, 1};
    unsigned errors = error_count();
    for (size_t i = 0; i < COUNT_OF(levels) && error_count() == errors; i++)
        if (levels[i] < axis->count)
            check_value(axis, axis_node(axis, levels[i]));
}

/* Whether a key takes no numbers between whole base units. */
static bool takes_whole(const struct axis *axis)
{
    enum kind kind = axis->key->kind;
    return kind == KIND_count || kind == KIND_count_limit || kind == KIND_dtypes || kind == KIND_ops
        || ((kind == KIND_size || kind == KIND_size_limit) && axis->range && !strcmp(axis->range->unit, "B"));
}

bool axis_read(struct axis *axis, const struct node *name, const struct node *values)
{
    unsigned errors = error_count();
    *axis = (struct axis){.name = name->text, .where = name->where};
    struct where where = name->where;
    bool good = !strncmp(name->text, AXIS_PARAMS, strlen(AXIS_PARAMS)) ? find_param(axis, where) : find_key(axis, where);
    if (values->type == NODE_SEQUENCE)
        good &= read_list(axis, values);
    else if (values->type == NODE_MAPPING)
        good &= read_range(axis, values);
    else {
        error_expected(values, axis->name, "a list of values or a range such as { from: 32, to: 256, step: 32 }", NULL);
        return false;
    }
    if (!good)
        return false;
    if (axis->key && takes_whole(axis))
        axis_make_whole(axis);
    if (axis->key && error_count() == errors)
        check_values(axis);
    return error_count() == errors;
}

/* ---- levels */

const struct node *axis_node(const struct axis *axis, uint64_t level)
{
    return axis->list ? axis->list[level] : range_node(axis, level);
}

const char *axis_text(const struct axis *axis, uint64_t level)
{
    return flow_text(axis_node(axis, level));
}

/* Finds the level of a long range by bisection: levels ascend. */
static bool find_in_range(const struct axis *axis, const struct node *value, uint64_t *level)
{
    mpq_t wanted, at;
    mpq_inits(wanted, at, NULL);
    bool found = false;
    if (read_base(axis, value, wanted)) {
        uint64_t low = 0, high = axis->count;
        while (low < high) {
            struct arena_mark mark = arena_mark();
            *level = low + (high - low) / 2;
            read_base(axis, axis_node(axis, *level), at);
            arena_release(mark);
            int order = mpq_cmp(at, wanted);
            if ((found = order == 0))
                break;
            if (order < 0)
                low = *level + 1;
            else
                high = *level;
        }
    }
    mpq_clears(wanted, at, NULL);
    return found;
}

bool axis_find(const struct axis *axis, const struct node *value, uint64_t *level)
{
    if (!axis->numbers)
        return find_in_range(axis, value, level);
    const char *text = identity(axis, value);
    uint64_t low = 0, high = axis->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = strcmp(axis->numbers[middle].text, text);
        if (order == 0) {
            *level = axis->numbers[middle].level;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}
