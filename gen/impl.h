/* impl.h: the files that model components. */
#ifndef GEN_IMPL_H
#define GEN_IMPL_H

#include <stddef.h>

#include "model.h"

/* What a user's model of a component must define: a row of rt/kb/impl.def. */
struct impl_form {
    const char *part, *result, *request;
    const char *queue;                                  /* what NAME_next is asked; NULL: there is no such function */
    bool has_state;                                     /* it keeps a state for each node of the kind */
    bool is_fabric;                                     /* it handles the heads of messages */
};

extern const struct impl_form impl_forms[COMPONENTS];

/* The prototypes of NAME_service and NAME_next, without the semicolon; the latter is "" if there is no such function. */
const char *impl_prototype(const struct impl *impl);
const char *impl_next_prototype(const struct impl *impl);

/* The files of the --impl options, and the models' names: "models/banks.c", "banks". */
struct impl_files {
    struct impl_file {
        const char *path, *name;
    } *list;
    size_t count;
};

/* A usage error unless each is NAME.c with a NAME that no other has. */
struct impl_files name_impls(char *const *paths, size_t count);

/* A usage error unless each can be read. */
void read_impls(const struct impl_files *files);

/* Requires: the values of `impl` and `params`. Leaves: model->impls, each with its file. Reports components without a file
 * and files without a component. */
void match_impls(struct model *model, const struct impl_files *files);

#endif
