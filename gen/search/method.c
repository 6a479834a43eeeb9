/* method.c: the methods by name. */
#include "method.h"

#include <assert.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "halving.h"
#include "method_kind.h"
#include "nsga2.h"
#include "sampling.h"
#include "sobol.h"
#include "vector.h"

static const struct method_kind *const kinds[METHODS] = {
    [METHOD_grid] = &method_grid, [METHOD_list] = &method_list, [METHOD_random] = &method_random,
    [METHOD_lhs] = &method_lhs, [METHOD_sobol] = &method_sobol, [METHOD_nsga2] = &method_nsga2, [METHOD_halving] = &method_halving,
};

uint64_t method_space_size(const struct method_space *space)
{
    uint64_t size = 1;
    for (size_t i = 0; i < space->axis_count; i++)
        if (__builtin_mul_overflow(size, space->axes[i].count, &size))
            return METHOD_ENDLESS;
    return size;
}

const char *method_refusal(const struct method_space *space)
{
    const struct method_kind *kind = kinds[space->choice.name];
    return kind && kind->refusal ? kind->refusal(space) : NULL;
}

struct method_space *method_space_of(const struct space *space)
{
    struct method_space *out = arena_alloc(1, sizeof *out);
    struct method_axis *axes = arena_alloc(space->axis_count, sizeof *axes);
    for (size_t i = 0; i < space->axis_count; i++)
        axes[i] = (struct method_axis){space->axes[i].count, space->axes[i].ordered};
    *out = (struct method_space){
        .axes = axes, .axis_count = space->axis_count, .objective_count = space->objective_count,
        .seed = space->seed, .points = space->budget_points, .choice = space->method,
    };
    const char *why = method_refusal(out);
    if (space->method.name == METHOD_list && space->method.file[OPTION_list_file])
        out->listed = vectors_of_file(space, space->method.file[OPTION_list_file], &out->listed_count);
    if (why)
        error_at(space->method.where, "%s", why);
    return out;
}

struct method *method_begin(const struct method_space *space)
{
    const struct method_kind *kind = kinds[space->choice.name];
    assert(kind && !method_refusal(space));
    arena_keep_begin();
    struct method *method = arena_alloc(1, sizeof *method);
    *method = (struct method){.kind = kind, .space = space};
    kind->begin(method);
    arena_keep_end();
    return method;
}

void method_end(struct method *method)
{
    if (method->kind->end)
        method->kind->end(method);
}

uint64_t method_total(const struct method *method)
{
    return method->total;
}

uint64_t method_known(const struct method *method)
{
    return method->known;
}

uint64_t method_first(const struct method *method)
{
    return method->first;
}

void method_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    assert(number >= method->first && number < method->known);
    method->kind->point(method, number, levels);
}

bool method_is_result(const struct method *method, const uint32_t *levels)
{
    return !method->kind->is_result || method->kind->is_result(method, levels);
}

void method_tell(struct method *method, uint64_t number, const struct evaluation *evaluation)
{
    assert(number >= method->first && number < method->known);
    if (method->kind->tell)
        method->kind->tell(method, number, evaluation);
}
