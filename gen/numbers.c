/* numbers.c: the numbers of a machine as the bytes that its simulator holds.
 *
 * They are the objects that templates/numbers.c.in defines, little endian, in the layout of the simulator. */
#include "numbers.h"

#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/hash.h"
#include "words.h"

/* Adds the user's component models by name, with their parameters. */
static void hash_own(struct hash *hash, const struct model *model)
{
    for (unsigned i = 0; i < model->impls_count; i++) {
        const struct impl *impl = &model->impls[i];
        hash_number(hash, impl->part);
        hash_text(hash, impl->name);
        for (unsigned j = 0; j < impl->params->count; j++) {
            const struct impl_param *p = &impl->params->list[j];
            hash_text(hash, p->name);
            hash_number(hash, p->n);
            hash_number(hash, p->num);
            hash_number(hash, p->den);
        }
    }
}

static void hash_optional(struct hash *hash, const char *name, uint64_t n)
{
    if (!n)
        return;
    hash_text(hash, name);
    hash_number(hash, n);
}

/* Adds what decides routes where it is not the default. */
static void hash_routes(struct hash *hash, const struct model *m)
{
    hash_optional(hash, "noc_wrap", m->noc_wrap.n);
    hash_optional(hash, "cube_wrap", m->cube_wrap.n);
    hash_optional(hash, "response", m->response.n);
    for (unsigned i = 0; i < m->plane_count; i++)
        hash_optional(hash, arena_printf("plane%u", i), (i ? 1 : 0) + 2 * m->planes[i].direction + 8 * m->planes[i].y_first);
    for (enum plane_of i = 0; i < PLANES_OF; i++)
        hash_optional(hash, arena_printf("plane_of%u", i), m->plane_of[i].n);
    for (unsigned i = 0; i < m->chip_link_count; i++) {
        const struct model_chip_link *link = &m->chip_links[i];
        hash_text(hash, "chip_link");
        for (const struct model_chip_end *end = link->end; end < link->end + COUNT_OF(link->end); end++)
            hash_number(hash, (end->sip << 8 | end->cube) * SIDES + end->side);
        hash_number(hash, link->bw.n);
        hash_number(hash, link->latency.n);
    }
}

const char *topology_hash(const struct plan *plan)
{
    const struct model *m = plan->model;
    const uint64_t counts[] = {m->sips.n, m->cube_rows.n, m->cube_cols.n, m->noc_rows.n, m->noc_cols.n, m->pes.n};
    struct hash *hash = hash_begin();
    hash_add(hash, counts, sizeof counts);
    hash_number(hash, m->accel_shared);
#define ATTR(name) hash_number(hash, m->attr[ATTR_##name].n);
#define OPTIONAL_ATTR(name) hash_optional(hash, #name, m->attr[ATTR_##name].n);
#include "../rt/kb/attrs.def"
#undef ATTR
    for (enum dtype i = 0; i < DTYPE_f8e4m3; i++) {
        hash_number(hash, m->k_per_cycle[i].n);
        hash_number(hash, m->lanes[i].n);
    }
    for (enum dtype i = DTYPE_f8e4m3; i < DTYPES; i++) {    /* that no engine has unless the topology says so */
        hash_optional(hash, "k_per_cycle", m->k_per_cycle[i].n ? i * (UINT64_C(1) << 32) + m->k_per_cycle[i].n : 0);
        hash_optional(hash, "lanes", m->lanes[i].n ? i * (UINT64_C(1) << 32) + m->lanes[i].n : 0);
    }
    for (unsigned i = 0; i < m->ops_count; i++) {
        hash_text(hash, m->ops[i].name);
        hash_number(hash, m->ops[i].cost.n);
    }
    for (unsigned i = 0; i < m->attach_count; i++)
        hash_number(hash, m->attach[i].cube * SIDES + m->attach[i].side);
    for (unsigned i = 0; i < plan->node_count; i++)
        hash_number(hash, plan->nodes[i].router);
    if (m->slices.n != m->pes.n)
        hash_number(hash, m->slices.n);
    hash_routes(hash, m);
    hash_own(hash, m);
    return hash_end(hash);
}

enum { NAME_ROOM_STEP = 64 };

size_t name_room(const struct model *model)
{
    return (strlen(model->name) / NAME_ROOM_STEP + 1) * NAME_ROOM_STEP;
}

static struct number new_number(const char *symbol, size_t length)
{
    return (struct number){symbol, arena_alloc(length, 1), length};
}

static struct number new_text(const char *symbol, const char *text, size_t room)
{
    struct number number = new_number(symbol, room);
    memcpy(number.bytes, text, strlen(text));
    return number;
}

static void put(struct number *number, size_t i, uint64_t n)
{
    memcpy(number->bytes + i * sizeof n, &n, sizeof n);
}

struct numbers numbers_of(const struct plan *plan)
{
    const struct model *m = plan->model;
    const char *hash = topology_hash(plan);
    struct number attrs = new_number("kb_attrs", ATTRS * sizeof(uint64_t));
    struct number k_per_cycle = new_number("kb_gemm_k_per_cycle", DTYPES * sizeof(uint64_t));
    struct number lanes = new_number("kb_math_lanes", DTYPES * sizeof(uint64_t));
    struct number costs = new_number("kb_op_costs", m->ops_count * sizeof(uint64_t));
    struct number chips = new_number("kb_chip_speeds", m->chip_link_count * 2 * sizeof(uint64_t));
    for (enum attr i = 0; i < ATTRS; i++)
        put(&attrs, i, m->attr[i].n);
    for (enum dtype i = 0; i < DTYPES; i++) {
        put(&k_per_cycle, i, m->k_per_cycle[i].n);
        put(&lanes, i, m->lanes[i].n);
    }
    for (unsigned i = 0; i < m->ops_count; i++)
        put(&costs, i, m->ops[i].cost.n);
    for (unsigned i = 0; i < m->chip_link_count; i++) {
        put(&chips, 2 * i, m->chip_links[i].bw.n);
        put(&chips, 2 * i + 1, m->chip_links[i].latency.n);
    }
    return (struct numbers){{
        [NUMBER_attrs] = attrs, [NUMBER_k_per_cycle] = k_per_cycle, [NUMBER_lanes] = lanes, [NUMBER_op_costs] = costs,
        [NUMBER_name] = new_text("kb_machine_name", m->name, name_room(m)),
        [NUMBER_hash] = new_text("kb_topology_hash", hash, strlen(hash) + 1), [NUMBER_chips] = chips,
    }};
}

/* ---- the topology itself: texts, each with its final 0; a letter before each file, option or model */

enum { KEPT_FILE = 'f', KEPT_SET = 's', KEPT_IMPL = 'i', TOPOLOGY_ROOM_STEP = 8192 };

/* The bytes reserved for a topology; a multiple of a step, so that most topologies share one structure. */
static size_t topology_room(size_t length)
{
    return (length / TOPOLOGY_ROOM_STEP + 1) * TOPOLOGY_ROOM_STEP;
}

struct kept {
    char *bytes;                                        /* NULL: they are only counted */
    size_t length;
};

static void keep(struct kept *kept, const char *text, size_t length)
{
    if (kept->bytes)
        memcpy(kept->bytes + kept->length, text, length);
    kept->length += length + 1;
}

static void keep_named(struct kept *kept, char kind, const char *text)
{
    if (kept->bytes)
        kept->bytes[kept->length] = kind;
    kept->length++;
    keep(kept, text, strlen(text));
}

static void keep_topology(struct kept *kept, const struct model *model)
{
    const struct topology_text *text = model->text;
    size_t folder = (size_t)(base_name(model->path) - model->path);
    for (size_t i = 0; i < text->file_count; i++) {
        keep_named(kept, KEPT_FILE, text->files[i]->path + folder);
        keep(kept, text->files[i]->text, text->files[i]->length);
    }
    for (size_t i = 0; i < text->set_count; i++)
        keep_named(kept, KEPT_SET, text->sets[i]);
    for (unsigned i = 0; i < model->impls_count; i++)
        keep_named(kept, KEPT_IMPL, base_name(model->impls[i].file));
}

struct number topology_number(const struct model *model)
{
    struct kept counted = {NULL, 0};
    keep_topology(&counted, model);
    struct number number = new_number("kb_topology", topology_room(counted.length));
    keep_topology(&(struct kept){number.bytes, 0}, model);
    return number;
}

static const char *next_text(const char **at)
{
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

const char *read_topology(const char *kept, struct topology_text *text, struct impl_files *impls)
{
    char **sets = NULL, **models = NULL;
    size_t model_count = 0;
    *text = (struct topology_text){.is_given = true};
    while (*kept) {
        char kind = *kept++;
        const char *name = next_text(&kept);
        if (kind == KEPT_FILE) {
            struct source *source = arena_alloc(1, sizeof *source);
            source->path = name;
            source->text = next_text(&kept);
            source->length = strlen(source->text);
            text->files = arena_grow(text->files, text->file_count, sizeof *text->files);
            text->files[text->file_count++] = source;
        } else if (kind == KEPT_SET) {
            sets = arena_grow(sets, text->set_count, sizeof *sets);
            sets[text->set_count++] = (char *)name;
        } else {
            models = arena_grow(models, model_count, sizeof *models);
            models[model_count++] = (char *)name;
        }
    }
    text->sets = sets;
    *impls = name_impls(models, model_count);
    return text->files[0]->path;
}
