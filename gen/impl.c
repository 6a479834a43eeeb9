/* impl.c: matches the topology's `impl: NAME` with the files of --impl NAME.c.
 *
 * The content of the files is checked in gen/build/compiler.c. */
#include "impl.h"

#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/path_error.h"
#include "words.h"

const struct impl_form impl_forms[COMPONENTS] = {
#define IMPL(part, result, request, has_state) [COMPONENT_##part] = {#part, #result, #request, NULL, has_state, false},
#define QUEUED(part, result, request, queue) [COMPONENT_##part] = {#part, #result, #request, #queue, true, false},
#define FABRIC(part) \
    [COMPONENT_##part] = {#part, "struct kb_handled", "struct kb_head_request", "struct kb_head_queue", true, true},
#include "../rt/kb/impl.def"
};

#define IMPL(...) +1
_Static_assert(0
#include "../rt/kb/impl.def"
               == COMPONENTS, "every component can have a model of the user's");

const char *impl_prototype(const struct impl *impl)
{
    const struct impl_form *form = &impl_forms[impl->part];
    const char *state = form->has_state ? arena_printf("struct %s *state, ", impl->name) : "";
    return arena_printf("%s %s_service(%sconst %s *ask)", form->result, impl->name, state, form->request);
}

const char *impl_next_prototype(const struct impl *impl)
{
    const struct impl_form *form = &impl_forms[impl->part];
    return form->queue ? arena_printf("uint32_t %s_next(struct %s *state, const %s *ask)", impl->name, impl->name,
                                      form->queue) : "";
}

/* ---- --impl options */

/* The model's name: the identifier before .c in the file's name. */
static const char *name_of(const char *file)
{
    const char *base = base_name(file);
    size_t length = strlen(base), end = strlen(".c");
    const char *name = length > end && !strcmp(base + length - end, ".c") ? arena_text(base, length - end) : "";
    if (!is_identifier(name))
        usage_error("--impl takes a file NAME.c, NAME being " IDENTIFIER_FORM "; not '%s'", file);
    return name;
}

struct impl_files name_impls(char *const *files, size_t count)
{
    struct impl_files named = {arena_alloc(count + 1, sizeof *named.list), count};
    for (size_t i = 0; i < count; i++) {
        named.list[i] = (struct impl_file){files[i], name_of(files[i])};
        for (size_t j = 0; j < i; j++)
            if (!strcmp(named.list[i].name, named.list[j].name))
                usage_error("--impl gives two files %s.c: %s and %s", named.list[i].name, files[j], files[i]);
    }
    return named;
}

void read_impls(const struct impl_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        size_t length;
        if (!read_file(files->list[i].path, &length))
            usage_error("--impl %s: %s", files->list[i].path, path_error(files->list[i].path));
    }
}

/* ---- components */

static void error_no_file(const struct text *text, const struct impl_files *files)
{
    const char **names = arena_alloc(files->count + 1, sizeof *names);
    for (size_t i = 0; i < files->count; i++)
        names[i] = files->list[i].name;
    error_at(text->where, "%s: no --impl gives %s.c", text->key, text->text);
    const char *near = nearest_name(text->text, names, files->count);
    if (near)
        note_at(text->where, "did you mean '%s'?", near);
    else
        note_at(text->where, "--impl FILE names the C file %s.c, which models this part", text->text);
}

static void add_impl(struct model *model, enum component part, const struct impl_file *file)
{
    const struct text *text = &model->impl[part];
    for (unsigned i = 0; i < model->impls_count; i++)
        if (!strcmp(model->impls[i].name, text->text)) {
            error_at(text->where, "%s: %s.c models one part alone", text->key, text->text);
            note_at(model->impls[i].named->where, "it models this one already");
            return;
        }
    model->impls = arena_grow(model->impls, model->impls_count, sizeof *model->impls);
    model->impls[model->impls_count++] = (struct impl){part, text->text, file->path, text, &model->params[part]};
}

static void match_part(struct model *model, enum component part, const struct impl_files *files)
{
    const struct text *text = &model->impl[part];
    if (!text->text)
        return;                                         /* it was reported already */
    const struct impl_params *params = &model->params[part];
    if (strchr(text->text, '.')) {
        if (params->where.file)
            error_at(params->where, "%s: %s takes none", params->key, text->text);
        return;
    }
    size_t i = 0;
    while (i < files->count && strcmp(files->list[i].name, text->text))
        i++;
    if (i == files->count)
        error_no_file(text, files);
    else
        add_impl(model, part, &files->list[i]);
}

static bool is_named(const struct model *model, const char *name)
{
    for (enum component part = 0; part < COMPONENTS; part++)
        if (model->impl[part].text && !strcmp(model->impl[part].text, name))
            return true;
    return false;
}

void match_impls(struct model *model, const struct impl_files *files)
{
    for (enum component part = 0; part < COMPONENTS; part++)
        match_part(model, part, files);
    if (error_count())
        return;
    for (size_t i = 0; i < files->count; i++)
        if (!is_named(model, files->list[i].name))
            usage_error("--impl %s: no component of %s has `impl: %s`", files->list[i].path, model->path,
                        files->list[i].name);
}
