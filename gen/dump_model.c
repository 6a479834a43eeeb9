/* dump_model.c: a checked model as a table: each key, its value in base units, and where that comes from. */
#include <inttypes.h>
#include <stdio.h>

#include "../rt/common/arena.h"
#include "dump_model.h"
#include "schema.h"

static void row(FILE *out, const char *path, const char *value, struct where where)
{
    const char *place = "default";
    if (where.file)
        place = arena_printf("%s:%u:%u", where.file->path, where.line, where.col);
    fprintf(out, "%-63s %-24s %s\n", path, value, place);
}

static const char *value_text(const struct key *key, uint64_t n)
{
    const char *words[8];
    switch (key->kind) {
    case KIND_time: case KIND_length: return arena_printf("%" PRIu64 " ps", n);
    case KIND_bandwidth: return n ? arena_printf("%" PRIu64 " bytes/s", n) : "no limit";
    case KIND_clock: return arena_printf("%" PRIu64 " kHz", n);
    case KIND_size: return arena_printf("%" PRIu64 " bytes", n);
    case KIND_flag: return n ? "true" : "false";
    case KIND_choice:
        schema_words(key, words, COUNT_OF(words));
        return words[n];
    default: return arena_printf("%" PRIu64, n);
    }
}

static void dump_values(FILE *out, const struct key *key, const struct value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].key)                              /* a dtype without a rate has none */
            row(out, values[i].key, value_text(key, values[i].n), values[i].where);
}

static void dump_ops(FILE *out, const struct model *model)
{
    for (unsigned i = 0; i < model->ops_count; i++)
        row(out, model->ops[i].cost.key, arena_printf("%" PRIu64, model->ops[i].cost.n), model->ops[i].cost.where);
}

static void dump_router(FILE *out, const struct key *key, const struct router_at *at)
{
    row(out, key->path, arena_printf("[%" PRIu64 ", %" PRIu64 "]", at->row, at->col), at->where);
}

static void dump_list(FILE *out, const struct key *key, const struct model *model)
{
    for (unsigned i = 0; i < model->attach_count; i++) {
        const struct model_attachment *at = &model->attach[i];
        row(out, key->path, arena_printf("cube %" PRIu64 ", side %c", at->cube, "nesw"[at->side]), at->where);
    }
}

static void dump_params(FILE *out, const struct impl_params *params)
{
    for (unsigned i = 0; i < params->count; i++) {
        const struct impl_param *p = &params->list[i];
        const char *value = arena_printf("%" PRIu64 " %s", p->n, p->unit ? p->unit : "");
        if (!p->unit)
            value = arena_printf(p->whole ? "%" PRIu64 : "%" PRIu64 "/%" PRIu64, p->num, p->den);
        row(out, p->key, value, p->where);
    }
}

static void dump_keys(FILE *out, const struct key *keys, const struct model *model);

static void dump_key(FILE *out, const struct key *key, const struct model *model)
{
    const void *target = (const char *)model + key->target;
    const struct text *text = target;
    switch (key->kind) {
    case KIND_mapping: dump_keys(out, key, model); break;
    case KIND_list: dump_list(out, key, model); break;
    case KIND_either:
        if (model->pe_at)
            dump_keys(out, key, model);
        else
            row(out, key->path, key->standard, model->layout_where);
        break;
    case KIND_path: case KIND_constant: break;          /* these fill nothing */
    case KIND_params: dump_params(out, target); break;
    case KIND_ratio: row(out, key->path, arena_printf("%s ns/mm", text->text), text->where); break;
    case KIND_impl: case KIND_name: case KIND_resource:
        row(out, key->path, text->text ? text->text : "none", text->where);
        break;
    case KIND_time: case KIND_length: case KIND_bandwidth: case KIND_clock: case KIND_size: case KIND_count:
    case KIND_choice: case KIND_flag: dump_values(out, key, target, 1); break;
    case KIND_router: dump_router(out, key, target); break;
    case KIND_routers:
        for (unsigned i = 0; i < model->pe_at_count; i++)
            dump_router(out, key, &model->pe_at[i]);
        break;
    case KIND_dtypes: dump_values(out, key, target, DTYPES); break;
    case KIND_ops: dump_ops(out, model); break;
    }
}

static void dump_keys(FILE *out, const struct key *keys, const struct model *model)
{
    for (size_t i = 0; i < keys->count; i++)
        dump_key(out, &keys->keys[i], model);
}

void dump_model(FILE *out, const struct model *model)
{
    dump_keys(out, schema(), model);
}
