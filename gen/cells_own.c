/* cells_own.c: cells about whose code models a component: built in, or the user's own. */
#include "cells_own.h"

#include "../rt/common/arena.h"
#include "impl.h"
#include "row.h"

const struct impl *own_impl(const struct model *model, enum component part)
{
    for (unsigned i = 0; i < model->impls_count; i++)
        if (model->impls[i].part == part)
            return &model->impls[i];
    return NULL;
}

/* The built-in model of a memory is called otherwise, and these cells are not used then. */
void fill_services(struct table *once, const struct model *model)
{
    for (size_t i = 0; i < impl_form_count; i++) {
        const struct impl_form *form = &impl_forms[i];
        const struct impl *own = own_impl(model, form->component);
        const char *name = own ? own->name : arena_printf("builtin_%s", form->part);
        set_cell(once, arena_printf("%s_service", form->part), arena_printf("%s_service", name));
        if (form->has_state)
            set_cell(once, arena_printf("%s_state", form->part), arena_printf("%s_state", name));
    }
}

void fill_own(struct table *own, struct table *memories, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->model->impls_count; i++) {
        const struct impl *impl = &plan->model->impls[i];
        add_row(own, impl->name, place_text(impl->named->where, impl->named->key), impl_prototype(impl));
        if (impl_form(impl->part)->has_state)
            add_row(memories, impl->name, arena_printf("%s_state", impl->name), arena_printf("%s_reset", impl->name),
                    arena_printf("%s_memories", impl->name),
                    number_text(impl->part == COMPONENT_sram ? plan->all_cubes : plan->all_pes));
    }
}

static void fill_param(struct table *params, struct table *ratios, const char *of, const struct impl_param *p)
{
    const char *place = place_text(p->where, p->key);
    if (p->whole)
        add_row(params, of, p->name, number_text(p->n), p->unit ? arena_printf("%s; ", p->unit) : "", place);
    if (!p->unit)
        add_row(ratios, of, p->name, number_text(p->num), number_text(p->den), place);
}

void fill_own_params(struct table *params, struct table *ratios, const struct model *model)
{
    for (unsigned i = 0; i < model->impls_count; i++) {
        const struct impl *impl = &model->impls[i];
        for (unsigned j = 0; j < impl->params->count; j++)
            fill_param(params, ratios, impl->name, &impl->params->list[j]);
    }
}

void hash_own(struct hash *hash, const struct model *model)
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
