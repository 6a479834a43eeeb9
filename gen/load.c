/* load.c: the topology's file, its includes and the --set options, merged into one tree.
 *
 * Mappings are merged key by key; all else is replaced. Every node keeps its place in the file that it comes from. */
#include <errno.h>
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

const struct node *overlay(const struct node *base, const struct node *top)
{
    if (!base || !top)
        return base ? base : top;
    if (base->type != NODE_MAPPING || top->type != NODE_MAPPING)
        return top;
    struct node *both = node_new(top->where, NODE_MAPPING);
    for (size_t i = 0; i < base->count; i++) {
        const struct node_entry *entry = &base->entries[i];
        const struct node *over = node_get(top, entry->key->text);
        node_add(both, entry->key, (struct node *)overlay(entry->value, over));
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

static void list_file(struct topology_text *text, const struct source *source)
{
    text->files = arena_grow(text->files, text->file_count, sizeof(*text->files));
    text->files[text->file_count++] = source;
}

/* Returns NULL, with errno set, if the file cannot be read. */
static const struct source *read_source(struct topology_text *text, const char *path, struct stat *file)
{
    for (size_t i = 0; text->is_given && i < text->file_count; i++)
        if (!strcmp(text->files[i]->path, path))
            return text->files[i];
    errno = ENOENT;
    const struct source *source = text->is_given || stat(path, file) ? NULL : source_read(path);
    if (source)
        list_file(text, source);
    return source;
}

static struct layers load_file(const struct source *source, const struct reading *reading, const struct node *set,
                               struct topology_text *text);

/* Reads the file that `include` names. Returns NULL after an error. */
static const struct node *load_included(const struct node *include, const struct reading *by, struct layers *layers,
                                        struct topology_text *text)
{
    struct reading reading = { .by = by };
    if (include->type != NODE_SCALAR || node_is_null(include) || !leads_below(include->text)) {
        error_expected(include, "include", "a relative path below the file's own folder", NULL);
        return NULL;
    }
    reading.path = beside(by->path, include->text);
    const struct source *source = read_source(text, reading.path, &reading.file);
    if (!source) {
        error_at(include->where, "cannot read '%s': %s", reading.path, path_error(reading.path));
        return NULL;
    }
    for (const struct reading *above = by; above && !text->is_given; above = above->by)
        if (above->file.st_dev == reading.file.st_dev && above->file.st_ino == reading.file.st_ino) {
            error_at(include->where, "'%s' includes itself", reading.path);
            return NULL;
        }
    struct layers of_file = load_file(source, &reading, NULL, text);
    layers->whole &= of_file.whole;
    return merge_layers(&of_file);
}

/* Reads a file, over which `set` (or NULL) is merged, and what it then includes. */
static struct layers load_file(const struct source *source, const struct reading *reading, const struct node *set,
                               struct topology_text *text)
{
    struct layers layers = { .own = yaml_document(source), .set = set, .whole = true };
    if (!layers.own || !node_is(layers.own, NODE_MAPPING, "a topology")) {
        layers.whole = false;
        layers.own = node_new((struct where){ source, 1, 1 }, NODE_MAPPING);
    }
    const struct node *include = node_get(overlay(layers.own, set), "include");
    if (!include)
        return layers;
    layers.included = load_included(include, reading, &layers, text);
    layers.whole &= layers.included != NULL;
    return layers;
}

const struct node *merge_layers(const struct layers *layers)
{
    return overlay(layers->included, overlay(layers->own, layers->set));
}

const struct node *nest(struct where where, const char *path, size_t length, const struct node *value)
{
    const struct node *node = value;
    unsigned depth = 0;
    for (size_t end = length, begin; node; end = begin - 1) {
        for (begin = end; begin > 0 && path[begin - 1] != '.';)
            begin--;
        struct where at = { where.file, where.line, where.col + (unsigned)begin };
        struct node *key = node_new(at, NODE_SCALAR), *around = node_new(at, NODE_MAPPING);
        key->text = arena_text(path + begin, end - begin);
        if (begin == end || ++depth > SET_DEPTH_MOST) {
            error_at(at, begin == end ? "a key is missing here" : "too many keys");
            return NULL;
        }
        node_add(around, key, (struct node *)node);
        node = around;
        if (begin == 0)
            break;
    }
    return node;
}

const struct node *read_set(const char *option)
{
    struct source *source = arena_alloc(1, sizeof(*source));
    *source = (struct source){ "--set", option, strlen(option), 0 };
    const char *equals = strchr(option, '=');
    if (!equals) {
        error_at((struct where){ source, 1, 1 }, "--set takes KEY=VALUE, as in --set system.sips=2");
        return NULL;
    }
    size_t length = (size_t)(equals - option);
    return nest((struct where){ source, 1, 1 }, option, length, yaml_value(source, length + 1));
}

struct layers load_topology(const char *path, struct topology_text *text)
{
    const struct source *source = text->is_given ? text->files[0] : source_given(path);
    struct reading reading = { .path = path };
    if (strcmp(path, "-"))
        stat(path, &reading.file);
    else
        fstat(STDIN_FILENO, &reading.file);
    const struct node *over = NULL;
    bool whole = true;
    for (size_t i = 0; i < text->set_count; i++) {
        const struct node *set = read_set(text->sets[i]);
        whole &= set != NULL;
        over = overlay(over, set);
    }
    if (!text->is_given)
        list_file(text, source);
    struct layers layers = load_file(source, &reading, over, text);
    layers.whole &= whole;
    return layers;
}
