/* cc.c: compiles and links, without a shell, as seldom as can be.
 *
 * A simulator carries a hash over its structure and its numbers: equal inputs are not built again. One that is linked
 * is kept under the hash of its structure; others of that structure are the same bytes with other numbers in them. */
#include "cc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rt/common/arena.h"
#include "cache.h"
#include "hash.h"
#include "home.h"
#include "impl.h"
#include "job.h"
#include "making.h"
#include "out.h"
#include "program.h"
#include "timing.h"
#include "words.h"

/* What the Makefile builds kbgen with. */
#ifndef KB_CC
#define KB_CC "cc"
#endif
#ifndef KB_OPT
#define KB_OPT "-O2"
#endif
#ifndef KB_SAN
#define KB_SAN ""
#endif

const char cc_default[] = KB_CC;

static const char *absolute(const char *path)
{
    static char *folder;
    if (*path == '/')
        return path;
    if (!folder && !(folder = getcwd(NULL, 0)))
        die("find the current folder:");
    return arena_printf("%s/%s", folder, path + (strncmp(path, "./", 2) ? 0 : 2));
}

/* The compiler's name may be a path, from the current folder; the words after it are its arguments. */
static struct words compiler_of(const struct build *build)
{
    struct words words = {0};
    words_split(&words, build->cc);
    if (!words.count)
        usage_error("--cc names no compiler");
    if (strchr(words.word[0], '/'))
        words.word[0] = absolute(words.word[0]);
    return words;
}

static void add_flags(struct words *words, const struct build *build)
{
    words_add(words, "-std=gnu11");
    words_add(words, "-fPIE");
    words_add(words, "-Wall");
    words_split(words, KB_OPT);
    if (build->level)
        words_add(words, arena_printf("-O%s", build->level));
    words_split(words, KB_SAN);
}

/* A job for the compiler without a file. File names in messages are absolute, in the result they have no folder. */
static struct job compiler_job(const struct words *compiler, const char *what, const char *path)
{
    const char *runtime = arena_printf("%s/rt", home_sources()), *library = arena_printf("%s/kernels", home_sources());
    int folder = (int)(strrchr(path, '/') + 1 - path);
    struct job job = {.what = what};
    words_add_all(&job.words, compiler);
    words_add(&job.words, arena_printf("-I%s", library));       /* first: rt has other files of these names */
    words_add(&job.words, arena_printf("-I%s", runtime));
    words_add(&job.words, "-fstack-clash-protection");  /* no frame of a kernel passes over the guard of its stack */
    words_add(&job.words, arena_printf("-ffile-prefix-map=%.*s=", folder, path));
    words_add(&job.words, arena_printf("-ffile-prefix-map=%s=rt", runtime));
    words_add(&job.words, arena_printf("-ffile-prefix-map=%s=kernels", library));
    words_add(&job.words, "-x");
    words_add(&job.words, "c");
    return job;
}

static struct job unit_job(const struct making *making, const struct unit *unit)
{
    struct job job = compiler_job(&making->compiler, unit->name, unit->path);
    words_add(&job.words, unit->path);
    return job;
}

struct job user_job(const struct making *making, const struct unit *unit)
{
    return unit->impl ? own_job(making->build, unit->impl, making->emission) : unit_job(making, unit);
}

static const char *own_header(const struct emission *emission)
{
    for (size_t i = 0;; i++)
        if (!strcmp(emission->files[i].name, "own.h"))
            return emission->files[i].code;
}

/* One thing that an own model has to define. */
static const char *alias_of(const char *name, const char *what)
{
    return arena_printf("extern __typeof(%s_%s) %s_%s_is_there __attribute__((alias(\"%s_%s\")));\n", name, what, name,
                        what, name, what);
}

/* What the compiler reads of an own model: #include knows no way to write a quote. */
static const char *own_source(const struct impl *impl, const char *path, const struct emission *emission)
{
    if (strpbrk(path, "\"\n\\"))
        usage_error("--impl %s: a path with quotes or backslashes cannot be included", impl->file);
    const char *state = impl_form(impl->part)->has_state ? alias_of(impl->name, "state") : "";
    return arena_printf("# 1 \"own.h\"\n%s\n# 1 \"kbgen\"\n#include \"%s\"\n%s%s", own_header(emission), path,
                        alias_of(impl->name, "service"), state);
}

struct job own_job(const struct build *build, const struct impl *impl, const struct emission *emission)
{
    struct words compiler = compiler_of(build);
    const char *path = absolute(impl->file);
    add_flags(&compiler, build);
    struct job job = compiler_job(&compiler, impl->file, path);
    words_add(&job.words, "-");
    job.input = own_source(impl, path, emission);
    return job;
}

void refuse(const struct job *job, const struct unit *unit)
{
    if (unit->users && WIFEXITED(job->status))
        usage_error("%s does not compile", unit->name);
    die("%s fails on %s", job->words.word[0], unit->path);
}

/* ---- how it is made */

static void add_own_units(struct making *making)
{
    for (size_t i = 0; i < making->build->impl_count; i++) {
        const struct impl *impl = &making->build->impls[i];
        making->units[making->unit_count++] = (struct unit){
            .name = impl->file, .path = absolute(impl->file), .object = arena_printf("own%zu.o", i), .users = true,
            .impl = impl,
        };
    }
}

static void add_kernel_units(struct making *making)
{
    for (size_t i = 0; i < making->build->kernel_count; i++) {
        const char *name = making->build->kernels[i];
        size_t length;
        if (!read_file(name, &length))
            usage_error("-k %s: %s", name, strerror(errno));
        making->units[making->unit_count++] = (struct unit){
            .name = name, .path = absolute(name), .object = arena_printf("user%zu.o", i), .users = true,
        };
    }
}

const char *making_folder(struct making *making)
{
    if (!making->folder)
        making->folder = absolute(temporary_folder(making->build->path));
    return making->folder;
}

/* Writes the generated files as they are compiled, and adds units of them. */
static void add_generated_units(struct making *making, const char *folder)
{
    const struct emission *emission = making->emission;
    for (size_t i = 0; i < emission->count; i++) {
        const struct emitted *file = &emission->files[i];
        const char *path = temporary(folder, file->name);
        size_t length = strlen(file->name);
        write_file(path, file->code, strlen(file->code));
        if (file->name[length - 1] == 'c')
            making->units[making->unit_count++] = (struct unit){
                .name = file->name, .path = path, .object = arena_printf("%.*s.o", (int)length - 2, file->name),
                .content = content_of(emission, file),
            };
    }
}

/* No tool may look into the numbers, fold them into code, or say anything about them elsewhere in the simulator. */
static void add_numbers_flags(struct words *words)
{
    words_add(words, "-g0");
    words_add(words, "-fno-lto");
    words_add(words, "-fno-data-sections");
}

static struct job compile_job(const struct making *making, const struct unit *unit)
{
    struct job job = unit_job(making, unit);
    if (unit->impl) {
        words_add(&job.words, "-include");
        words_add(&job.words, arena_printf("%s/own.h", making->folder));
        words_add(&job.words, arena_printf("-ffile-prefix-map=%s/=", making->folder));
    }
    if (unit_is_numbers(unit))
        add_numbers_flags(&job.words);
    words_add(&job.words, "-c");
    words_add(&job.words, "-o");
    words_add(&job.words, unit->object);
    return job;
}

static void compile(struct making *making)
{
    struct job *jobs = arena_alloc(making->unit_count, sizeof *jobs);
    struct unit **compiled = arena_alloc(making->unit_count, sizeof *compiled);
    size_t count = 0;
    for (size_t i = 0; i < making->unit_count; i++) {
        struct unit *unit = &making->units[i];
        unit->object = temporary(making->folder, unit->object);
        if (object_find(making, unit))
            continue;
        jobs[count] = compile_job(making, unit);
        compiled[count++] = unit;
    }
    const struct job *failed = run_jobs(jobs, count, making->build->jobs);
    if (failed)
        refuse(failed, compiled[failed - jobs]);
    for (size_t i = 0; i < count; i++) {
        timing(arena_printf("  compile %s", jobs[i].what), jobs[i].ms);
        object_keep(making, compiled[i]);
    }
}

static void link_units(const struct making *making, const char *key, const char *program)
{
    struct job job = {.what = "link"};
    words_add_all(&job.words, &making->compiler);
    words_add(&job.words, "-pie");
    words_add(&job.words, arena_printf("-Wl,--build-id=0x%s", key));
    words_add(&job.words, "-o");
    words_add(&job.words, program);
    for (size_t i = 0; i < making->unit_count; i++)
        words_add(&job.words, making->units[i].object);
    struct words objects = home_objects();
    words_add_all(&job.words, &objects);
    words_add_all(&job.words, &making->tools.libraries);
    if (run_jobs(&job, 1, 1)) {
        if ((making->build->kernel_count || making->build->impl_count) && WIFEXITED(job.status))
            usage_error("what -k or --impl names does not link with the simulator");
        die("%s cannot link the simulator", job.words.word[0]);
    }
    timing("  link", job.ms);
}

struct making *making_begin(const struct build *build, const struct emission *emission)
{
    struct making *making = arena_alloc(1, sizeof *making);
    *making = (struct making){.build = build, .emission = emission, .asked = compiler_of(build)};
    words_add_all(&making->compiler, &making->asked);
    add_flags(&making->compiler, build);
    making->units = arena_alloc(build->kernel_count + build->impl_count + emission->count, sizeof *making->units);
    add_kernel_units(making);
    add_own_units(making);
    return making;
}

static void settle(struct making *making, const char *structure)
{
    struct hash *hash = hash_begin();
    hash_text(hash, structure);
    for (size_t i = 0; i < NUMBERS; i++)
        hash_add(hash, making->emission->numbers.list[i].bytes, making->emission->numbers.list[i].length);
    making->structure = arena_printf("simulator-%s", structure);
    making->key = hash_end(hash);
    making->is_there = program_is(making->build->path, making->key);
}

/* Looks for a linked simulator that can be what is wanted, and makes that of it. */
static bool find_linked(struct making *making)
{
    struct program *linked = &making->linked;
    linked->bytes = cache_find(making->structure, &linked->length);
    if (linked->bytes && !program_set(*linked, making->key, &making->emission->numbers))
        linked->bytes = NULL;
    return linked->bytes;
}

bool making_is_known(struct making *making)
{
    const char *structure = structure_of(making, false);
    if (structure)
        settle(making, structure);
    bool known = structure && (making->is_there || find_linked(making));
    timing_pass("look for one that is linked");
    return known;
}

/* Keeps a simulator for others of its structure, if it can become those: if it has places for its numbers, and they
 * are these numbers. */
static void keep_linked(const struct making *making, const char *path)
{
    size_t length, linked_length;
    char *bytes = read_file(path, &length);
    const char *linked = read_file(path, &linked_length);
    if (!bytes || !linked || !program_set((struct program){bytes, length}, making->key, &making->emission->numbers)
        || memcmp(bytes, linked, length))
        return;
    cache_keep(making->structure, bytes, length);
}

static void build_all(struct making *making, const char *program)
{
    const char *folder = making_folder(making);
    add_generated_units(making, folder);
    compile(making);
    link_units(making, making->key, program);
    timing_pass("compile and link");
    keep_linked(making, program);
    cache_trim();
}

void build(struct making *making)
{
    if (!making->structure) {
        settle(making, structure_of(making, true));
        timing_pass("hash the inputs");
    }
    if (making->is_there) {
        structure_keep(making);
        return timing_pass("leave the simulator as it is: it was made of the same");
    }
    const char *program = temporary(making_folder(making), "simulator");
    if (!making->linked.bytes) {
        cache_enter(making->structure);
        find_linked(making);
    }
    if (making->linked.bytes)
        write_program(program, making->linked.bytes, making->linked.length);
    else
        build_all(making, program);
    structure_keep(making);
    cache_leave();
    move_into_place(program, making->build->path);
    if (making->linked.bytes)
        timing_pass("put other numbers into a linked simulator: no compiler, no linker");
}
