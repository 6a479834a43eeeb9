/* replace.c: a topology that was read once and is filled again and again, with some keys replaced.
 *
 * Each replacement fills a copy of the model from the merged tree, in which most nodes are those of the first reading and
 * keep what they have filled; then it is checked as a whole. */
#include "replace.h"

#include <inttypes.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/hash.h"
#include "../rt/common/json.h"
#include "check.h"
#include "fill.h"
#include "numbers.h"

bool base_fill(struct base *base, const char *path)
{
    base->model = check_topology(path, &base->text, &base->impls);
    if (base->model)
        base->plan = elaborate(base->model);
    return base->model;
}

const struct node *replacement(const struct node *key, const struct node *value)
{
    struct where where = key->where;
    where.col += !key->plain;                           /* behind the quote */
    return nest(where, key->text, strlen(key->text), value);
}

const struct model *base_replace(const struct base *base, const struct node *keys)
{
    if (!keys)
        return base->model;
    unsigned errors = error_count();
    struct model *model = arena_alloc(1, sizeof *model);
    struct layers layers = base->model->layers;
    layers.set = overlay(layers.set, keys);
    *model = *base->model;
    model->top = merge_layers(&layers);
    fill_model(model, model->top, base->model->top);
    check_model(model, true);
    return error_count() == errors ? model : NULL;
}

/* ---- structure: what keys make of it, as texts */

/* The routers of all nodes: the topology may say the same in different words. */
static const char *placement_text(const struct plan *plan)
{
    const char *text = "";
    for (unsigned i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].router != NO_NODE)
            text = arena_printf("%s%u=%u ", text, i, plan->nodes[i].router);
    return text;
}

static const char *attachments_text(const struct model *model)
{
    const char *text = "";
    for (unsigned i = 0; i < model->attach_count; i++)
        text = arena_printf("%s%" PRIu64 "/%u ", text, model->attach[i].cube, model->attach[i].side);
    return text;
}

static const char *planes_text(const struct model *model)
{
    const char *text = "";
    for (unsigned i = 0; i < model->plane_count; i++)
        text = arena_printf("%s%u/%u ", text, model->planes[i].y_first, model->planes[i].direction);
    return text;
}

/* What chip links join; their latencies and bandwidths are numbers. */
static const char *chip_links_text(const struct model *model)
{
    const char *text = "";
    for (unsigned i = 0; i < model->chip_link_count; i++) {
        const struct model_chip_end *a = &model->chip_links[i].end[0], *b = &model->chip_links[i].end[1];
        text = arena_printf("%s%" PRIu64 "/%" PRIu64 "/%u-%" PRIu64 "/%" PRIu64 "/%u ", text, a->sip, a->cube, a->side,
                            b->sip, b->cube, b->side);
    }
    return text;
}

static const char *ops_text(const struct model *model)
{
    const char *text = "";
    for (unsigned i = 0; i < model->ops_count; i++)
        text = arena_printf("%s%s ", text, model->ops[i].name);
    return text;
}

static const char *params_text(const struct impl_params *params)
{
    const char *text = "";
    for (unsigned i = 0; i < params->count; i++) {
        const struct impl_param *p = &params->list[i];
        text = arena_printf("%s%s%s %" PRIu64 " %" PRIu64 "/%" PRIu64 " ", text, p->name, p->unit ? " of a unit" : "", p->n,
                            p->num, p->den);
    }
    return text;
}

/* Whether a key decides with other keys: it places nodes, or what it places may not exist. */
static bool places_nodes(const struct key *key)
{
    return key->kind == KIND_either || key->kind == KIND_router || key->better == BETTER_MORE_OR_NONE;
}

/* What a key that places no nodes makes of the structure; NULL: nothing, it is a number or a group of keys. */
static const char *structure_text(const struct key *key, const struct model *model)
{
    const void *value = (const char *)model + key->target;
    switch (key->kind) {
    case KIND_mapping: case KIND_constant: case KIND_path: return NULL;
    case KIND_attachments: return attachments_text(model);
    case KIND_planes: return planes_text(model);
    case KIND_chip_links: return chip_links_text(model);
    case KIND_impl: return ((const struct text *)value)->text;
    case KIND_params: return params_text(value);
    case KIND_name: return arena_printf("%zu", name_room(model));
    case KIND_resource: return model->accel_shared ? "shared" : "";
    case KIND_ops: return ops_text(model);
    default: return key->better == BETTER_BUILT ? arena_printf("%" PRIu64, ((const struct value *)value)->n) : NULL;
    }
}

bool same_structure(const struct key *key, const struct model *model, const struct model *other)
{
    if (places_nodes(key))
        return !strcmp(placement_text(elaborate(model)), placement_text(elaborate(other)));
    const char *text = structure_text(key, model);
    return !text || !strcmp(text, structure_text(key, other));
}

static void hash_keys(struct hash *hash, const struct key *of, const struct model *model)
{
    for (size_t i = 0; i < of->count; i++) {
        const struct key *key = &of->keys[i];
        if (key->kind == KIND_mapping)
            hash_keys(hash, key, model);
        const char *text = places_nodes(key) ? NULL : structure_text(key, model);
        if (text)
            hash_text(hash, text);
    }
}

const char *structure_name(const struct plan *plan)
{
    struct hash *hash = hash_begin();
    hash_keys(hash, schema(), plan->model);
    hash_text(hash, placement_text(plan));
    return hash_end(hash);
}

/* ---- texts */

/* A double-quoted scalar of YAML takes the escapes of JSON. */
const char *flow_text(const struct node *node)
{
    const char *text = "";
    if (node->type == NODE_SCALAR)
        return node->plain && !strpbrk(node->text, ",[]{}") ? node->text : json_quoted(node->text);
    for (size_t i = 0; i < node->count; i++) {
        const char *between = i ? ", " : "";
        if (node->type == NODE_SEQUENCE)
            text = arena_printf("%s%s%s", text, between, flow_text(node->items[i]));
        else
            text = arena_printf("%s%s%s: %s", text, between, flow_text(node->entries[i].key), flow_text(node->entries[i].value));
    }
    return node->type == NODE_SEQUENCE ? arena_printf("[%s]", text) : arena_printf("{%s}", text);
}
