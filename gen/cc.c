/* cc.c: compiles and links, without a shell.
 *
 * Every input of a simulator is hashed, and the simulator carries the hash: equal inputs are not built again. Inputs
 * count by what they hold; where they lie does not, nor does it show in the result. */
#include "cc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rt/text/base.h"
#include "hash.h"
#include "home.h"
#include "impl.h"
#include "job.h"
#include "key.h"
#include "out.h"
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

/* A file that is compiled. */
struct unit {
    const char *name;                                   /* for messages */
    const char *path;                                   /* absolute */
    const char *object;
    bool users;
    const struct impl *impl;                            /* the own model that it is, or NULL */
};

/* A build under way. */
struct making {
    const struct build *build;
    struct words compiler;                              /* the compiler and all flags but those that name files */
    struct words kernels, archives;                     /* what was compiled with kbgen */
    struct unit *units;
    size_t unit_count;
    const struct emission *emission;
};

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
    const char *runtime = arena_printf("%s/rt", home_sources());
    int folder = (int)(strrchr(path, '/') + 1 - path);
    struct job job = {.what = what};
    words_add_all(&job.words, compiler);
    words_add(&job.words, arena_printf("-I%s", runtime));
    words_add(&job.words, "-fstack-clash-protection");  /* no frame of a kernel passes over the guard of its stack */
    words_add(&job.words, arena_printf("-ffile-prefix-map=%.*s=", folder, path));
    words_add(&job.words, arena_printf("-ffile-prefix-map=%s=rt", runtime));
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

static const char *own_header(const struct emission *emission)
{
    for (size_t i = 0;; i++)
        if (!strcmp(emission->files[i].name, "own.h"))
            return emission->files[i].text;
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

/* Ends kbgen after a compiler's complaint, which stands on standard error: a user's file is the user's input. */
static _Noreturn void refuse(const struct job *job, const struct unit *unit)
{
    if (unit->users && WIFEXITED(job->status))
        usage_error("%s does not compile", unit->name);
    die("%s fails on %s", job->words.word[0], unit->path);
}

/* ---- what a simulator is made of */

static void hash_file(struct hash *hash, const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    if (!text)
        die("read %s:", path);
    hash_text(hash, base_name(path));
    hash_add(hash, text, length);
}

static void hash_files(struct hash *hash, const struct words *files)
{
    for (size_t i = 0; i < files->count; i++)
        hash_file(hash, files->word[i]);
}

/* What the compiler says about itself tells two compilers apart, wherever they are installed. */
static void hash_compiler(struct hash *hash, const struct making *making)
{
    struct job job = {.words = compiler_of(making->build), .what = "ask the compiler who it is"};
    words_add(&job.words, "--version");
    size_t length;
    const char *said = run_for_output(&job, &length);
    if (job.status != 0)
        die("%s is no C compiler: --version failed", job.words.word[0]);
    hash_add(hash, said, length);
    for (size_t i = 1; i < making->compiler.count; i++)
        hash_text(hash, making->compiler.word[i]);
}

/* A user's file counts with all that it includes. */
static void hash_user(struct hash *hash, const struct making *making, const struct unit *unit)
{
    struct job job = unit->impl ? own_job(making->build, unit->impl, making->emission) : unit_job(making, unit);
    words_add(&job.words, "-E");
    words_add(&job.words, "-P");
    size_t length;
    const char *text = run_for_output(&job, &length);
    if (job.status != 0)
        refuse(&job, unit);
    hash_file(hash, unit->path);
    hash_add(hash, text, length);
}

static const char *key_of(const struct making *making, const struct emission *emission)
{
    static const char *const folders[] = {"rt", "rt/kb", "rt/text"}, *const endings[] = {".h", ".def"};
    struct hash *hash = hash_begin();
    hash_compiler(hash, making);
    for (size_t i = 0; i < emission->count; i++) {
        hash_text(hash, emission->files[i].name);
        hash_add(hash, emission->files[i].text, emission->files[i].length);
    }
    struct words headers = {0};
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        for (size_t j = 0; j < COUNT_OF(endings); j++) {
            const char *folder = arena_printf("%s/%s", home_sources(), folders[i]);
            words_of_folder(&headers, folder, endings[j], arena_printf("%s/", folder));
        }
    hash_files(hash, &headers);
    hash_files(hash, &making->kernels);
    hash_files(hash, &making->archives);
    for (size_t i = 0; i < making->unit_count; i++)
        hash_user(hash, making, &making->units[i]);
    return hash_end(hash);
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

/* Writes the generated files, and adds those that are compiled. */
static void add_generated_units(struct making *making, const struct emission *emission, const char *folder)
{
    for (size_t i = 0; i < emission->count; i++) {
        const struct emitted *file = &emission->files[i];
        const char *path = temporary(folder, file->name);
        size_t length = strlen(file->name);
        write_file(path, file->text, file->length);
        if (file->name[length - 1] == 'c')
            making->units[making->unit_count++] = (struct unit){
                .name = file->name, .path = path, .object = arena_printf("%.*s.o", (int)length - 2, file->name),
            };
    }
}

static void compile(struct making *making, const char *folder)
{
    struct job *jobs = arena_alloc(making->unit_count, sizeof *jobs);
    for (size_t i = 0; i < making->unit_count; i++) {
        struct unit *unit = &making->units[i];
        unit->object = temporary(folder, unit->object);
        jobs[i] = unit_job(making, unit);
        if (unit->impl) {
            words_add(&jobs[i].words, "-include");
            words_add(&jobs[i].words, arena_printf("%s/own.h", folder));
            words_add(&jobs[i].words, arena_printf("-ffile-prefix-map=%s/=", folder));
        }
        words_add(&jobs[i].words, "-c");
        words_add(&jobs[i].words, "-o");
        words_add(&jobs[i].words, unit->object);
    }
    const struct job *failed = run_jobs(jobs, making->unit_count, making->build->jobs);
    if (failed)
        refuse(failed, &making->units[failed - jobs]);
    for (size_t i = 0; i < making->unit_count; i++)
        timing(arena_printf("  compile %s", jobs[i].what), jobs[i].ms);
}

/* The folders where the compiler's linker looks for libraries. */
static struct words library_folders(const struct making *making)
{
    struct job job = {.words = compiler_of(making->build), .what = "ask for the folders of libraries"};
    words_add(&job.words, "-print-search-dirs");
    size_t length;
    struct words folders = {0};
    const char *said = run_for_output(&job, &length), *from = strstr(said, "libraries: =");
    for (from = from ? from + strlen("libraries: =") : ""; *from && *from != '\n'; from += *from == ':') {
        size_t end = strcspn(from, ":\n");
        words_add(&folders, arena_text(from, end));
        from += end;
    }
    return folders;
}

/* A library as an archive where there is one, so that the simulator runs where it is not installed. */
static void add_library(struct words *words, const struct words *folders, const char *name)
{
    for (size_t i = 0; i < folders->count; i++) {
        if (access(arena_printf("%s/lib%s.a", folders->word[i], name), R_OK) == 0) {
            words_add(words, arena_printf("-l:lib%s.a", name));
            return;
        }
    }
    words_add(words, arena_printf("-l%s", name));
}

static void add_libraries(struct words *words, const struct making *making)
{
    static const char *const archives[] = {"yaml", "gmp", "boost_context"};
    struct words folders = library_folders(making);
    for (size_t i = 0; i < COUNT_OF(archives); i++)
        add_library(words, &folders, archives[i]);
    words_split(words, "-lm -ldl -lpthread");
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
    words_add_all(&job.words, &making->kernels);
    words_add_all(&job.words, &making->archives);
    add_libraries(&job.words, making);
    if (run_jobs(&job, 1, 1)) {
        if ((making->build->kernel_count || making->build->impl_count) && WIFEXITED(job.status))
            usage_error("what -k or --impl names does not link with the simulator");
        die("%s cannot link the simulator", job.words.word[0]);
    }
    timing("  link", job.ms);
}

void build(const struct build *build, const struct emission *emission)
{
    struct making making = {.build = build, .compiler = compiler_of(build), .emission = emission};
    const char *archives = home_archives();
    add_flags(&making.compiler, build);
    words_of_folder(&making.kernels, arena_printf("%s/kernels", archives), ".o", arena_printf("%s/kernels/", archives));
    words_add(&making.archives, arena_printf("%s/libkb.a", archives));
    words_add(&making.archives, arena_printf("%s/libtext.a", archives));
    making.units = arena_alloc(build->kernel_count + build->impl_count + emission->count, sizeof *making.units);
    add_kernel_units(&making);
    add_own_units(&making);

    const char *key = key_of(&making, emission);
    timing_pass("hash the inputs");
    if (key_is(build->path, key))
        return;
    const char *folder = absolute(temporary_folder(build->path)), *program = temporary(folder, "simulator");
    add_generated_units(&making, emission, folder);
    compile(&making, folder);
    link_units(&making, key, program);
    move_into_place(program, build->path);
}
