/* build.c: from generated C to a simulator, with as little work as possible.
 *
 * A simulator's build ID is a hash over its structure and its numbers, so one that is up to date is left alone. A linked
 * simulator is cached under the hash of its structure: others of that structure are a copy with other numbers. Objects
 * are cached one by one, since a change of structure mostly changes few of them. */
#include "build.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/path_error.h"
#include "build_key.h"
#include "cache.h"
#include "elf.h"
#include "home.h"
#include "library.h"
#include "output.h"
#include "timing.h"

/* What the Makefile compiles the runtime with besides, as to debug information. */
#ifndef KB_OWN
#define KB_OWN ""
#endif

enum { GENERATED_UNITS = 2 };

struct build {
    struct build_inputs inputs;
    const char *folder;                                 /* for temporary files; NULL: not made yet */
    const char *structure;                              /* the cache's name for this structure; NULL: not known yet */
    const char *key;                                    /* the build ID that the simulator is to carry */
    bool is_there;                                      /* the simulator at its path carries it */
    struct elf linked;                                  /* the simulator, made of one of the same structure; or NULL */
};

/* The folder for temporary files, absolute. */
static const char *folder_of(void *build)
{
    struct build *b = build;
    if (!b->folder)
        b->folder = absolute_path(temporary_folder(b->inputs.options->path, true));
    return b->folder;
}

/* ---- what there is to compile */

static void add_unit(struct build *build, struct translation_unit unit)
{
    build->inputs.units[build->inputs.unit_count++] = unit;
}

static void add_users_units(struct build *build)
{
    const struct build_options *options = build->inputs.options;
    for (size_t i = 0; i < options->kernel_count; i++) {
        const char *name = options->kernels[i];
        size_t length;
        if (!read_file(name, &length))
            usage_error("-k %s: %s", name, path_error(name));
        add_unit(build, (struct translation_unit){.name = name, .path = absolute_path(name),
                                      .object = arena_printf("user%zu.o", i), .users = true});
    }
    for (size_t i = 0; i < options->impl_count; i++) {
        const struct impl *impl = &options->impls[i];
        add_unit(build, (struct translation_unit){.name = impl->file, .path = absolute_path(impl->file),
                                      .object = arena_printf("own%zu.o", i), .users = true, .impl = impl});
    }
}

static bool is_table(const struct emitted *file)
{
    return !strcmp(file->name, "machine.c") || !strcmp(file->name, NUMBERS_FILE);
}

static const char *write_generated(struct build *build, const struct emitted *file)
{
    const char *path = temporary(folder_of(build), file->name);
    write_file(path, file->code, strlen(file->code));
    return path;
}

/* Adds a unit that includes the generated files ending with .c, either the tables or the others. */
static void add_joined_unit(struct build *build, const char *name, bool tables)
{
    const struct emission *emission = build->inputs.emission;
    struct emitted joined = {.name = arena_printf("%s.c", name), .code = ""};
    for (size_t i = 0; i < emission->count; i++) {
        const struct emitted *file = &emission->files[i];
        if (file->name[strlen(file->name) - 1] == 'c' && is_table(file) == tables)
            joined.code = arena_printf("%s#include \"%s\"\n", joined.code, file->name);
    }
    add_unit(build, (struct translation_unit){.name = joined.name, .path = write_generated(build, &joined),
                                  .object = arena_printf("%s.o", name), .tables = tables,
                                  .fingerprint = fingerprint_of_generated(emission, &joined)});
}

/* Writes the generated files as they are compiled. They are two units: the tables, which differ from machine to machine,
 * and the code, which few facts of the structure decide, so that its object is mostly in the cache. */
static void add_generated_units(struct build *build)
{
    const struct emission *emission = build->inputs.emission;
    for (size_t i = 0; i < emission->count; i++)
        write_generated(build, &emission->files[i]);
    add_joined_unit(build, "tables", true);
    add_joined_unit(build, "code", false);
}

struct build *build_begin(const struct build_options *options, const struct emission *emission)
{
    struct build *build = arena_alloc(1, sizeof *build);
    build->inputs = (struct build_inputs){
        .options = options, .emission = emission, .compiler = compiler_with_flags(options),
        .scratch = folder_of, .scratch_arg = build,
    };
    build->inputs.units = arena_alloc(options->kernel_count + options->impl_count + GENERATED_UNITS,
                                      sizeof *build->inputs.units);
    add_users_units(build);
    return build;
}

/* ---- linked before */

static void set_structure(struct build *build, const char *structure)
{
    build->structure = arena_printf("simulator-%s", structure);
    build->key = build_key(build->inputs.emission, structure);
    const struct build_options *options = build->inputs.options;
    const char *carrier = options->library ? library_file(options->path, options->library) : options->path;
    build->is_there = elf_has_key(carrier, build->key);
}

/* Looks in the cache for a linked simulator of the same structure, and puts key and numbers into it. */
static bool find_linked(struct build *build)
{
    struct elf *linked = &build->linked;
    if (build->inputs.options->library)
        return false;
    linked->bytes = cache_find(build->structure, &linked->length);
    if (linked->bytes && !elf_patch(*linked, build->key, &build->inputs.emission->numbers))
        linked->bytes = NULL;
    return linked->bytes;
}

bool build_is_known(struct build *build)
{
    const char *structure = fingerprint_of_structure(&build->inputs, false);
    if (structure)
        set_structure(build, structure);
    bool known = structure && (build->is_there || find_linked(build));
    timing_pass("look for a linked simulator");
    return known;
}

/* Caches a linked simulator for others of its structure. Its numbers must be patchable: putting the same numbers into it
 * must find all of them and change no byte. */
static void keep_linked(const struct build *build, const char *path)
{
    size_t length, linked_length;
    char *bytes = read_file(path, &length);
    const char *linked = read_file(path, &linked_length);
    if (!bytes || !linked || !elf_patch((struct elf){bytes, length}, build->key, &build->inputs.emission->numbers)
        || memcmp(bytes, linked, length))
        return;
    cache_keep(build->structure, bytes, length);
}

/* ---- compile and link */

static struct process compile_unit(const struct build *build, const struct translation_unit *unit)
{
    struct process compiler = compile_command(build->inputs.options, unit);
    struct words *words = &compiler.words;
    if (unit->impl) {
        words_add(words, "-include");
        words_add(words, arena_printf("%s/own.h", build->folder));
        words_add(words, arena_printf("-ffile-prefix-map=%s/=", build->folder));
    }
    if (!unit->users)
        words_split(words, KB_OWN);
    else if (build->inputs.options->library)
        words_add(words, "-fPIC");                      /* a kernel may have variables of threads */
    if (unit->tables) {                                 /* numbers must not be folded into code or debug information */
        words_add(words, "-g0");
        words_add(words, "-fno-lto");
        words_add(words, "-fno-data-sections");
    }
    words_add(words, "-c");
    words_add(words, "-o");
    words_add(words, unit->object);
    return compiler;
}

/* Writes a unit's object if it is in the cache. Tables are not cached: they differ wherever a compiler is needed. */
static bool find_object(const struct build *build, const struct translation_unit *unit)
{
    size_t length;
    const char *bytes = unit->tables ? NULL : cache_find(object_name(&build->inputs, unit), &length);
    if (bytes)
        write_file(unit->object, bytes, length);
    return bytes;
}

static void keep_object(const struct build *build, const struct translation_unit *unit)
{
    size_t length;
    const char *bytes = unit->tables ? NULL : read_file(unit->object, &length);
    if (bytes)
        cache_keep(object_name(&build->inputs, unit), bytes, length);
}

static void compile(struct build *build)
{
    struct build_inputs *inputs = &build->inputs;
    struct process *compilers = arena_alloc(inputs->unit_count, sizeof *compilers);
    struct translation_unit **compiled = arena_alloc(inputs->unit_count, sizeof *compiled);
    size_t count = 0;
    for (size_t i = 0; i < inputs->unit_count; i++) {
        struct translation_unit *unit = &inputs->units[i];
        unit->object = temporary(build->folder, unit->object);
        if (find_object(build, unit))
            continue;
        compilers[count] = compile_unit(build, unit);
        compiled[count++] = unit;
    }
    const struct process *failed = processes_run(compilers, count, inputs->options->jobs);
    if (failed)
        compiler_refused(failed, compiled[failed - compilers]);
    for (size_t i = 0; i < count; i++) {
        timing(arena_printf("  compile %s", compilers[i].what), compilers[i].ms);
        keep_object(build, compiled[i]);
    }
}

static void link_units(const struct build *build, const char *program)
{
    const struct build_inputs *inputs = &build->inputs;
    struct process linker = {.what = "link"};
    struct words *words = &linker.words;
    words_add_all(words, &inputs->compiler);
    words_add(words, "-pie");
    words_add(words, arena_printf("-Wl,--build-id=0x%s", build->key));
    words_add(words, "-o");
    words_add(words, program);
    for (size_t i = 0; i < inputs->unit_count; i++)
        words_add(words, inputs->units[i].object);
    words_add(words, home_runtime());
    words_add_all(words, &inputs->tools.libraries);
    if (processes_run(&linker, 1, 1)) {
        if ((inputs->options->kernel_count || inputs->options->impl_count) && WIFEXITED(linker.status))
            usage_error("what -k or --impl names does not link with the simulator");
        die("%s cannot link the simulator", words->word[0]);
    }
    timing("  link", linker.ms);
}

static void build_library(struct build *build)
{
    const struct build_inputs *inputs = &build->inputs;
    struct library library = {
        .name = inputs->options->library, .hash = inputs->options->hash, .folder = inputs->options->path, .scratch = folder_of(build), .key = build->key,
        .compiler = &inputs->compiler, .libraries = &inputs->tools.archives,
        .has_users = inputs->options->kernel_count || inputs->options->impl_count,
    };
    add_generated_units(build);
    compile(build);
    for (size_t i = 0; i < inputs->unit_count; i++)
        words_add(&library.objects, inputs->units[i].object);
    library_make(&library);
    keep_answers(inputs);
    timing_pass("compile and link");
    cache_trim();
}

static void build_from_sources(struct build *build, const char *program)
{
    add_generated_units(build);
    compile(build);
    link_units(build, program);
    timing_pass("compile and link");
    keep_linked(build, program);
    cache_trim();
}

void build_simulator(struct build *build)
{
    const char *path = build->inputs.options->path;
    if (!build->structure) {
        set_structure(build, fingerprint_of_structure(&build->inputs, true));
        timing_pass("hash the inputs");
    }
    if (build->is_there) {
        keep_answers(&build->inputs);
        return timing_pass("leave the simulator as it is: it was made of the same inputs");
    }
    if (build->inputs.options->library)
        return build_library(build);
    const char *program = temporary(folder_of(build), "simulator");
    if (!build->linked.bytes) {
        cache_enter(build->structure);                  /* another kbgen may be building the same: look again after it */
        find_linked(build);
    }
    if (build->linked.bytes)
        write_program(program, build->linked.bytes, build->linked.length);
    else
        build_from_sources(build, program);
    keep_answers(&build->inputs);
    cache_leave();
    move_into_place(program, path);
    if (build->linked.bytes)
        timing_pass("put other numbers into a linked simulator: no compiler, no linker");
}

void build_list_files(const struct build *build, struct words *files)
{
    const char *templates = arena_printf("%s/templates", home_sources());
    words_add(files, home_program());
    words_of_folder(files, templates, ".in", arena_printf("%s/", templates));
    if (build->inputs.options->library) {
        words_add(files, home_image());
        words_add(files, home_front());
        words_of_folder(files, arena_printf("%s/lib", templates), ".in", arena_printf("%s/lib/", templates));
    } else {
        words_add(files, home_runtime());
    }
    for (size_t i = 0; i < build->inputs.unit_count; i++) {
        const struct translation_unit *unit = &build->inputs.units[i];
        if (unit->users)
            words_add(files, unit->name);
        for (size_t j = 0; j < unit->includes.count; j++)
            if (strcmp(unit->includes.word[j], unit->path))
                words_add(files, unit->includes.word[j]);
    }
}
