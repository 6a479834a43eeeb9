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
#include "replace.h"
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

/* Lists a number in base units, without `keys`, and with the value alone in `set`. A limit of 0 means that there is no limit;
 * any other number of 0 cannot be less. The row holds until the next one. */
static struct better_key *list_number(struct listing *listing, const struct key *key, const char *path, struct where where, double value)
{
    struct better_keys *keys = &listing->keys;
    bool is_limit = schema_is_limit(key);
    struct better_key row = {
        .path = path, .place = place_text(where), .value = number_text(key, value), .number = value,
        .least = key->least ? bound(key, key->least) : 1, .most = bound(key, key->most), .whole = !is_fine(key),
        .more_is_better = key->better != BETTER_LESS, .unlimited = is_limit, .dimension = schema_dimension(key),
        .shown = schema_unit(key), .base = unit_base(schema_dimension(key))};
    bool unlimited = listing->by.infinite && is_limit;
    if (value == 0 && is_limit)
        row.value = "no limit";
    double changed = value > 0 ? better_number(key, value, listing->by) : value;
    if (value > 0 && (unlimited || changed != value)) {
        row.changed = unlimited ? "no limit" : number_text(key, changed);
        row.share = unlimited ? 1 : key->better == BETTER_LESS ? 1 - changed / value : 1 - value / changed;
        row.set = unlimited ? "~" : base_text(key, changed);
    }
    keys->list = arena_grow(keys->list, keys->count, sizeof *keys->list);
    keys->list[keys->count] = row;
    return &keys->list[keys->count++];
}

/* Lists a number that --set can replace. */
static void list_settable(struct listing *listing, const struct key *key, const char *path, struct where where, double value)
{
    struct better_key *row = list_number(listing, key, path, where, value);
    if (!row->changed)
        return;
    row->set = arena_printf("%s=%s", path, row->set);
    row->keys = read_set(row->set);
}

static void list_values(struct listing *listing, const struct key *key, const struct value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].n)
            list_settable(listing, key, values[i].key, values[i].where, (double)values[i].n);
}

/* Lists a length or a ratio. The model has no number for it, so its value is read from the topology, in base units. */
static void list_text(struct listing *listing, const struct key *key, const struct node *node)
{
    struct source source = {key->path, key->standard, strlen(key->standard), 0};
    struct where where = node ? node->where : (struct where){0};
    mpq_t value;
    mpq_init(value);
    node_number(node ? node : yaml_value(&source, 0), schema_dimension(key), schema_unit(key), value);
    list_settable(listing, key, key->path, where, mpq_get_d(value));
    mpq_clear(value);
}

/* A list with one key of one entry replaced. */
static const struct node *list_with(const struct node *list, size_t entry, const char *name, const char *value)
{
    struct node *with = arena_alloc(1, sizeof *with);
    struct node **items = arena_alloc(list->count, sizeof *items);
    memcpy(items, list->items, list->count * sizeof *items);
    items[entry] = (struct node *)overlay(items[entry], read_set(arena_printf("%s=%s", name, value)));
    *with = *list;
    with->items = items;
    return with;
}

static void list_of_entry(struct listing *listing, const struct key *list, const struct node *node, size_t entry,
                          const char *name, const struct value *value)
{
    const char *path = arena_printf("%s[%zu].%s", list->path, entry, name);
    struct better_key *row = list_number(listing, schema_key(list, name), path, value->where, (double)value->n);
    row->in_list = true;
    if (!row->changed)
        return;
    const struct node *with = list_with(node, entry, name, row->set);
    row->set = arena_printf("%s=%s", list->path, flow_text(with));
    row->keys = nest(node->where, list->path, strlen(list->path), with);
}

static void list_chip_links(struct listing *listing, const struct key *key, const struct node *node)
{
    for (size_t i = 0; i < listing->model->chip_link_count; i++) {
        list_of_entry(listing, key, node, i, "bw_gbs", &listing->model->chip_links[i].bw);
        list_of_entry(listing, key, node, i, "latency_ns", &listing->model->chip_links[i].latency);
    }
}

/* `node`: that of the key in the topology, or NULL. */
static void list_key(struct listing *listing, const struct key *key, const struct node *node)
{
    const struct model *model = listing->model;
    const struct value *value = (const void *)((const char *)model + key->target);
    if (key->kind == KIND_mapping)
        for (size_t i = 0; i < key->count; i++)
            list_key(listing, &key->keys[i], node ? node_get(node, key->names[i]) : NULL);
    else if (key->kind == KIND_chip_links)
        list_chip_links(listing, key, node);
    else if (key->better == BETTER_BUILT || key->better == BETTER_EITHER)
        return;
    else if (is_fine(key))
        list_text(listing, key, node);
    else if (key->kind == KIND_dtypes)
        list_values(listing, key, value, DTYPES);
    else if (key->kind == KIND_ops)
        for (unsigned i = 0; i < model->ops_count; i++)
            list_values(listing, key, &model->ops[i].cost, 1);
    else
        list_settable(listing, key, key->path, value->where, (double)value->n);
}

struct better_keys better_keys_of(const struct model *model, struct better_by by)
{
    struct listing listing = {.model = model, .by = by};
    list_key(&listing, schema(), model->top);
    return listing.keys;
}
