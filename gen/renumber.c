/* renumber.c: the numbers of a topology with keys replaced, computed again and again in a running simulator.
 *
 * It and the passes that it calls are linked into the runtime (front_end.o), apart from kbgen.
 *
 * The topology is read, filled and checked once. Each replacement fills a copy of that model from the merged tree, in which
 * most nodes are those of the first reading and keep what they have filled; then it is checked as a whole. A key that
 * decides what is compiled must have the value that it had. */
#include "../rt/common/renumber.h"

#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/json.h"
#include "better.h"
#include "check.h"
#include "fill.h"
#include "numbers.h"
#include "schema.h"

static struct {
    struct topology_text text;
    struct impl_files impls;
    const struct model *model;
    const struct plan *plan;
} base;

void renumber_begin(const char *text)
{
    const char *path = read_topology(text, &base.text, &base.impls);
    base.model = check_topology(path, &base.text, &base.impls);
    errors_end();
    base.plan = elaborate(base.model);
}

const struct node *renumber_option(const char *option)
{
    return read_set(option);
}

const struct node *renumber_key(const struct node *key, const struct node *value)
{
    struct where where = key->where;
    where.col += !key->plain;                           /* behind the quote */
    return nest(where, key->text, strlen(key->text), value);
}

const struct node *renumber_both(const struct node *first, const struct node *second)
{
    return overlay(first, second);
}

/* ---- structure */

/* Returns whether each node is at the router where it was, in whatever words the topology says so. */
static bool same_placement(const struct model *model)
{
    const struct plan *plan = elaborate(model);
    bool same = plan->node_count == base.plan->node_count;
    for (unsigned i = 0; same && i < plan->node_count; i++)
        same = plan->nodes[i].router == base.plan->nodes[i].router;
    return same;
}

static bool same_attachments(const struct model *model)
{
    bool same = model->attach_count == base.model->attach_count;
    for (unsigned i = 0; same && i < model->attach_count; i++)
        same = model->attach[i].cube == base.model->attach[i].cube && model->attach[i].side == base.model->attach[i].side;
    return same;
}

static bool same_ops(const struct model *model)
{
    bool same = model->ops_count == base.model->ops_count;
    for (unsigned i = 0; same && i < model->ops_count; i++)
        same = !strcmp(model->ops[i].name, base.model->ops[i].name);
    return same;
}

static bool same_params(const struct impl_params *a, const struct impl_params *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; same && i < a->count; i++) {
        const struct impl_param *x = &a->list[i], *y = &b->list[i];
        same = !strcmp(x->name, y->name) && !x->unit == !y->unit && x->n == y->n && x->num == y->num && x->den == y->den;
    }
    return same;
}

/* Returns whether what a key has filled leaves the structure as it is. */
static bool same_structure(const struct key *key, const struct model *model)
{
    const void *now = (const char *)model + key->target, *before = (const char *)base.model + key->target;
    switch (key->kind) {
    case KIND_list: return same_attachments(model);
    case KIND_either: case KIND_router: return same_placement(model);
    case KIND_impl: return !strcmp(((const struct text *)now)->text, ((const struct text *)before)->text);
    case KIND_params: return same_params(now, before);
    case KIND_name: return name_room(model) == name_room(base.model);
    case KIND_resource: return model->accel_shared == base.model->accel_shared;
    case KIND_ops: return same_ops(model);
    default: return key->better != BETTER_BUILT || ((const struct value *)now)->n == ((const struct value *)before)->n;
    }
}

/* Returns the first key of a mapping, in the order of the topology, that makes another structure; *node: its node. */
static const struct key *structural(const struct key *of, const struct node *keys, const struct model *model,
                                    const struct node **node)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct key *key = schema_key(of, keys->entries[i].key->text);
        *node = keys->entries[i].value;
        if (key->kind == KIND_path)
            return key;
        const struct key *found = key->kind == KIND_mapping ? structural(key, *node, model, node)
                                : same_structure(key, model) ? NULL : key;
        if (found)
            return found;
    }
    return NULL;
}

/* ---- the command of a build */

/* A value in YAML's flow style. A double-quoted scalar of YAML takes the escapes of JSON. */
static const char *flow_text(const struct node *node)
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

/* A word as a shell takes it: quoted unless all its characters are known to mean nothing to a shell. */
static const char *shell_word(const char *text)
{
    static const char harmless[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%+=:,./@-";
    const char *quoted = "'";
    if (*text && !text[strspn(text, harmless)])
        return text;
    for (size_t length; text[length = strcspn(text, "'")]; text += length + 1)
        quoted = arena_printf("%s%.*s'\\''", quoted, (int)length, text);
    return arena_printf("%s%s'", quoted, text);
}

static const char *command_option(const char *option, const char *text)
{
    return arena_printf(" %s %s", option, shell_word(text));
}

/* A --set option for each key of a tree of schema keys. */
static const char *set_options(const struct key *of, const struct node *keys)
{
    const char *options = "";
    for (size_t i = 0; i < keys->count; i++) {
        const struct node *value = keys->entries[i].value;
        const struct key *key = schema_key(of, keys->entries[i].key->text);
        options = arena_printf("%s%s", options, key->kind == KIND_mapping ? set_options(key, value)
                : command_option("--set", arena_printf("%s=%s", key->path, flow_text(value))));
    }
    return options;
}

static const char *build_command(const struct node *keys)
{
    const char *command = arena_printf("kbgen %s", shell_word(base.text.files[0]->path));
    for (size_t i = 0; i < base.impls.count; i++)
        command = arena_printf("%s%s", command, command_option("--impl", base.impls.list[i].path));
    for (size_t i = 0; i < base.text.set_count; i++)
        command = arena_printf("%s%s", command, command_option("--set", base.text.sets[i]));
    return arena_printf("%s%s", command, set_options(schema(), keys));
}

static void check_structure(const struct model *model, const struct node *keys)
{
    const struct node *node;
    const struct key *key = structural(schema(), keys, model, &node);
    if (!key)
        return;
    error_at(node->where, "%s decides what is compiled: another value needs a build", key->path);
    note_at(node->where, "%s", build_command(keys));
}

/* ---- numbers */

/* Returns the model with keys replaced, or NULL after errors. */
static const struct model *replace(const struct node *keys)
{
    if (!keys)
        return base.model;
    unsigned errors = error_count();
    struct model *model = arena_alloc(1, sizeof *model);
    struct layers layers = base.model->layers;
    layers.set = overlay(layers.set, keys);
    *model = *base.model;
    model->top = merge_layers(&layers);
    fill_model(model, model->top, base.model->top);
    check_model(model, true);
    if (error_count() == errors)
        check_structure(model, keys);
    return error_count() == errors ? model : NULL;
}

bool renumber(const struct node *keys, struct numbers *numbers)
{
    struct plan plan = *base.plan;
    plan.model = replace(keys);
    if (!plan.model)
        return false;
    *numbers = numbers_of(&plan);
    return true;
}

struct better_keys renumber_better(const struct node *keys, struct better_by by)
{
    const struct model *model = replace(keys);
    return model ? better_keys_of(model, by) : (struct better_keys){0};
}

const char *renumber_place(const struct node *keys, const char *path)
{
    struct layers layers = base.model->layers;
    layers.set = overlay(layers.set, keys);
    const struct node *node = merge_layers(&layers);
    const struct key *key = schema();
    for (size_t length; *path; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        const char *name = arena_text(path, length);
        if (key->kind != KIND_dtypes && key->kind != KIND_ops)
            key = schema_key(key, name);
        if (!key)
            return NULL;
        node = node ? node_get(node, name) : NULL;
    }
    return place_text(node ? node->where : (struct where){0});
}
