/* fill_number.c: numbers -> whole base units.
 *
 * A number counts exactly as it is written: bounds are held against that, and rounding comes last, once. */
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/read.h"
#include "fill_number.h"

static const char out_of_bounds[] = "";                 /* a why that needs no words */

static const char *check_bounds(const struct key *key, const mpq_t value)
{
    mpq_t bound;
    mpq_init(bound);
    bool good = mpq_sgn(value) > 0;
    if (key->least) {
        schema_number(key, key->least, bound);
        good = mpq_cmp(value, bound) >= 0;
    }
    schema_number(key, key->most, bound);
    good &= mpq_cmp(value, bound) <= 0;
    mpq_clear(bound);
    return good ? NULL : out_of_bounds;
}

/* The number exactly, in base units and within bounds; NULL, or why not. */
static const char *read_exact(const struct key *key, const struct node *node, mpq_t value)
{
    const char *why = node_number(node, schema_dimension(key), schema_unit(key), value);
    return why ? why : check_bounds(key, value);
}

/* Rounds as the key's kind does. */
static const char *to_integer(const struct key *key, const mpq_t value, uint64_t *out)
{
    if (key->kind == KIND_size)
        return quantity_whole(value, out) ? NULL : "that is no whole number of bytes";
    if (schema_dimension(key) == DIMENSION_none)
        return quantity_whole(value, out) ? NULL : out_of_bounds;
    bool fits = quantity_round(value, out);
    if (*out == 0 && !key->least)
        return key->kind == KIND_clock ? "that rounds to 0 kHz" : "that rounds to 0 bytes/s";
    return fits ? NULL : out_of_bounds;
}

static const char *read_integer(const struct key *key, const struct node *node, const mpq_t ps_per_um, uint64_t *out)
{
    mpq_t value;
    mpq_init(value);
    const char *why = read_exact(key, node, value);
    if (!why && key->kind == KIND_length)
        mpq_mul(value, value, ps_per_um);
    if (!why)
        why = to_integer(key, value, out);
    mpq_clear(value);
    return why;
}

void fill_number(const struct key *key, const struct node *node, struct value *out, const mpq_t ps_per_um)
{
    struct value value = { 0, node->where, key->path };
    bool infinite = key->kind == KIND_bandwidth && node_is_null(node);
    const char *why = infinite ? NULL : read_integer(key, node, ps_per_um, &value.n);
    if (why)
        error_expected(node, key->path, schema_expects(key), why);
    else
        *out = value;
}

const char *read_ratio(const struct key *key, const struct node *node, mpq_t value)
{
    const char *why = read_exact(key, node, value);
    if (why)
        mpq_set_ui(value, 0, 1);
    return why;
}

void fill_ratio(const struct key *key, const struct node *node, struct text *out)
{
    mpq_t value;
    mpq_init(value);
    const char *why = read_ratio(key, node, value);
    mpq_clear(value);
    if (why)
        error_expected(node, key->path, schema_expects(key), why);
    else
        *out = (struct text){ node->text, node->where, key->path };
}

static void fill_count(const struct key *key, const struct node_entry *entry, struct value *out)
{
    const char *path = arena_printf("%s.%s", key->path, entry->key->text);
    struct value value = { 0, entry->value->where, path };
    const char *why = read_integer(key, entry->value, NULL, &value.n);
    if (why)
        error_expected(entry->value, path, schema_expects(key), why);
    else
        *out = value;
}

static size_t index_of(const char *name, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(name, names[i]))
        i++;
    return i;
}

static void lay_dtypes(const struct key *key, const struct node *node, struct value *out)
{
    for (size_t i = 0; i < node->count; i++) {
        size_t dtype = index_of(node->entries[i].key->text, dtype_names, DTYPES);
        if (dtype < DTYPES)
            fill_count(key, &node->entries[i], &out[dtype]);
        else
            error_unknown_key(node->entries[i].key, key->path, dtype_names, DTYPES);
    }
}

void fill_dtypes(const struct key *key, const struct node *standard, const struct node *node, struct value *out)
{
    lay_dtypes(key, standard, out);
    if (node_is(node, NODE_MAPPING, key->path))
        lay_dtypes(key, node, out);
}

static const char *const known_ops[] = {
#define OP(name, operands, reduces, whole) #name,
#include "../rt/kb/ops.def"
#undef OP
};

/* The op of a name; one that the machine does not know yet is added. Names in a mapping differ, so of those added none
 * can be meant again. */
static struct model_op *op_of(struct model *model, const char *name)
{
    size_t known = index_of(name, known_ops, COUNT_OF(known_ops));
    if (known < COUNT_OF(known_ops))
        return &model->ops[known];
    model->ops = arena_grow(model->ops, model->ops_count, sizeof(*model->ops));
    model->ops[model->ops_count] = (struct model_op){ .name = name };
    return &model->ops[model->ops_count++];
}

static void lay_ops(const struct key *key, const struct node *node, struct model *model)
{
    for (size_t i = 0; i < node->count; i++) {
        const char *name;
        if (node_identifier(node->entries[i].key, arena_printf("an op of %s", key->path), &name))
            fill_count(key, &node->entries[i], &op_of(model, name)->cost);
    }
}

void fill_ops(const struct key *key, const struct node *standard, const struct node *node, struct model *model)
{
    for (size_t i = 0; i < COUNT_OF(known_ops); i++) {
        model->ops = arena_grow(model->ops, model->ops_count, sizeof(*model->ops));
        model->ops[model->ops_count++] = (struct model_op){
            known_ops[i], { .n = 1, .key = arena_printf("%s.%s", key->path, known_ops[i]) }
        };
    }
    lay_ops(key, standard, model);
    if (node_is(node, NODE_MAPPING, key->path))
        lay_ops(key, node, model);
}

/* A number without a unit: exact. */
static const char *read_bare(const mpq_t value, struct impl_param *out)
{
    if (!mpz_fits_ulong_p(mpq_numref(value)) || !mpz_fits_ulong_p(mpq_denref(value)))
        return "it has too many digits for 64 bits";
    out->num = mpz_get_ui(mpq_numref(value));
    out->den = mpz_get_ui(mpq_denref(value));
    out->whole = out->den == 1;
    out->n = out->num;
    return NULL;
}

static const char *read_quantity(const char *unit, mpq_t value, struct impl_param *out)
{
    static const char *const base_units[DIMENSIONS] = {
        [DIMENSION_time] = "ps", [DIMENSION_size] = "bytes", [DIMENSION_bandwidth] = "bytes/s",
        [DIMENSION_clock] = "kHz", [DIMENSION_length] = "um",
    };
    const struct unit *known = unit_named(unit);
    if (!known)
        return arena_printf("'%s' is no unit", unit);
    out->unit = base_units[known->dimension];
    out->whole = true;
    const char *why = quantity_scale(value, unit, known->dimension, NULL);
    if (why)
        return why;
    if (known->dimension == DIMENSION_size)
        return quantity_whole(value, &out->n) ? NULL : "that is no whole number of bytes";
    return quantity_round(value, &out->n) ? NULL : arena_printf("it does not fit into 64 bits of %s", out->unit);
}

void fill_param(const struct node *node, struct impl_param *out)
{
    mpq_t value;
    mpq_init(value);
    const char *unit, *why = node->type == NODE_SCALAR ? quantity_lex(node->text, value, &unit) : "";
    if (!why && !*unit)
        why = node->plain ? read_bare(value, out) : "a number stands without quotes";
    else if (!why)
        why = read_quantity(unit, value, out);
    mpq_clear(value);
    if (why)
        error_expected(node, out->key, "a number or a quantity", why);
}
