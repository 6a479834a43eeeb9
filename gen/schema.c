/* schema.c: the rows of schema.def as a tree, and descriptions of their values. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/kb/keys.def"
#include "schema.h"

struct row {
    struct key key;
    enum { ROW_KEY, ROW_OPEN, ROW_CLOSE } type;
};

#define IN(member) offsetof(struct model, member)
#define IN_ENTRY(of, member) offsetof(struct of, member)
#define NOTHING 0

static const struct row rows[] = {
#define KEY(name, kind, better, form, least, most, standard, target, doc) \
    { { #name, NULL, KIND_##kind, BETTER_##better, form, least, most, standard, doc, target, NULL, NULL, 0 }, ROW_KEY },
#define OPEN_AS(name, kind, standard, doc) \
    { { #name, NULL, KIND_##kind, BETTER_EITHER, "", NULL, NULL, standard, doc, 0, NULL, NULL, 0 }, ROW_OPEN },
#define OPEN_EITHER(name, form, standard, target, doc) \
    { { #name, NULL, KIND_either, BETTER_EITHER, form, NULL, NULL, standard, doc, IN(target), NULL, NULL, 0 }, ROW_OPEN },
#define CLOSE() { { .name = NULL }, ROW_CLOSE },
#include "schema.def"
};

const char *const dtype_names[DTYPES] = {
#define DTYPE(name, bytes, is_float) #name,
#include "../rt/kb/dtypes.def"
#undef DTYPE
};

/* Adds the rows from `row` up to the CLOSE of `parent` below it. Returns the row after that. */
static size_t add_keys(struct key *parent, size_t row)
{
    for (; row < COUNT_OF(rows) && rows[row].type != ROW_CLOSE; row++) {
        struct key *key;
        parent->names = arena_grow(parent->names, parent->count, sizeof(*parent->names));
        parent->keys = arena_grow(parent->keys, parent->count, sizeof(*parent->keys));
        parent->names[parent->count] = rows[row].key.name;
        key = &parent->keys[parent->count++];
        *key = rows[row].key;
        key->path = parent->name ? arena_printf("%s.%s", parent->path, key->name) : key->name;
        if (rows[row].type == ROW_OPEN)
            row = add_keys(key, row + 1);
    }
    return row;
}

const struct key *schema(void)
{
    static struct key root = { .path = "the topology", .kind = KIND_mapping };
    if (!root.count) {
        size_t end = add_keys(&root, 0);
        assert(end == COUNT_OF(rows));
    }
    return &root;
}

/* A key and the keys below it, with other paths. */
static struct key key_at(const struct key *key, const char *path)
{
    struct key copy = *key;
    copy.path = path;
    copy.keys = arena_alloc(key->count, sizeof(*copy.keys));
    for (size_t i = 0; i < key->count; i++)
        copy.keys[i] = key_at(&key->keys[i], arena_printf("%s.%s", path, key->names[i]));
    return copy;
}

struct key schema_element(const struct key *list, size_t i)
{
    return key_at(list, arena_printf("%s[%zu]", list->path, i));
}

const struct key *schema_key(const struct key *of, const char *name)
{
    for (size_t i = 0; i < of->count; i++)
        if (!strcmp(of->keys[i].name, name))
            return &of->keys[i];
    return NULL;
}

bool key_must_be_given(const struct key *key)
{
    for (size_t i = 0; key->kind == KIND_mapping && i < key->count; i++)
        if (key_must_be_given(&key->keys[i]))
            return true;
    return key->kind != KIND_mapping && !key->standard;
}

bool schema_is_limit(const struct key *key)
{
    return key->kind == KIND_bandwidth || key->kind == KIND_size_limit || key->kind == KIND_count_limit;
}

enum dimension schema_dimension(const struct key *key)
{
    static const enum dimension dimensions[] = {
#define KIND(name, dimension) DIMENSION_##dimension,
        KINDS
#undef KIND
    };
    return dimensions[key->kind];
}

const struct unit *schema_unit(const struct key *key)
{
    return schema_dimension(key) == DIMENSION_none ? NULL : unit_named(key->form);
}

void schema_number(const struct key *key, const char *text, mpq_t value)
{
    const char *unit, *why = quantity_lex(text, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, schema_dimension(key), schema_unit(key));
    assert(!why);
}

static const char *expects_number(const struct key *key)
{
    const char *phrase = dimension_phrase[schema_dimension(key)], *orelse = schema_is_limit(key) ? ", or ~" : "";
    if (key->kind > KIND_ratio && schema_dimension(key) == DIMENSION_none)
        phrase = "a whole number";
    const char *unit = *key->form && !strpbrk(key->most, " ") ? arena_printf(" %s", key->form) : "";
    if (!key->least)
        return arena_printf("%s above 0 and up to %s%s%s", phrase, key->most, unit, orelse);
    return arena_printf("%s from %s to %s%s%s", phrase, key->least, key->most, unit, orelse);
}

static const char *expects_either(const struct key *key)
{
    const char *words[8], *text = "";
    size_t count = schema_words(key, words, COUNT_OF(words));
    for (size_t i = 0; i < count; i++)
        text = arena_printf("%s%s'%s'", text, i ? ", " : "", words[i]);
    return arena_printf("%s or a mapping with %s", text, key->names[0]);
}

const char *schema_expects(const struct key *key)
{
    switch (key->kind) {
    case KIND_ratio: case KIND_time: case KIND_length: case KIND_bandwidth: case KIND_clock: case KIND_size:
    case KIND_size_limit: case KIND_count: case KIND_count_limit: case KIND_dtypes: case KIND_ops:
        return expects_number(key);
    case KIND_mapping: case KIND_params: return "a mapping";
    case KIND_attachments: case KIND_planes: case KIND_chip_links: return "a sequence of mappings";
    case KIND_either: return expects_either(key);
    case KIND_path: return "a relative path below the file's own folder";
    case KIND_constant: return key->form;
    case KIND_impl: return arena_printf("builtin.%s or the name of a C file", key->form);
    case KIND_name: return IDENTIFIER_FORM;
    case KIND_resource: return IDENTIFIER_FORM ", or ~";
    case KIND_choice: return arena_printf("one of %s", key->form);
    case KIND_flag: return "true or false";
    case KIND_router: case KIND_routers: return arena_printf("a pair [row, column], each %s", expects_number(key));
    }
    return NULL;
}

size_t schema_words(const struct key *key, const char **words, size_t most)
{
    size_t count = 0;
    for (const char *s = key->form; *s; s += strspn(s, " ")) {
        size_t length = strcspn(s, " ");
        if (count < most)
            words[count] = arena_text(s, length);
        count++;
        s += length;
    }
    return count;
}
