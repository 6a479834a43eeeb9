/* impl.h: the files that model components. */
#ifndef GEN_IMPL_H
#define GEN_IMPL_H

#include <stddef.h>

#include "model.h"

/* What a user's model of a component must define: a row of rt/kb/impl.def. */
struct impl_form {
    const char *part, *result, *request;
    enum component component;
    bool has_state;                                     /* it keeps a state for each memory */
};

extern const struct impl_form impl_forms[];
extern const size_t impl_form_count;

/* The form of a component's model, or NULL if it cannot be swapped. */
const struct impl_form *impl_form(enum component part);

/* The prototype of NAME_service, without the semicolon. */
const char *impl_prototype(const struct impl *impl);

/* Requires: the values of `impl` and `params`. Leaves: model->impls, each with its file from `files`, the --impl
 * options. Reports components without a file and files without a component. */
void match_impls(struct model *model, char *const *files, size_t count);

#endif
