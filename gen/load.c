/* load.c: the topology's file, its includes and the --set options, merged into one tree.
 *
 * Three layers, each applied over the one before: the included file, the file's own keys, the --set options. Mappings
 * are merged key by key; all else is replaced. Every node keeps its place in the file that it comes from. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../rt/common/arena.h"
#include "../rt/common/path_error.h"
#include "../rt/common/read.h"
#include "../rt/common/yaml.h"
#include "load.h"

enum { SET_DEPTH_MOST = 64 };

/* A file being read, and the file that includes it. */
struct reading {
    const struct reading *by;
    const char *path;
    struct stat file;
};

static struct node *overlay(const struct node *base, struct node *top)
{
    if (base->type != NODE_MAPPING || top->type != NODE_MAPPING)
        return top;
    struct node *both = node_new(top->where, NODE_MAPPING);
    for (size_t i = 0; i < base->count; i++) {
        const struct node_entry *entry = &base->entries[i];
        struct node *over = node_get(top, entry->key->text);
        node_add(both, entry->key, over ? overlay(entry->value, over) : entry->value);
    }
    for (size_t i = 0; i < top->count; i++)
        if (!node_get(base, top->entries[i].key->text))
            node_add(both, top->entries[i].key, top->entries[i].value);
    return both;
}

/* Returns whether a path stays below its folder: it is relative and has no `..`. */
static bool leads_below(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += strspn(part, "/");
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
            return false;
    }
    return true;
}

static const char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_printf("%.*s/%s", (int)(slash - path), path, name) : name;
}

static struct node *load_file(const struct source *source, const struct reading *reading, const struct node *over,
                              bool *whole);

/* Reads the file that `include` names. Returns NULL after an error. */
static struct node *load_included(const struct node *include, const struct reading *by, bool *whole)
{
    struct reading reading = { .by = by };
    if (include->type != NODE_SCALAR || node_is_null(include) || !leads_below(include->text)) {
        error_expected(include, "include", "a relative path below the file's own folder", NULL);
        return NULL;
    }
    reading.path = beside(by->path, include->text);
    const struct source *source = stat(reading.path, &reading.file) ? NULL : source_read(reading.path);
    if (!source) {
        error_at(include->where, "cannot read '%s': %s", reading.path, path_error(reading.path));
        return NULL;
    }
    for (const struct reading *above = by; above; above = above->by)
        if (above->file.st_dev == reading.file.st_dev && above->file.st_ino == reading.file.st_ino) {
            error_at(include->where, "'%s' includes itself", reading.path);
            return NULL;
        }
    return load_file(source, &reading, NULL, whole);
}

/* Reads a file and merges `over` (or NULL) over it, and both over what the file includes. Never returns NULL. */
static struct node *load_file(const struct source *source, const struct reading *reading, const struct node *over,
                              bool *whole)
{
    struct node *own = yaml_document(source);
    if (!own || !node_is(own, NODE_MAPPING, "a topology")) {
        *whole = false;
        own = node_new((struct where){ source, 1, 1 }, NODE_MAPPING);
    }
    if (over)
        own = overlay(own, (struct node *)over);
    const struct node *include = node_get(own, "include");
    if (!include)
        return own;
    struct node *base = load_included(include, reading, whole);
    if (!base)
        *whole = false;
    return base ? overlay(base, own) : own;
}

/* Wraps `value` in mappings for a key path such as a.b.c. Returns NULL after an error. */
static struct node *nest(const struct source *source, size_t length, struct node *value)
{
    struct node *node = value;
    unsigned depth = 0;
    for (size_t end = length, begin; node; end = begin - 1) {
        for (begin = end; begin > 0 && source->text[begin - 1] != '.';)
            begin--;
        struct where where = { source, 1, (unsigned)begin + 1 };
        struct node *key = node_new(where, NODE_SCALAR), *around = node_new(where, NODE_MAPPING);
        key->text = arena_text(source->text + begin, end - begin);
        if (begin == end || ++depth > SET_DEPTH_MOST) {
            error_at(where, begin == end ? "a key is missing here" : "too many keys");
            return NULL;
        }
        node_add(around, key, node);
        node = around;
        if (begin == 0)
            break;
    }
    return node;
}

/* Parses a --set option into nodes. Returns NULL after an error. */
static struct node *read_set(const char *option)
{
    struct source *source = arena_alloc(1, sizeof(*source));
    *source = (struct source){ "--set", option, strlen(option), 0 };
    const char *equals = strchr(option, '=');
    if (!equals) {
        error_at((struct where){ source, 1, 1 }, "--set takes KEY=VALUE, as in --set system.sips=2");
        return NULL;
    }
    size_t length = (size_t)(equals - option);
    return nest(source, length, yaml_value(source, length + 1));
}

struct node *load_topology(const char *path, char *const *sets, size_t set_count, bool *whole)
{
    const struct source *source = source_given(path);
    struct reading reading = { .path = path };
    if (strcmp(path, "-"))
        stat(path, &reading.file);
    else
        fstat(STDIN_FILENO, &reading.file);
    struct node *over = NULL;
    *whole = true;
    for (size_t i = 0; i < set_count; i++) {
        struct node *set = read_set(sets[i]);
        if (!set)
            *whole = false;
        else
            over = over ? overlay(over, set) : set;
    }
    return load_file(source, &reading, over, whole);
}
