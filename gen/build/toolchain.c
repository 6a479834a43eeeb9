/* toolchain.c: identifies the compiler, asking it once.
 *
 * Its answers are cached with the state of the files that it consists of and of the libraries that it links; while
 * these files are unchanged it is not asked again. A wrapper is asked for the compiler behind it, which is identified
 * too. */
#include "toolchain.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/hash.h"
#include "cache.h"
#include "process.h"

/* The state of a file: a change of its content shows in one of these numbers. */
static const char *state_of(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return "none";
    return arena_printf("%llu-%llu-%llu-%lld.%09ld", (unsigned long long)file.st_dev, (unsigned long long)file.st_ino,
                        (unsigned long long)file.st_size, (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

/* The path of a program, looked up in $PATH. */
static const char *program_path(const char *name)
{
    const char *from = strchr(name, '/') ? NULL : getenv("PATH");
    for (; from && *from; from += *from == ':') {
        size_t length = strcspn(from, ":");
        const char *path = arena_printf("%.*s/%s", (int)length, length ? from : ".", name);
        if (access(path, X_OK) == 0)
            return path;
        from += length;
    }
    return name;
}

/* The cache's name for a compiler's answers: its arguments and the environment that can change them. */
static const char *memo_name(const struct words *compiler)
{
    static const char *const variables[] = {"PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH",
                                            "CPATH", "C_INCLUDE_PATH"};
    struct hash *hash = hash_begin();
    for (size_t i = 0; i < compiler->count; i++)
        hash_text(hash, compiler->word[i]);
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        hash_text(hash, getenv(variables[i]) ? getenv(variables[i]) : "");
    return arena_printf("compiler-%s", hash_end(hash));
}

static void add_line(struct toolchain *tools, const char *kind, const char *more, const char *text)
{
    tools->memo = arena_printf("%s%s %s%s%s\n", tools->memo, kind, more, *more ? " " : "", text);
}

static void add_file(struct toolchain *tools, const char *path)
{
    add_line(tools, "file", state_of(path), path);
}

/* The text after the first blank, or "". */
static const char *rest_of(const char *line)
{
    const char *blank = strchr(line, ' ');
    return blank ? blank + 1 : "";
}

/* Reads one line of cached answers. Returns false if it no longer holds. */
static bool recall_line(struct toolchain *tools, const char *line)
{
    const char *rest = rest_of(line);
    if (!strncmp(line, "identity ", strlen("identity ")))
        tools->identity = rest;
    else if (!strncmp(line, "library ", strlen("library ")))
        words_add(&tools->libraries, rest);
    else if (!strncmp(line, "archive ", strlen("archive ")))
        words_add(&tools->archives, rest);
    else if (!strncmp(line, "file ", strlen("file "))) {
        const char *state = state_of(rest_of(rest));
        return !strncmp(rest, state, strlen(state)) && rest[strlen(state)] == ' ';
    }
    return true;
}

static bool recall(struct toolchain *tools)
{
    size_t length;
    const char *memo = cache_find(tools->name, &length);
    for (const char *line = memo; line && *line;) {
        size_t end = strcspn(line, "\n");
        if (!recall_line(tools, arena_text(line, end)))
            return false;
        line += end + (line[end] == '\n');
    }
    return tools->identity;
}

/* ---- questions */

static const char *ask_for(const struct words *compiler, const char *question, const char *what, int *status)
{
    struct process job = {.what = what};
    words_add_all(&job.words, compiler);
    words_add(&job.words, question);
    size_t length;
    const char *said = process_output(&job, &length);
    *status = job.status;
    return said;
}

/* The folders in which the compiler's linker looks for libraries. */
static struct words library_folders(const struct words *compiler)
{
    int status;
    struct words folders = {0};
    const char *said = ask_for(compiler, "-print-search-dirs", "ask for the folders of libraries", &status);
    const char *from = strstr(said, "libraries: =");
    for (from = from ? from + strlen("libraries: =") : ""; *from && *from != '\n'; from += *from == ':') {
        size_t end = strcspn(from, ":\n");
        words_add(&folders, arena_text(from, end));
        from += end;
    }
    return folders;
}

/* The argument that links a library as an archive if there is one, so that what is linked also runs where the library is
 * not installed. */
static const char *archive_of(struct toolchain *tools, struct hash *hash, const struct words *folders, const char *name)
{
    for (size_t i = 0; i < folders->count; i++) {
        const char *path = arena_printf("%s/lib%s.a", folders->word[i], name);
        size_t length;
        const char *archive = read_file(path, &length);
        if (!archive)
            continue;
        add_file(tools, path);
        hash_add(hash, archive, length);
        return arena_printf("-l:lib%s.a", name);
    }
    return arena_printf("-l%s", name);
}

/* The path of a program that the compiler would run, or its bare name. */
static const char *part_of(const struct words *compiler, const char *name)
{
    int status;
    const char *said = ask_for(compiler, arena_printf("-print-prog-name=%s", name), "ask for the compiler's programs",
                               &status);
    return status == 0 ? program_path(arena_text(said, strcspn(said, "\n"))) : NULL;
}

static void use_option(struct toolchain *tools, struct hash *hash, const char *option)
{
    hash_text(hash, option);
    words_add(&tools->libraries, option);
}

/* Options that make a simulator smaller, if the linker has them. One packs the addresses that the loader relocates (some
 * 4,000); C libraries before 2.36 cannot read that. The other leaves out the padding between code and constants. */
static void find_options(struct toolchain *tools, struct hash *hash, const struct words *compiler)
{
    int status;
    unsigned major = 0, minor = 0;
    const char *said = ask_for(compiler, "-Wl,--help", "ask for the linker's options", &status);
    sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor);
    if (strstr(said, "-z pack-relative-relocs") && (major > 2 || (major == 2 && minor >= 36)))
        use_option(tools, hash, "-Wl,-z,pack-relative-relocs");
    if (strstr(said, "-z noseparate-code"))
        use_option(tools, hash, "-Wl,-z,noseparate-code");
}

/* The programs of every Debian system need GMP and zlib: a simulator loads these two. */
static void find_libraries(struct toolchain *tools, struct hash *hash, const struct words *compiler)
{
    static const struct {
        const char *name, *simulators;
    } libraries[] = {{"yaml", NULL}, {"gmp", "-lgmp"}, {"boost_context", NULL}, {"z", "-lz"}};
    struct words folders = library_folders(compiler);
    find_options(tools, hash, compiler);
    for (size_t i = 0; i < COUNT_OF(libraries); i++) {
        const char *archive = archive_of(tools, hash, &folders, libraries[i].name);
        words_add(&tools->archives, archive);
        words_add(&tools->libraries, libraries[i].simulators ? libraries[i].simulators : archive);
    }
    words_split(&tools->archives, "-lm -ldl -lpthread");
    words_split(&tools->libraries, "-lm -ldl -lpthread");
    for (size_t i = 0; i < tools->libraries.count; i++)
        add_line(tools, "library", "", tools->libraries.word[i]);
    for (size_t i = 0; i < tools->archives.count; i++)
        add_line(tools, "archive", "", tools->archives.word[i]);
}

/* Adds the programs that the compiler consists of, as far as it names them. */
static void find_programs(struct toolchain *tools, const struct words *compiler)
{
    static const char *const parts[] = {"cc1", "clang", "as", "ld"};
    add_file(tools, program_path(compiler->word[0]));
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const char *path = part_of(compiler, parts[i]);
        if (path)
            add_file(tools, path);
    }
}

bool toolchain_find(struct toolchain *tools, const struct words *compiler, bool ask)
{
    *tools = (struct toolchain){.name = memo_name(compiler)};
    if (recall(tools))
        return true;
    if (!ask)
        return false;
    *tools = (struct toolchain){.name = tools->name, .memo = ""};
    int status;
    const char *said = ask_for(compiler, "--version", "ask the compiler who it is", &status);
    if (status != 0)
        die("%s is no C compiler: --version failed", compiler->word[0]);
    struct hash *hash = hash_begin();
    hash_text(hash, said);
    find_libraries(tools, hash, compiler);
    find_programs(tools, compiler);
    tools->identity = hash_end(hash);
    add_line(tools, "identity", "", tools->identity);
    return true;
}
