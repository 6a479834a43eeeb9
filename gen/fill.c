/* fill.c: YAML nodes to values. It reports errors of single keys; check.c reports those that keys make together.
 *
 * A model can be filled again from a changed tree: what a key fills depends on its node alone (and on the wire's time
 * per length), so a key whose node is the same keeps what it has filled. */
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/read.h"
#include "../rt/common/yaml.h"
#include "../rt/kb/keys.def"
#include "fill.h"
#include "schema.h"

/* ---- numbers: each counts exactly as it is written; bounds are held against that, and rounding comes last, once */

static const char out_of_bounds[] = "";                 /* a reason that the message need not add */

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

/* Reads a number exactly, in base units, and checks its bounds. Returns NULL, or the reason why it is wrong. */
static const char *read_exact(const struct key *key, const struct node *node, mpq_t value)
{
    const char *why = node_number(node, schema_dimension(key), schema_unit(key), value);
    return why ? why : check_bounds(key, value);
}

/* Rounds by the rule of the key's kind. */
static const char *to_integer(const struct key *key, const mpq_t value, uint64_t *out)
{
    if (key->kind == KIND_size || key->kind == KIND_size_limit)
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

static void fill_number(const struct key *key, const struct node *node, struct value *out, const mpq_t ps_per_um)
{
    struct value value = { 0, node->where, key->path };
    bool infinite = schema_is_limit(key) && node_is_null(node);
    const char *why = infinite ? NULL : read_integer(key, node, ps_per_um, &value.n);
    *out = why ? (struct value){ 0 } : value;
    if (!why)
        return;
    if (schema_is_limit(key) && node_is_nothing(node))
        error_expected(node, key->path, schema_expects(key), "~ is no limit");
    else
        error_expected(node, key->path, schema_expects(key), why);
}

static const char *read_ratio(const struct key *key, const struct node *node, mpq_t value)
{
    const char *why = read_exact(key, node, value);
    if (why)
        mpq_set_ui(value, 0, 1);
    return why;
}

static void fill_ratio(const struct key *key, const struct node *node, struct text *out)
{
    mpq_t value;
    mpq_init(value);
    const char *why = read_ratio(key, node, value);
    mpq_clear(value);
    *out = why ? (struct text){ 0 } : (struct text){ node->text, node->where, key->path };
    if (why)
        error_expected(node, key->path, schema_expects(key), why);
}

static void fill_count(const struct key *key, const struct node_entry *entry, struct value *out)
{
    const char *path = arena_printf("%s.%s", key->path, entry->key->text);
    struct value value = { 0, entry->value->where, path };
    const char *why = read_integer(key, entry->value, NULL, &value.n);
    *out = why ? (struct value){ 0 } : value;
    if (why)
        error_expected(entry->value, path, schema_expects(key), why);
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

static void fill_dtypes(const struct key *key, const struct node *standard, const struct node *node, struct value *out)
{
    lay_dtypes(key, standard, out);
    if (node_is(node, NODE_MAPPING, key->path))
        lay_dtypes(key, node, out);
}

static const char *const known_ops[] = {
#define OP(name, ...) #name,
#include "../rt/kb/ops.def"
};

/* Returns the op of a name, added if it is new. Names within a mapping differ, so an added op is never named again. */
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

static void fill_ops(const struct key *key, const struct node *standard, const struct node *node, struct model *model)
{
    model->ops = NULL;
    model->ops_count = 0;
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

/* Reads a number without a unit exactly. */
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
    const struct unit *known = unit_named(unit);
    if (!known)
        return arena_printf("'%s' is no unit", unit);
    out->unit = dimension_base[known->dimension];
    out->whole = true;
    const char *why = quantity_scale(value, unit, known->dimension, NULL);
    if (why)
        return why;
    if (known->dimension == DIMENSION_size)
        return quantity_whole(value, &out->n) ? NULL : "that is no whole number of bytes";
    return quantity_round(value, &out->n) ? NULL : arena_printf("it does not fit into 64 bits of %s", out->unit);
}

static void fill_param(const struct node *node, struct impl_param *out)
{
    mpq_t value;
    mpq_init(value);
    const char *unit, *why = node->type == NODE_SCALAR ? quantity_lex(node->text, value, &unit) : "";
    if (!why && !*unit)
        why = node->plain ? read_bare(value, out) : "numbers are written without quotes";
    else if (!why)
        why = read_quantity(unit, value, out);
    mpq_clear(value);
    if (why)
        error_expected(node, out->key, "a number or a quantity", why);
}

/* ---- keys */

struct filling {
    struct model *model;
    mpq_t ps_per_um;                                    /* system.wire.ns_per_mm */
};

/* `was`: the node that the key was filled from before, or NULL. */
static void fill_key(struct filling *f, const struct key *key, const struct node *node, const struct node *was,
                     void *base);

/* Removes the places of a default's nodes, which are in no file. */
static void strip_places(struct node *node)
{
    node->where = (struct where){ 0 };
    for (size_t i = 0; node->type == NODE_SEQUENCE && i < node->count; i++)
        strip_places(node->items[i]);
    for (size_t i = 0; node->type == NODE_MAPPING && i < node->count; i++) {
        strip_places(node->entries[i].key);
        strip_places(node->entries[i].value);
    }
}

static const struct node *default_node(const struct key *key)
{
    struct source *source = arena_alloc(1, sizeof(*source));
    *source = (struct source){ key->path, key->standard, strlen(key->standard), 0 };
    struct node *node = yaml_value(source, 0);
    strip_places(node);
    return node;
}

/* Fills a key that `within` lacks with its default. `within` NULL: the mapping has an unknown key, which may be this
 * one misspelt, so nothing is reported. */
static void fill_default(struct filling *f, const struct key *key, const struct node *within, void *base)
{
    static const struct node nothing = { .type = NODE_MAPPING };
    if (key->kind == KIND_path || key->kind == KIND_params)
        return;
    if (key_must_be_given(key)) {
        if (within)
            error_at(within->where, "%s must be given", key->path);
    } else if (key->kind == KIND_mapping) {
        fill_key(f, key, &nothing, NULL, base);
    } else if (!*key->standard) {
        *(struct value *)((char *)base + key->target) = (struct value){ .key = key->path };
    } else {
        fill_key(f, key, default_node(key), NULL, base);
    }
}

static void fill_mapping(struct filling *f, const struct key *key, const struct node *node, const struct node *was,
                         void *base)
{
    if (!node_is(node, NODE_MAPPING, key->path))
        return;
    if (was && was->type != NODE_MAPPING)
        was = NULL;
    bool all_known = true;
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->entries[i].key->text;
        const struct node *value = node->entries[i].value, *before = was ? node_get(was, name) : NULL;
        if (value == before)
            continue;
        const struct key *child = schema_key(key, name);
        if (child)
            fill_key(f, child, value, before, base);
        else
            error_unknown_key(node->entries[i].key, key->path, key->names, key->count);
        all_known &= child != NULL;
    }
    for (size_t i = 0; i < key->count; i++)
        if (!node_get(node, key->names[i]) && (!was || node_get(was, key->names[i])))
            fill_default(f, &key->keys[i], all_known ? node : NULL, base);
}

/* ---- lists. An entry with an error is left out */

static void fill_attachments(struct filling *f, const struct key *key, const struct node *node)
{
    struct model *model = f->model;
    model->attach = NULL;
    model->attach_count = 0;
    if (!node_is(node, NODE_SEQUENCE, key->path))
        return;
    if (node->count == 0)
        error_at(node->where, "%s must have an entry", key->path);
    for (size_t i = 0; i < node->count; i++) {
        struct key element = schema_element(key, i);
        struct attachment_keys read = { 0 };
        fill_mapping(f, &element, node->items[i], NULL, &read);
        if (!read.cube.key || !read.side.key)
            continue;
        model->attach = arena_grow(model->attach, model->attach_count, sizeof(*model->attach));
        model->attach[model->attach_count++] = (struct model_attachment){
            .cube = read.cube.n, .side = (unsigned)read.side.n, .where = node->items[i]->where, .key = element.path
        };
    }
}

static void fill_planes(struct filling *f, const struct key *key, const struct node *node)
{
    struct model *model = f->model;
    model->planes = NULL;
    model->plane_count = 0;
    if (!node_is(node, NODE_SEQUENCE, key->path))
        return;
    if (node->count == 0 || node->count > PLANES_MOST)
        error_at(node->where, "%s must have 1 to %u entries", key->path, PLANES_MOST);
    for (size_t i = 0; i < node->count; i++) {
        struct key element = schema_element(key, i);
        struct plane_keys read = { 0 };                 /* one that is wrong counts, with defaults: it is one error */
        fill_mapping(f, &element, node->items[i], NULL, &read);
        model->planes = arena_grow(model->planes, model->plane_count, sizeof(*model->planes));
        model->planes[model->plane_count++] = (struct model_plane){
            .y_first = read.order.n, .direction = (enum ring_direction)read.direction.n, .where = node->items[i]->where,
            .key = element.path
        };
    }
}

static bool read_chip_end(const struct chip_end_keys *read, struct model_chip_end *end)
{
    *end = (struct model_chip_end){ read->sip.n, read->cube.n, (unsigned)read->side.n };
    return read->sip.key && read->cube.key && read->side.key;
}

static void fill_chip_links(struct filling *f, const struct key *key, const struct node *node)
{
    struct model *model = f->model;
    model->chip_links = NULL;
    model->chip_link_count = 0;
    if (!node_is(node, NODE_SEQUENCE, key->path))
        return;
    for (size_t i = 0; i < node->count; i++) {
        struct key element = schema_element(key, i);
        struct chip_link_keys read = { 0 };
        struct model_chip_link link = { .where = node->items[i]->where, .key = element.path };
        fill_mapping(f, &element, node->items[i], NULL, &read);
        link.bw = read.bw;
        link.latency = read.latency;
        bool good = read_chip_end(&read.a, &link.end[0]);
        good &= read_chip_end(&read.b, &link.end[1]);
        if (!good || !link.bw.key || !link.latency.key)
            continue;
        model->chip_links = arena_grow(model->chip_links, model->chip_link_count, sizeof(*model->chip_links));
        model->chip_links[model->chip_link_count++] = link;
    }
}

static void fill_either(struct filling *f, const struct key *key, const struct node *node, void *base)
{
    struct layout *out = (void *)((char *)base + key->target);
    const char *words[8];
    size_t count = schema_words(key, words, COUNT_OF(words)), word = count;
    *out = (struct layout){ .word = (unsigned)count, .where = node->where };   /* no word, unless it is read */
    if (node->type == NODE_MAPPING) {
        fill_mapping(f, key, node, NULL, base);
        return;
    }
    if (node->type == NODE_SCALAR)
        word = index_of(node->text, words, count);
    if (word == count)
        error_expected(node, key->path, schema_expects(key), NULL);
    else
        out->word = (unsigned)word;
}

static void fill_constant(const struct key *key, const struct node *node)
{
    if (node->type != NODE_SCALAR || strcmp(node->text, key->form))
        error_expected(node, key->path, schema_expects(key), NULL);
}

static void fill_impl(const struct key *key, const struct node *node, struct text *out)
{
    const char *name = "";
    bool good = node_is(node, NODE_SCALAR, key->path);
    *out = (struct text){ 0 };
    if (good)
        name = node->text;
    if (good && (!strcmp(name, key->standard) || (is_identifier(name) && !node_is_bool(node) && !node_is_null(node)))) {
        *out = (struct text){ name, node->where, key->path };
    } else if (good) {
        error_expected(node, key->path, schema_expects(key), NULL);
    }
}

/* Returns whether generated code or impl.h use a name behind a model's name, so that no parameter may have it. */
static bool is_taken(const char *name)
{
    static const char *const whole[] = { "service", "next", "state", "states", "nodes", "blank", "reset", "bytes" };
    const char *end = strrchr(name, '_');
    for (size_t i = 0; i < COUNT_OF(whole); i++)
        if (!strcmp(name, whole[i]))
            return true;
    return end && (!strcmp(end, "_num") || !strcmp(end, "_den"));
}

static void fill_params(const struct key *key, const struct node *node, struct impl_params *out)
{
    if (!node_is(node, NODE_MAPPING, key->path))
        return;
    *out = (struct impl_params){ .where = node->where, .key = key->path };
    for (size_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        struct impl_param param = { .where = entry->value->where };
        if (!node_identifier(entry->key, "the name of a parameter", &param.name))
            continue;
        if (is_taken(param.name)) {
            error_at(entry->key->where, "%s: '%s' means something else; give it another name", key->path, param.name);
            continue;
        }
        param.key = arena_printf("%s.%s", key->path, param.name);
        fill_param(entry->value, &param);
        out->list = arena_grow(out->list, out->count, sizeof(*out->list));
        out->list[out->count++] = param;
    }
}

static void fill_name(const struct key *key, const struct node *node, struct text *out)
{
    const char *name = NULL;
    *out = (struct text){ 0 };
    if (key->kind == KIND_resource && node_is_null(node))
        *out = (struct text){ NULL, node->where, key->path };
    else if (key->kind == KIND_resource && node_is_nothing(node))
        error_expected(node, key->path, schema_expects(key), "~ is none");
    else if (node_identifier(node, key->path, &name))
        *out = (struct text){ name, node->where, key->path };
}

static void fill_choice(const struct key *key, const struct node *node, struct value *out)
{
    const char *words[8];
    unsigned index;
    *out = (struct value){ 0 };
    if (node_choice(node, key->path, words, schema_words(key, words, COUNT_OF(words)), &index))
        *out = (struct value){ index, node->where, key->path };
}

static void fill_flag(const struct key *key, const struct node *node, struct value *out)
{
    bool on;
    *out = (struct value){ 0 };
    if (node_bool(node, key->path, &on))
        *out = (struct value){ on, node->where, key->path };
}

static bool read_router(const struct key *key, const struct node *node, struct router_at *out)
{
    struct value row = { 0 }, col = { 0 };
    if (node->type != NODE_SEQUENCE || node->count != 2) {
        error_expected(node, key->path, schema_expects(key), NULL);
        return false;
    }
    fill_number(key, node->items[0], &row, NULL);
    fill_number(key, node->items[1], &col, NULL);
    *out = (struct router_at){ row.n, col.n, node->where, key->path };
    return row.key && col.key;
}

static void fill_routers(const struct key *key, const struct node *node, struct layout *out)
{
    if (!node_is(node, NODE_SEQUENCE, key->path))
        return;
    struct router_at *list = arena_alloc(node->count + 1, sizeof(*list));
    bool good = true;
    for (size_t i = 0; i < node->count; i++) {
        struct key element = schema_element(key, i);
        good &= read_router(&element, node->items[i], &list[i]);
    }
    if (!good)
        return;
    *out = (struct layout){ .at = list, .count = (unsigned)node->count, .where = node->where };
}

static void fill_key(struct filling *f, const struct key *key, const struct node *node, const struct node *was,
                     void *base)
{
    void *target = (char *)base + key->target;
    switch (key->kind) {
    case KIND_mapping: fill_mapping(f, key, node, was, base); break;
    case KIND_attachments: fill_attachments(f, key, node); break;
    case KIND_planes: fill_planes(f, key, node); break;
    case KIND_chip_links: fill_chip_links(f, key, node); break;
    case KIND_either: fill_either(f, key, node, base); break;
    case KIND_path: break;                              /* read by load.c */
    case KIND_constant: fill_constant(key, node); break;
    case KIND_impl: fill_impl(key, node, target); break;
    case KIND_params: fill_params(key, node, target); break;
    case KIND_name: case KIND_resource: fill_name(key, node, target); break;
    case KIND_ratio: fill_ratio(key, node, target); break;
    case KIND_time: case KIND_length: case KIND_bandwidth: case KIND_clock: case KIND_size:
    case KIND_size_limit: case KIND_count: case KIND_count_limit:
        fill_number(key, node, target, f->ps_per_um);
        break;
    case KIND_choice: fill_choice(key, node, target); break;
    case KIND_flag: fill_flag(key, node, target); break;
    case KIND_router: read_router(key, node, target); break;
    case KIND_routers: fill_routers(key, node, target); break;
    case KIND_dtypes: fill_dtypes(key, default_node(key), node, target); break;
    case KIND_ops: fill_ops(key, default_node(key), node, f->model); break;
    }
}

/* Finds the wire's time per length below a key. *found: its node, NULL for the default. Returns NULL if it is elsewhere. */
static const struct key *find_ratio(const struct key *key, const struct node *node, const struct node **found)
{
    if (key->kind == KIND_ratio) {
        *found = node;
        return key;
    }
    for (size_t i = 0; key->kind == KIND_mapping && i < key->count; i++) {
        const struct key *ratio = find_ratio(&key->keys[i], node ? node_get(node, key->names[i]) : NULL, found);
        if (ratio)
            return ratio;
    }
    return NULL;
}

/* Begins to fill from a mapping; NULL: one that gives nothing. The wire's time per length is read before all other keys,
 * because every length needs it. Returns its node. */
static const struct node *filling_begin(struct filling *f, const struct node *top)
{
    const struct node *node = NULL;
    const struct key *ratio = find_ratio(schema(), top, &node);
    mpq_init(f->ps_per_um);
    read_ratio(ratio, node ? node : default_node(ratio), f->ps_per_um);
    return node;
}

void fill_model(struct model *model, const struct node *top, const struct node *was)
{
    struct filling f = { .model = model };
    const struct node *ratio = filling_begin(&f, top), *before = NULL;
    if (was)
        find_ratio(schema(), was, &before);
    fill_mapping(&f, schema(), top, before == ratio ? was : NULL, model);
    mpq_clear(f.ps_per_um);
}

void fill_alone(const struct key *key, const struct node *value)
{
    struct model model = { 0 };
    struct filling f = { .model = &model };
    filling_begin(&f, NULL);
    fill_key(&f, key, value, NULL, &model);
    mpq_clear(f.ps_per_um);
}

uint64_t fill_length(const struct model *model, const char *path, uint64_t times)
{
    struct filling f = { .model = NULL };
    const struct key *key = schema();
    const struct node *node = model->top;
    uint64_t ps = 0;
    mpq_t value, factor;
    for (size_t length; *path; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        const char *name = arena_text(path, length);
        key = schema_key(key, name);
        node = node ? node_get(node, name) : NULL;
    }
    filling_begin(&f, model->top);
    mpq_inits(value, factor, NULL);
    if (!read_exact(key, node ? node : default_node(key), value)) {
        mpq_set_ui(factor, times, 1);
        mpq_mul(value, value, factor);
        mpq_mul(value, value, f.ps_per_um);
        quantity_round(value, &ps);
    }
    mpq_clears(value, factor, f.ps_per_um, NULL);
    return ps;
}
