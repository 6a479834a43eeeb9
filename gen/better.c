/* better.c: a better number for each key of a machine: which direction that is, schema.def says.
 *
 * A changed value is a whole number of base units (a length and a ratio need not be), and differs from the old one by at
 * least one of them. It stays within the bounds of its key. */
#include "better.h"

#include <math.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/read.h"
#include "../rt/common/yaml.h"
#include "schema.h"

struct listing {
    const struct model *model;
    struct better_by by;
    struct better_keys keys;
};

const char *place_text(struct where where)
{
    if (!where.file)
        return "default";
    if (!strcmp(where.file->path, "--set"))
        return "--set";
    return arena_printf("%s:%u", where.file->path, where.line);
}

static const char *number_text(const struct key *key, double base_units)
{
    const struct unit *unit = schema_unit(key);
    if (!unit)
        return arena_printf("%.6g", base_units);
    return arena_printf("%.6g %s", base_units * (double)unit->down / (double)unit->up, unit->name);
}

static double bound(const struct key *key, const char *text)
{
    mpq_t value;
    mpq_init(value);
    schema_number(key, text, value);
    double bound = mpq_get_d(value);
    mpq_clear(value);
    return bound;
}

/* Whether a key takes numbers between whole base units: it is multiplied by another one before it is rounded. */
static bool is_fine(const struct key *key)
{
    return key->kind == KIND_length || key->kind == KIND_ratio;
}

/* Returns the number that is better than `value`, which is above 0, in base units; `value` if no number is better. */
static double better_number(const struct key *key, double value, struct better_by by)
{
    bool less = key->better == BETTER_LESS;
    double least = key->least ? bound(key, key->least) : 1, most = bound(key, key->most);
    if (by.infinite)
        return less ? least : value;
    double changed = value * (less ? by.down : by.up);
    if (!is_fine(key)) {
        changed = floor(changed + 0.5);
        if (changed == value)
            changed += less ? -1 : 1;
    }
    return fmin(fmax(changed, least), most);
}

static const char *base_text(const struct key *key, double value)
{
    const struct unit *base = unit_base(schema_dimension(key));
    const char *number = arena_printf(is_fine(key) ? "%.12g" : "%.0f", value);
    return base ? arena_printf("%s %s", number, base->name) : number;
}

/* Lists a number in base units. 0 of a bandwidth is no limit, else nothing that could be less. */
static void list_number(struct listing *listing, const struct key *key, const char *path, struct where where, double value)
{
    struct better_keys *keys = &listing->keys;
    bool is_bandwidth = key->kind == KIND_bandwidth;
    struct better_key row = {
        .path = path, .place = place_text(where), .value = number_text(key, value), .number = value,
        .least = key->least ? bound(key, key->least) : 1, .most = bound(key, key->most), .whole = !is_fine(key),
        .more_is_better = key->better == BETTER_MORE, .unlimited = is_bandwidth, .dimension = schema_dimension(key),
        .shown = schema_unit(key), .base = unit_base(schema_dimension(key))};
    bool unlimited = listing->by.infinite && is_bandwidth;
    if (value == 0 && is_bandwidth)
        row.value = "no limit";
    double changed = value > 0 ? better_number(key, value, listing->by) : value;
    if (value > 0 && (unlimited || changed != value)) {
        row.changed = unlimited ? "no limit" : number_text(key, changed);
        row.share = unlimited ? 1 : key->better == BETTER_LESS ? 1 - changed / value : 1 - value / changed;
        row.set = unlimited ? "~" : base_text(key, changed);
        row.keys = read_set(arena_printf("%s=%s", path, row.set));
    }
    keys->list = arena_grow(keys->list, keys->count, sizeof *keys->list);
    keys->list[keys->count++] = row;
}

static void list_values(struct listing *listing, const struct key *key, const struct value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].n)
            list_number(listing, key, values[i].key, values[i].where, (double)values[i].n);
}

/* Lists a length or a ratio. The model has no number for it, so its value is read from the topology, in base units. */
static void list_text(struct listing *listing, const struct key *key, const struct node *node)
{
    struct source source = {key->path, key->standard, strlen(key->standard), 0};
    struct where where = node ? node->where : (struct where){0};
    mpq_t value;
    mpq_init(value);
    node_number(node ? node : yaml_value(&source, 0), schema_dimension(key), schema_unit(key), value);
    list_number(listing, key, key->path, where, mpq_get_d(value));
    mpq_clear(value);
}

/* `node`: that of the key in the topology, or NULL. */
static void list_key(struct listing *listing, const struct key *key, const struct node *node)
{
    const struct model *model = listing->model;
    const struct value *value = (const void *)((const char *)model + key->target);
    if (key->kind == KIND_mapping)
        for (size_t i = 0; i < key->count; i++)
            list_key(listing, &key->keys[i], node ? node_get(node, key->names[i]) : NULL);
    else if (key->better != BETTER_LESS && key->better != BETTER_MORE)
        return;
    else if (is_fine(key))
        list_text(listing, key, node);
    else if (key->kind == KIND_dtypes)
        list_values(listing, key, value, DTYPES);
    else if (key->kind == KIND_ops)
        for (unsigned i = 0; i < model->ops_count; i++)
            list_values(listing, key, &model->ops[i].cost, 1);
    else
        list_number(listing, key, key->path, value->where, (double)value->n);
}

struct better_keys better_keys_of(const struct model *model, struct better_by by)
{
    struct listing listing = {.model = model, .by = by};
    list_key(&listing, schema(), model->top);
    return listing.keys;
}
