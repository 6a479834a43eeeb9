/* library.c: a machine as a library for other programs.
 *
 * The image is a shared object that exports one symbol; a library has it as bytes, for each instance to be loaded from
 * (rt/embed). All objects are those of simulators: code for a program that can be loaded anywhere is also good for a
 * shared object that binds its symbols itself. */
#include "library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/temporary.h"
#include "../../rt/common/yaml.h"
#include "../../rt/kb/sim.h"
#include "../emit.h"
#include "home.h"
#include "output.h"
#include "process.h"
#include "timing.h"

const char *library_file(const char *folder, const char *name)
{
    return arena_printf("%s/lib%s.so.%d", folder, name, KB_ABI_VERSION);
}

static const char *scratch(const struct library *library, const char *name)
{
    return temporary(library->scratch, name);
}

static const char *write_text(const struct library *library, const char *name, const char *text)
{
    const char *path = scratch(library, name);
    write_file(path, text, strlen(text));
    return path;
}

/* ---- compiler, linker, archiver */

static void run(struct process *process, const struct library *library)
{
    if (!processes_run(process, 1, 1))
        return timing(arena_printf("  %s", process->what), process->ms);
    if (library->has_users && WIFEXITED(process->status))
        usage_error("what -k or --impl names does not link with the library");
    die("%s fails: %s", process->words.word[0], process->what);
}

static struct process linker(const struct library *library, const char *what, const char *map, const char *to)
{
    struct process process = {.what = what};
    struct words *words = &process.words;
    words_add_all(words, library->compiler);
    words_add(words, "-shared");
    words_add(words, "-Wl,-Bsymbolic");
    words_add(words, arena_printf("-Wl,--version-script=%s", map));
    words_add(words, arena_printf("-Wl,--build-id=0x%s", library->key));
    words_add(words, "-o");
    words_add(words, to);
    return process;
}

static const char *link_image(const struct library *library)
{
    const char *map = write_text(library, "image.map", "{ global: kb_image; local: *; };\n");
    const char *image = scratch(library, "image.so");
    struct process process = linker(library, "link the image", map, image);
    words_add(&process.words, "-s");
    words_add_all(&process.words, &library->objects);
    words_add(&process.words, home_image());
    words_add_all(&process.words, library->libraries);
    run(&process, library);
    return image;
}

/* Compiles the object with the bytes of the image and what tells the front of them. */
static const char *compile_machine(const struct library *library, const char *image, const char *hash)
{
    struct stat status;
    if (stat(image, &status) != 0)
        die("find %s:", image);
    const char *text = arena_printf(
        "#include \"embed/image.h\"\n"
        "__asm__(\".section .rodata\\n.balign 4096\\nkb_image_bytes: .incbin \\\"image.so\\\"\\n.previous\");\n"
        "extern const char kb_image_bytes[] __attribute__((visibility(\"hidden\")));\n"
        "const struct kb_machine kb_machine_%s = {KB_ABI_VERSION, 0, \"%s\", \"%s\", kb_image_bytes, %lld};\n"
        "extern const struct kb_machine kb_machine_of_library __attribute__((weak, alias(\"kb_machine_%s\")));\n",
        library->name, library->name, hash, (long long)status.st_size, library->name);
    const char *source = write_text(library, "kb_machine.c", text), *object = scratch(library, "kb_machine.o");
    struct process process = {.what = "compile the machine"};
    struct words *words = &process.words;
    words_add_all(words, library->compiler);
    words_split(words, "-g0 -fPIC -c");
    words_add(words, arena_printf("-I%s/rt", home_sources()));
    words_add(words, arena_printf("-Wa,-I%s", library->scratch));
    words_add(words, "-o");
    words_add(words, object);
    words_add(words, source);
    run(&process, library);
    return object;
}

static const char *link_shared(const struct library *library, const char *machine)
{
    const char *map = write_text(library, "library.map", arena_printf(
        "KB_%d {\n  global: kb_sim_*; kb_abi_version; kb_last_error; kb_status_name; kb_machine_hash; kb_library_name;\n"
        "          kb_machine_%s;\n  local: *;\n};\n", KB_ABI_VERSION, library->name));
    const char *file = scratch(library, "library.so");
    struct process process = linker(library, "link the library", map, file);
    words_add(&process.words, arena_printf("-Wl,-soname,lib%s.so.%d", library->name, KB_ABI_VERSION));
    words_add(&process.words, machine);
    words_add(&process.words, home_front());
    words_split(&process.words, "-ldl -lpthread");
    run(&process, library);
    return file;
}

static const char *archive(const struct library *library, const char *machine)
{
    const char *file = scratch(library, "library.a");
    struct process process = {.what = "archive the library", .needs = "install binutils"};
    words_split(&process.words, "ar rcsD");
    words_add(&process.words, file);
    words_add(&process.words, machine);
    words_add(&process.words, home_front());
    run(&process, library);
    return file;
}

/* ---- what the library says of its machine */

static const char *describe(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        die("load the library: %s", dlerror());
    enum kb_status (*create)(const struct kb_sim_config *, kb_sim **) = dlsym(handle, "kb_sim_create");
    enum kb_status (*destroy)(kb_sim *) = dlsym(handle, "kb_sim_destroy");
    enum kb_status (*ask)(kb_sim *, char *, uint64_t, uint64_t *) = dlsym(handle, "kb_sim_describe");
    const char *(*last_error)(const kb_sim *) = dlsym(handle, "kb_last_error");
    const struct kb_sim_config config = {.struct_size = sizeof config, .data = KB_SIM_DATA_OFF};
    kb_sim *sim = NULL;
    uint64_t bytes;
    if (create(&config, &sim) != KB_OK || ask(sim, NULL, 0, &bytes) != KB_OK)
        die("ask the library for its machine: %s", last_error(sim));
    char *text = arena_alloc(bytes, 1);
    if (ask(sim, text, bytes, &bytes) != KB_OK)
        die("ask the library for its machine: %s", last_error(sim));
    destroy(sim);
    dlclose(handle);
    return text;
}

/* A name as a constant has it: "sip0.cube3.hbm_ctrl.pe5" is "SIP0_CUBE3_HBM_CTRL_PE5". */
static const char *constant(const char *name)
{
    char *upper = arena_printf("%s", name);
    for (char *at = upper; *at; at++)
        *at = isalnum((unsigned char)*at) ? (char)toupper((unsigned char)*at) : '_';
    return upper;
}

/* Texts that grow. */
struct written {
    char *at;
    size_t length, size;
};

__attribute__((format(printf, 2, 3))) static void put(struct written *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t length = (size_t)vsnprintf(NULL, 0, format, args);
    if (text->size < text->length + length + 1) {
        text->size = 2 * (text->length + length + 1);
        char *larger = arena_alloc(text->size, 1);
        if (text->length)
            memcpy(larger, text->at, text->length);
        text->at = larger;
    }
    vsnprintf(text->at + text->length, text->size - text->length, format, again);
    text->length += length;
    va_end(again);
    va_end(args);
}

/* The constants of NAME.h. */
static const char *constants(const struct node *about, const char *name)
{
    struct written text = {0};
    static const char *const counts[] = {"sips", "cubes_of_a_sip", "pes_of_a_cube"};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        put(&text, "#define %s_%s %s\n", name, constant(counts[i]), node_get(about, counts[i])->text);
    const struct node *pes = node_get(about, "pes"), *memories = node_get(about, "memories");
    put(&text, "#define %s_PES %zu\n\n/* PEs by their numbers. */\nenum {\n", name, pes->count);
    for (size_t i = 0; i < pes->count; i++)
        put(&text, "    %s_%s = %zu,\n", name, constant(pes->items[i]->text), i);
    put(&text, "};\n\n/* The address of each memory, and its bytes. */\n");
    for (size_t i = 0; i < memories->count; i++) {
        const struct node *memory = memories->items[i];
        const char *of = constant(node_get(memory, "name")->text);
        put(&text, "#define %s_%s UINT64_C(%s)\n", name, of, node_get(memory, "address")->text);
        put(&text, "#define %s_%s_BYTES UINT64_C(%s)\n", name, of, node_get(memory, "bytes")->text);
    }
    put(&text, "\n/* Kernels, for kb_sim_launch, and the bytes of their arguments; benches, for kb_sim_run_bench. */\n");
    const struct node *kernels = node_get(about, "kernels"), *benches = node_get(about, "benches");
    for (size_t i = 0; i < kernels->count; i++) {
        const char *of = node_get(kernels->items[i], "name")->text;
        put(&text, "#define %s_KERNEL_%s \"%s\"\n", name, constant(of), of);
        put(&text, "#define %s_KERNEL_%s_ARG_BYTES %s\n", name, constant(of), node_get(kernels->items[i], "arg_bytes")->text);
    }
    for (size_t i = 0; i < benches->count; i++) {
        const char *of = node_get(benches->items[i], "name")->text;
        put(&text, "#define %s_BENCH_%s \"%s\"\n", name, constant(of), of);
    }
    return text.at;
}

/* ---- the texts beside the library */

struct hole {
    const char *name, *value;
};

/* A template of templates/lib with its holes, $name$, filled. tmpl_expand is of no use here: these are not only C, and what
 * SystemVerilog ($fatal) and pkg-config (${pcfiledir}) begin with a '$' are errors there. */
static const char *filled(const char *path, const struct hole *holes, size_t count)
{
    size_t length;
    const char *at = read_file(path, &length);
    struct written text = {0};
    if (!at)
        die("read %s:", path);
    put(&text, "%s", "");
    while (*at) {
        size_t i = 0;
        while (i < count && strncmp(at, holes[i].name, strlen(holes[i].name)))
            i++;
        if (i < count) {
            put(&text, "%s", holes[i].value);
            at += strlen(holes[i].name);
        } else {
            size_t plain = 1 + strcspn(at + 1, "$");
            put(&text, "%.*s", (int)plain, at);
            at += plain;
        }
    }
    return text.at;
}

/* Files on their way into the folder of the library. */
struct moves {
    struct { const char *from, *to; } *list;
    size_t count;
};

static void move(struct moves *moves, const char *from, const char *to)
{
    moves->list = arena_grow(moves->list, moves->count, sizeof *moves->list);
    moves->list[moves->count].from = from;
    moves->list[moves->count++].to = to;
}

/* Fills the templates: NAME.h.in gives NAME.h, and so on, NAME being that of the machine. */
static void add_texts(struct moves *moves, const struct library *library, const char *about)
{
    struct source *source = arena_alloc(1, sizeof *source);
    *source = (struct source){.path = "the description of the machine", .text = about, .length = strlen(about)};
    const struct node *node = yaml_document(source);
    errors_end();
    const char *upper = constant(library->name);
    const struct hole holes[] = {
        {"$name$", library->name}, {"$NAME$", upper}, {"$version$", KBGEN_VERSION},
        {"$abi$", arena_printf("%d", KB_ABI_VERSION)}, {"$hash$", node_get(node, "hash")->text},
        {"$constants$", constants(node, upper)},
    };
    const char *templates = arena_printf("%s/templates/lib", home_sources());
    struct words files = {0};
    words_of_folder(&files, templates, ".in", "");
    for (size_t i = 0; i < files.count; i++) {
        const char *file = files.word[i], *rest = file + strlen("NAME");
        const char *made = arena_printf("%s%.*s", library->name, (int)(strlen(rest) - strlen(".in")), rest);
        const char *text = filled(arena_printf("%s/%s", templates, file), holes, COUNT_OF(holes));
        move(moves, write_text(library, made, text), arena_printf("%s/%s", library->folder, made));
    }
    move(moves, write_text(library, "about.json", about), arena_printf("%s/%s.json", library->folder, library->name));
}

static void add_header(struct moves *moves, const struct library *library)
{
    size_t length;
    const char *path = arena_printf("%s/rt/kb/sim.h", home_sources()), *text = read_file(path, &length);
    if (!text)
        die("read %s:", path);
    move(moves, write_text(library, "kb-sim.h", text), arena_printf("%s/kb/sim.h", library->folder));
}

static void make_folder(const char *path)
{
    if (!make_parents(path) || (mkdir(path, 0777) != 0 && errno != EEXIST))
        die("make the folder %s:", path);
}

/* libNAME.so is a link to the file of the version. */
static void add_link(struct moves *moves, const struct library *library)
{
    const char *from = scratch(library, "link.so");
    if (symlink(base_name(library_file("", library->name)), from) != 0)
        die("make the link %s:", from);
    move(moves, from, arena_printf("%s/lib%s.so", library->folder, library->name));
}

void library_make(struct library *library)
{
    struct moves moves = {0};
    const char *image = link_image(library);
    const char *machine = compile_machine(library, image, library->hash);
    const char *shared = link_shared(library, machine);
    add_texts(&moves, library, describe(shared));
    add_header(&moves, library);
    move(&moves, archive(library, machine), arena_printf("%s/lib%s.a", library->folder, library->name));
    add_link(&moves, library);
    move(&moves, shared, library_file(library->folder, library->name));
    make_folder(library->folder);
    make_folder(arena_printf("%s/kb", library->folder));
    for (size_t i = 0; i < moves.count; i++)
        move_into_place(moves.list[i].from, moves.list[i].to);
}
