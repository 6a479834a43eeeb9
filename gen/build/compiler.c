/* compiler.c: the compiler's command lines, and what its refusals mean.
 *
 * File names in the compiler's messages are absolute; in what it makes they have no folder, so that equal inputs give
 * equal bytes in any folder. */
#include "compiler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../impl.h"
#include "home.h"

/* The flags that the Makefile builds kbgen with. */
#ifndef KB_OPT
#define KB_OPT "-O2"
#endif
#ifndef KB_SAN
#define KB_SAN ""
#endif

const char *absolute_path(const char *path)
{
    static char *folder;
    if (*path == '/')
        return path;
    if (!folder && !(folder = getcwd(NULL, 0)))
        die("find the current folder:");
    return arena_printf("%s/%s", folder, path + (strncmp(path, "./", 2) ? 0 : 2));
}

struct words compiler_named(const struct build_options *options)
{
    struct words words = {0};
    words_split(&words, options->cc);
    if (!words.count)
        usage_error("--cc names no compiler");
    if (strchr(words.word[0], '/'))
        words.word[0] = absolute_path(words.word[0]);
    return words;
}

struct words compiler_with_flags(const struct build_options *options)
{
    struct words words = compiler_named(options);
    words_add(&words, "-std=gnu11");
    words_add(&words, "-fPIE");
    words_add(&words, "-Wall");
    words_split(&words, KB_OPT);
    if (options->level)
        words_add(&words, arena_printf("-O%s", options->level));
    words_split(&words, KB_SAN);
    return words;
}

/* ---- component models of the user's */

static const char *own_header(const struct emission *emission)
{
    for (size_t i = 0;; i++)
        if (!strcmp(emission->files[i].name, "own.h"))
            return emission->files[i].code;
}

/* An alias of a name that a model must define: the compiler refuses it if the name is missing. */
static const char *alias_of(const char *model, const char *name)
{
    return arena_printf("extern __typeof(%s_%s) %s_%s_is_there __attribute__((alias(\"%s_%s\")));\n", model, name, model,
                        name, model, name);
}

/* The text that the compiler reads for a model. An #include cannot quote a quote. */
static const char *model_source(const struct translation_unit *unit, const struct emission *emission)
{
    const struct impl *impl = unit->impl;
    if (strpbrk(unit->path, "\"\n\\"))
        usage_error("--impl %s: a path with quotes or backslashes cannot be included", impl->file);
    const struct impl_form *form = &impl_forms[impl->part];
    const char *next = form->queue ? alias_of(impl->name, "next") : "";
    const char *state = form->has_state ? alias_of(impl->name, "state") : "";
    return arena_printf("# 1 \"own.h\"\n%s\n# 1 \"kbgen\"\n#include \"%s\"\n%s%s%s", own_header(emission), unit->path,
                        alias_of(impl->name, "service"), next, state);
}

/* ---- one file */

/* All of the command but the file. */
static struct process command_for(const struct build_options *options, const struct translation_unit *unit)
{
    const char *runtime = arena_printf("%s/rt", home_sources()), *library = arena_printf("%s/kernels", home_sources());
    int folder = (int)(strrchr(unit->path, '/') + 1 - unit->path);
    struct process compiler = {.what = unit->name, .words = compiler_with_flags(options)};
    struct words *words = &compiler.words;
    words_add(words, arena_printf("-I%s", library));
    words_add(words, arena_printf("-I%s", runtime));
    words_add(words, "-fstack-clash-protection");       /* a frame cannot reach past the guard of a kernel's stack */
    words_add(words, arena_printf("-ffile-prefix-map=%.*s=", folder, unit->path));
    words_add(words, arena_printf("-ffile-prefix-map=%s=rt", runtime));
    words_add(words, arena_printf("-ffile-prefix-map=%s=kernels", library));
    words_add(words, "-x");
    words_add(words, "c");
    return compiler;
}

struct process compile_command(const struct build_options *options, const struct translation_unit *unit)
{
    struct process compiler = command_for(options, unit);
    words_add(&compiler.words, unit->path);
    return compiler;
}

struct process check_command(const struct build_options *options, const struct translation_unit *unit,
                             const struct emission *emission)
{
    if (!unit->impl)
        return compile_command(options, unit);
    struct process compiler = command_for(options, unit);
    words_add(&compiler.words, "-");
    compiler.input = model_source(unit, emission);
    return compiler;
}

void compiler_refused(const struct process *compiler, const struct translation_unit *unit)
{
    if (unit->users && WIFEXITED(compiler->status))
        usage_error("%s does not compile", unit->name);
    die("%s fails on %s", compiler->words.word[0], unit->path);
}

static void report_model(const struct impl *impl, const char *diagnostics)
{
    const struct impl_form *form = &impl_forms[impl->part];
    const char *next = form->queue ? arena_printf(", %s", impl_next_prototype(impl)) : "";
    const char *state = form->has_state ? arena_printf(" and KB_STATE(%s);", impl->name) : "";
    error_at(impl->named->where, "%s: %s is no model of it", impl->named->key, impl->file);
    note_at(impl->named->where, "it has to define %s%s%s", impl_prototype(impl), next, state);
    fprintf(stderr, "%s", diagnostics);
}

void check_models(const struct model *model, const struct build_options *options, const struct emission *emission)
{
    for (unsigned i = 0; i < model->impls_count; i++) {
        const struct impl *impl = &model->impls[i];
        const struct translation_unit unit = {.name = impl->file, .path = absolute_path(impl->file), .users = true, .impl = impl};
        struct process compiler = check_command(options, &unit, emission);
        words_add(&compiler.words, "-S");
        words_add(&compiler.words, "-o");
        words_add(&compiler.words, "/dev/null");
        size_t length;
        const char *diagnostics = process_errors(&compiler, &length);
        if (compiler.status != 0)
            report_model(impl, diagnostics);
    }
}
