/* impl.h: which files model which components. */
#ifndef GEN_IMPL_H
#define GEN_IMPL_H

#include <stddef.h>

#include "model.h"

/* What a component's own model has to define, a row of rt/kb/impl.def. */
struct impl_form {
    const char *part, *result, *request;
    enum component component;
    bool has_state;                                     /* one for each memory */
};

extern const struct impl_form impl_forms[];
extern const size_t impl_form_count;

/* The form of a component, or NULL: its code cannot be swapped. */
const struct impl_form *impl_form(enum component part);

/* The declaration of NAME_service, without the semicolon. */
const char *impl_prototype(const struct impl *impl);

/* Requires: the texts of impl and params filled in. Leaves: model->impls, each with its file among `files`, those of
 * --impl. Reports what has no model, or no component. */
void match_impls(struct model *model, char *const *files, size_t count);

#endif
