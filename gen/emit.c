/* emit.c: expands every template of a folder with the plan's rows, under a banner.
 *
 * The same plan and templates give the same text: it contains no date, host or folder. */
#include "emit.h"

#include <string.h>

#include "../rt/common/arena.h"
#include "cells.h"
#include "tmpl.h"
#include "words.h"

/* The first line of each file: version, topology, --set options. It is one line however long, so that later line
 * numbers do not change. */
static const char *banner(const struct model *model)
{
    char *text = arena_printf("/* Made by kbgen %s from %s", KBGEN_VERSION, comment_text(base_name(model->path)));
    for (size_t i = 0; i < model->text->set_count; i++)
        text = arena_printf("%s%s --set '%s'", text, i ? "" : " with", comment_text(model->text->sets[i]));
    return arena_printf("%s */\n", text);
}

/* C with a blank in place of each comment and every line where it was. So comments cannot influence what the compiler
 * makes. */
static const char *without_comments(const char *text)
{
    char *code = arena_alloc(strlen(text) + 1, 1), *to = code, quote = 0;
    bool comment = false;
    for (; *text; text++) {
        if (comment && !strncmp(text, "*/", 2))
            comment = false, text++, *to++ = ' ';
        else if (!comment && !quote && !strncmp(text, "/*", 2))
            comment = true, text++;
        else if (!comment || *text == '\n')
            *to++ = *text;
        if (quote && *text == '\\')
            *to++ = *++text;
        else if (quote && *text == quote)
            quote = 0;
        else if (!comment && !quote && (*text == '"' || *text == '\''))
            quote = *text;
    }
    return code;
}

/* Expands one template. Returns NULL after reporting its errors. */
static const char *expand(const char *folder, const char *template, const struct cells *cells)
{
    struct source *source = arena_alloc(1, sizeof *source);
    source->path = arena_printf("%s/%s", folder, template);
    source->text = read_file(source->path, &source->length);
    if (!source->text)
        die("read %s:", source->path);
    return tmpl_expand(source, cells);
}

struct emission emit(const struct plan *plan, const char *folder)
{
    const struct cells *cells = fill_cells(plan, KBGEN_VERSION);
    struct words templates = {0};
    words_of_folder(&templates, folder, ".in", "");
    struct emission emission = {arena_alloc(templates.count, sizeof *emission.files), 0, numbers_of(plan)};
    emission.numbers.list[NUMBER_topology] = topology_number(plan->model);
    for (size_t i = 0; i < templates.count; i++) {
        const char *template = templates.word[i], *name = arena_text(template, strlen(template) - strlen(".in"));
        const char *text = expand(folder, template, cells);
        if (!text)
            continue;
        text = arena_printf("%s%s", banner(plan->model), text);
        emission.files[emission.count++] = (struct emitted){
            name, text, strlen(text), without_comments(text),
        };
    }
    return emission;
}
