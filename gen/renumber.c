/* renumber.c: the numbers of a topology with keys replaced, computed again and again in a running simulator.
 *
 * It and the passes that it calls are linked into the runtime (front_end.o), apart from kbgen. A key that decides what is
 * compiled must have the value that it had. */
#include "../rt/common/renumber.h"

#include <string.h>

#include "../rt/common/arena.h"
#include "better.h"
#include "numbers.h"
#include "replace.h"
#include "schema.h"

struct renumbering {
    struct base base;
};

struct renumbering *renumber_begin(const char *text)
{
    struct renumbering *r = arena_alloc(1, sizeof *r);
    const char *path = read_topology(text, &r->base.text, &r->base.impls);
    if (!base_fill(&r->base, path))
        errors_end();
    return r;
}

const struct node *renumber_option(const char *option)
{
    return read_set(option);
}

const struct node *renumber_key(const struct node *key, const struct node *value)
{
    return replacement(key, value);
}

const struct node *renumber_both(const struct node *first, const struct node *second)
{
    return overlay(first, second);
}

/* ---- structure */

/* Returns the first key of a mapping, in the order of the topology, that makes another structure; *node: its node. */
static const struct key *structural(const struct base *base, const struct key *of, const struct node *keys,
                                    const struct model *model, const struct node **node)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct key *key = schema_key(of, keys->entries[i].key->text);
        *node = keys->entries[i].value;
        if (key->kind == KIND_path)
            return key;
        const struct key *found = key->kind == KIND_mapping ? structural(base, key, *node, model, node)
                                : same_structure(key, model, base->model) ? NULL : key;
        if (found)
            return found;
    }
    return NULL;
}

/* ---- the command of a build */

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

static const char *build_command(const struct base *base, const struct node *keys)
{
    const char *command = arena_printf("kbgen %s", shell_word(base->text.files[0]->path));
    for (size_t i = 0; i < base->impls.count; i++)
        command = arena_printf("%s%s", command, command_option("--impl", base->impls.list[i].path));
    for (size_t i = 0; i < base->text.set_count; i++)
        command = arena_printf("%s%s", command, command_option("--set", base->text.sets[i]));
    return arena_printf("%s%s", command, set_options(schema(), keys));
}

static bool is_built(const struct base *base, const struct model *model, const struct node *keys)
{
    const struct node *node;
    const struct key *key = keys ? structural(base, schema(), keys, model, &node) : NULL;
    if (!key)
        return true;
    error_at(node->where, "%s decides what is compiled: another value needs a build", key->path);
    note_at(node->where, "%s", build_command(base, keys));
    return false;
}

/* ---- numbers */

/* Returns the model with keys replaced, or NULL after errors. */
static const struct model *replace(const struct base *base, const struct node *keys)
{
    const struct model *model = base_replace(base, keys);
    return model && is_built(base, model, keys) ? model : NULL;
}

bool renumber(const struct renumbering *r, const struct node *keys, struct numbers *numbers)
{
    struct plan plan = *r->base.plan;
    plan.model = replace(&r->base, keys);
    if (!plan.model)
        return false;
    *numbers = numbers_of(&plan);
    return true;
}

struct better_keys renumber_better(const struct renumbering *r, const struct node *keys, struct better_by by)
{
    const struct model *model = replace(&r->base, keys);
    return model ? better_keys_of(model, by) : (struct better_keys){0};
}

const char *renumber_place(const struct renumbering *r, const struct node *keys, const char *path)
{
    struct layers layers = r->base.model->layers;
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
