/* emit.c: from a plan to C: every template of a folder, expanded, under a banner.
 *
 * The same plan and templates give the same text: no date, no host, no folder. */
#include "emit.h"

#include <string.h>

#include "../rt/text/base.h"
#include "cells.h"
#include "row.h"
#include "tmpl.h"
#include "words.h"

/* Who made a file of what: the first comment of each. */
static const char *banner(const struct model *model, char *const *sets, size_t set_count)
{
    char *text = arena_printf("/* Made by kbgen %s from %s", KBGEN_VERSION, comment_text(base_name(model->path)));
    for (size_t i = 0; i < set_count; i++)
        text = arena_printf("%s%s\n *     --set '%s'", text, i ? "" : " with", comment_text(sets[i]));
    return arena_printf("%s */\n", text);
}

/* Expands one template; NULL: it has errors, which are reported. */
static const char *expand(const char *folder, const char *template, const struct cells *cells)
{
    struct source *source = arena_alloc(1, sizeof *source);
    source->path = arena_printf("%s/%s", folder, template);
    source->text = read_file(source->path, &source->length);
    if (!source->text)
        die("read %s:", source->path);
    return tmpl_expand(source, cells);
}

struct emission emit(const struct plan *plan, const char *folder, char *const *sets, size_t set_count)
{
    const struct cells *cells = fill_cells(plan, KBGEN_VERSION);
    struct words templates = {0};
    words_of_folder(&templates, folder, ".in", "");
    struct emission emission = {arena_alloc(templates.count, sizeof *emission.files), 0};
    for (size_t i = 0; i < templates.count; i++) {
        const char *template = templates.word[i], *name = arena_text(template, strlen(template) - strlen(".in"));
        const char *text = expand(folder, template, cells);
        if (!text)
            continue;
        text = arena_printf("%s%s", banner(plan->model, sets, set_count), text);
        emission.files[emission.count++] = (struct emitted){name, text, strlen(text)};
    }
    return emission;
}
