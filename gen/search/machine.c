/* machine.c: the machines of a space.
 *
 * All keys of the space are one tree, whose leaves are replaced for each machine; the model is filled from the topology
 * with this tree over it (replace.h). What decides the structure is looked up by the levels of the few keys that may. */
#include "machine.h"

#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/hash.h"
#include "../../rt/common/json.h"
#include "../build/build.h"
#include "../build/build_key.h"
#include "../build/home.h"
#include "../check.h"
#include "../emit.h"
#include "../fill.h"
#include "../replace.h"

/* The compiler that the Makefile builds kbgen with. */
#ifndef KB_CC
#define KB_CC "cc"
#endif

enum { COMBINATION_BITS = 12 };

/* A key of the space that is one of the topology. */
struct machine_key {
    size_t axis;
    struct node *within;                                /* the mapping of the tree that has it, and its entry there */
    size_t entry;
    bool is_built;                                      /* every other value makes another structure */
    bool may_build;                                     /* some other value may */
    const char *quoted;                                 /* its name in JSON */
};

/* Levels of the keys that may decide the structure, and the structure that they make. */
struct combination {
    const struct combination *next;
    uint32_t *levels;
    struct structure *structure;
};

struct machines {
    const struct space *space;
    struct base base;                                   /* of all machines: its `plan` and `impls` are not used */
    struct number topology;
    struct impl_files impls;                            /* all files of models; a machine names some of them */
    struct machine_key *keys;
    size_t key_count, may_build_count;
    struct node *tree;                                  /* NULL: no key of the space is one of the topology */
    const struct combination *combinations[1 << COMBINATION_BITS];
    struct structure **structures;
    unsigned structure_count;
    const char *files;                                  /* a hash of kbgen and of the user's files */
};

/* ---- the tree */

static bool may_build(const struct axis *axis)
{
    switch (axis->key->kind) {
    case KIND_ratio: case KIND_time: case KIND_length: case KIND_bandwidth: case KIND_clock: case KIND_size:
    case KIND_size_limit: case KIND_count: case KIND_count_limit: case KIND_choice: case KIND_flag:
        return axis->key->better == BETTER_BUILT || axis->key->better == BETTER_MORE_OR_NONE;
    case KIND_dtypes: return false;
    case KIND_ops: return !axis->entry;
    default: return true;
    }
}

/* Adds a key to the tree, with the mappings around it. */
static void add_key(struct machines *machines, size_t i)
{
    const struct axis *axis = &machines->space->axes[i];
    struct node *at = machines->tree;
    const char *name = axis->name;
    for (size_t length; name[length = strcspn(name, ".")]; name += length + 1) {
        const char *part = arena_text(name, length);
        struct node *below = (struct node *)node_get(at, part);
        if (!below) {
            struct node *key = node_new(axis->where, NODE_SCALAR);
            key->text = part;
            node_add(at, key, below = node_new(axis->where, NODE_MAPPING));
        }
        at = below;
    }
    struct node *key = node_new(axis->where, NODE_SCALAR);
    key->text = name;
    node_add(at, key, node_new(axis->where, NODE_SCALAR));
    bool may = may_build(axis);
    machines->keys[machines->key_count++] = (struct machine_key){
        .axis = i, .within = at, .entry = at->count - 1, .may_build = may, .quoted = json_quoted(axis->name),
        .is_built = may && axis->key->better == BETTER_BUILT && axis->key->kind == KIND_count,
    };
    machines->may_build_count += may;
}

static struct node *copy_tree(const struct node *node)
{
    if (node->type != NODE_MAPPING)
        return (struct node *)node;
    struct node *copy = node_new(node->where, NODE_MAPPING);
    for (size_t i = 0; i < node->count; i++)
        node_add(copy, node->entries[i].key, copy_tree(node->entries[i].value));
    return copy;
}

/* Puts the levels of a machine into the tree. */
static void set_tree(const struct machines *machines, const uint32_t *levels)
{
    for (size_t i = 0; i < machines->key_count; i++) {
        const struct machine_key *key = &machines->keys[i];
        const struct axis *axis = &machines->space->axes[key->axis];
        key->within->entries[key->entry].value = (struct node *)axis_node(axis, levels ? levels[key->axis] : 0);
    }
}

/* Fills the model that all machines are filled from: the topology with the first level of each key, whether these are a
 * machine or not. A machine then fills what it has at other levels. */
static void fill_first(struct machines *machines)
{
    if (!machines->key_count)
        return;
    struct model *model = arena_alloc(1, sizeof *model);
    *model = *machines->base.model;
    set_tree(machines, NULL);
    model->layers.set = overlay(model->layers.set, copy_tree(machines->tree));
    model->top = merge_layers(&model->layers);
    fill_model(model, model->top, NULL);
    machines->base.model = model;
}

static void hash_user_files(struct machines *machines)
{
    const struct space *space = machines->space;
    struct hash *hash = hash_begin();
    hash_text(hash, fingerprint_of_home());
    for (size_t i = 0; i < space->kernel_count; i++)
        hash_file(hash, space->kernels[i]);
    machines->files = hash_end(hash);
}

struct machines *machines_begin(const struct space *space)
{
    struct machines *machines = arena_alloc(1, sizeof *machines);
    machines->space = space;
    if (!space->topology)
        return NULL;
    machines->impls = name_impls(space->impls, space->impl_count);
    machines->base.model = check_topology(space->topology, &machines->base.text, NULL);
    if (!machines->base.model)
        return NULL;
    machines->keys = arena_alloc(space->axis_count, sizeof *machines->keys);
    machines->tree = node_new(space->topology_where, NODE_MAPPING);
    for (size_t i = 0; i < space->axis_count; i++)
        if (space->axes[i].key)
            add_key(machines, i);
    if (error_count())
        return NULL;
    machines->topology = topology_number(machines->base.model);
    fill_first(machines);
    hash_user_files(machines);
    return machines;
}

/* ---- structures */

/* The files of models that a model names. */
static struct impl_files impls_of(const struct machines *machines, const struct model *model)
{
    struct impl_files named = {0};
    for (size_t i = 0; i < machines->impls.count; i++)
        for (enum component part = 0; part < COMPONENTS; part++)
            if (model->impl[part].text && !strcmp(model->impl[part].text, machines->impls.list[i].name)) {
                named.list = arena_grow(named.list, named.count, sizeof *named.list);
                named.list[named.count++] = machines->impls.list[i];
                break;
            }
    return named;
}

/* Returns the filled and checked model of the tree as it is now; NULL after errors. */
static struct model *fill_machine(const struct machines *machines)
{
    struct model *model = arena_alloc(1, sizeof *model);
    const struct model *filled = base_replace(&machines->base, machines->key_count ? machines->tree : NULL);
    if (!filled)
        return NULL;
    *model = *filled;
    struct impl_files impls = impls_of(machines, model);
    match_impls(model, &impls);
    return error_count() ? NULL : model;
}

static const char *structure_of(const struct machines *machines, const struct plan *plan)
{
    struct hash *hash = hash_begin();
    hash_text(hash, machines->files);
    hash_text(hash, structure_name(plan));
    for (unsigned i = 0; i < plan->model->impls_count; i++)
        hash_file(hash, plan->model->impls[i].file);
    return hash_end(hash);
}

/* Finds the structure of the tree as it is now, or makes it. Returns NULL after errors. */
static struct structure *find_structure(struct machines *machines, const uint32_t *levels)
{
    struct model *model = fill_machine(machines);
    struct plan *plan = model ? elaborate(model) : NULL;
    if (plan) {
        wire(plan);
        measure(plan);
    }
    if (error_count())
        return NULL;
    const char *name = structure_of(machines, plan);
    for (unsigned i = 0; i < machines->structure_count; i++)
        if (!strcmp(machines->structures[i]->name, name))
            return machines->structures[i];
    struct structure *structure = arena_alloc(1, sizeof *structure);
    *structure = (struct structure){.number = machines->structure_count, .name = name, .plan = plan,
                                    .impls = impls_of(machines, model)};
    structure->sets = machine_sets(machines, levels, &structure->set_count);
    machines->structures = arena_grow(machines->structures, machines->structure_count, sizeof *machines->structures);
    return machines->structures[machines->structure_count++] = structure;
}

/* The levels of the keys that may decide the structure. */
static uint32_t *deciding_levels(const struct machines *machines, const uint32_t *levels)
{
    uint32_t *deciding = arena_alloc(machines->may_build_count + 1, sizeof *deciding);
    size_t count = 0;
    for (size_t i = 0; i < machines->key_count; i++)
        if (machines->keys[i].may_build)
            deciding[count++] = levels[machines->keys[i].axis];
    return deciding;
}

uint64_t machines_combination(const struct machines *machines, const uint32_t *levels)
{
    struct arena_mark mark = arena_mark();
    uint64_t hash = hash_bytes(0, deciding_levels(machines, levels), machines->may_build_count * sizeof *levels);
    arena_release(mark);
    return hash;
}

/* The structure, remembered by the levels that decide it. What it makes stays. */
static struct structure *structure_at(struct machines *machines, const uint32_t *levels)
{
    size_t bytes = machines->may_build_count * sizeof *levels;
    const uint32_t *deciding = deciding_levels(machines, levels);
    uint32_t bucket = hash_bits(hash_bytes(0, deciding, bytes), COMBINATION_BITS);
    for (const struct combination *c = machines->combinations[bucket]; c; c = c->next)
        if (!memcmp(c->levels, deciding, bytes))
            return c->structure;
    arena_keep_begin();
    struct structure *structure = find_structure(machines, levels);
    if (structure) {
        struct combination *c = arena_alloc(1, sizeof *c);
        *c = (struct combination){machines->combinations[bucket], deciding_levels(machines, levels), structure};
        machines->combinations[bucket] = c;
    }
    arena_keep_end();
    return structure;
}

/* ---- machines */

char **machine_sets(const struct machines *machines, const uint32_t *levels, size_t *count)
{
    char **sets = arena_alloc(machines->key_count + 1, sizeof *sets);
    *count = machines->key_count;
    for (size_t i = 0; i < machines->key_count; i++) {
        size_t axis = machines->keys[i].axis;
        sets[i] = arena_printf("%s=%s", machines->space->axes[axis].name, axis_text(&machines->space->axes[axis], levels[axis]));
    }
    return sets;
}

/* The keys that a simulator of the structure replaces. */
static const char *numbers_text(const struct machines *machines, const uint32_t *levels)
{
    const char **values = arena_alloc(machines->key_count + 1, sizeof *values);
    size_t room = sizeof "{}";
    for (size_t i = 0; i < machines->key_count; i++) {
        const struct machine_key *key = &machines->keys[i];
        values[i] = key->is_built ? NULL : axis_text(&machines->space->axes[key->axis], levels[key->axis]);
        room += key->is_built ? 0 : strlen(key->quoted) + strlen(values[i]) + sizeof ": , ";
    }
    char *text = arena_alloc(room, 1), *at = text;
    at = stpcpy(at, "{");
    for (size_t i = 0; i < machines->key_count; i++)
        if (values[i])
            at = stpcpy(stpcpy(stpcpy(stpcpy(at, at[-1] == '{' ? "" : ", "), machines->keys[i].quoted), ": "), values[i]);
    stpcpy(at, "}");
    return text;
}

/* The name of a machine that kbgen refuses: no other texts of its keys give the same. */
static const char *refused_hash(const struct machines *machines, const uint32_t *levels)
{
    struct hash *hash = hash_begin();
    hash_text(hash, machines->files);
    for (size_t i = 0; i < machines->base.text.file_count; i++)
        hash_add(hash, machines->base.text.files[i]->text, machines->base.text.files[i]->length);
    size_t count;
    char **sets = machine_sets(machines, levels, &count);
    for (size_t i = 0; i < count; i++)
        hash_text(hash, sets[i]);
    return hash_end(hash);
}

static void drop_message(const char *text, void *arg)
{
    (void)text;
    (void)arg;
}

struct machine machine_of(struct machines *machines, const uint32_t *levels)
{
    struct machine machine = {0};
    message_set_take(drop_message, NULL);
    set_tree(machines, levels);
    struct model *model = fill_machine(machines);
    struct structure *structure = model ? structure_at(machines, levels) : NULL;
    if (structure) {
        struct plan plan = *structure->plan;
        plan.model = model;
        machine = (struct machine){.model = model, .structure = structure, .hash = topology_hash(&plan),
                                   .numbers = numbers_text(machines, levels)};
    } else {
        machine.hash = refused_hash(machines, levels);
        machine.refused = errors_forget();
    }
    message_set_take(NULL, NULL);
    return machine;
}

struct number machines_topology(const struct machines *machines)
{
    return machines->topology;
}

void structure_build(const struct machines *machines, const struct structure *structure, const char *path, size_t jobs)
{
    const struct space *space = machines->space;
    struct topology_text text = {.sets = structure->sets, .set_count = structure->set_count};
    const struct model *model = check_topology(space->topology, &text, &structure->impls);
    errors_end();
    struct plan *plan = elaborate(model);
    wire(plan);
    measure(plan);
    errors_end();
    route(plan);
    struct emission emission = emit(plan, arena_printf("%s/templates", home_sources()));
    errors_end();
    const struct build_options options = {
        .path = path, .cc = KB_CC, .jobs = jobs, .kernels = space->kernels, .kernel_count = space->kernel_count,
        .impls = model->impls, .impl_count = model->impls_count,
    };
    struct build *build = build_begin(&options, &emission);
    if (!build_is_known(build)) {
        check_models(model, &options, &emission);
        errors_end();
    }
    build_simulator(build);
}
