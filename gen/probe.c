/* probe.c: whether the files of the user's own models hold what they have to.
 *
 * Each is compiled once, between the declarations of own.h, with which a wrong signature is in conflict, and aliases of
 * what it has to define, which the compiler refuses when it is not there. */
#include "probe.h"

#include <stdio.h>

#include "../rt/common/arena.h"
#include "cc.h"
#include "impl.h"
#include "job.h"

static void report(const struct impl *impl, const char *said)
{
    const char *state = impl_form(impl->part)->has_state ? arena_printf(" and KB_STATE(%s);", impl->name) : "";
    error_at(impl->named->where, "%s: %s is no model of it", impl->named->key, impl->file);
    note_at(impl->named->where, "it has to define %s%s", impl_prototype(impl), state);
    fprintf(stderr, "%s", said);
}

void probe_impls(const struct model *model, const struct build *build, const struct emission *emission)
{
    for (unsigned i = 0; i < model->impls_count; i++) {
        const struct impl *impl = &model->impls[i];
        struct job job = own_job(build, impl, emission);
        words_add(&job.words, "-S");
        words_add(&job.words, "-o");
        words_add(&job.words, "/dev/null");
        size_t length;
        const char *said = run_for_errors(&job, &length);
        if (job.status != 0)
            report(impl, said);
    }
}
