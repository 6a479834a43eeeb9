/* node.c: nodes of a YAML document. */
#include <string.h>

#include "arena.h"
#include "node.h"

struct node *node_new(struct where where, enum node_type type)
{
    struct node *node = arena_alloc(1, sizeof(*node));
    *node = (struct node){ .type = type, .plain = type == NODE_SCALAR, .where = where, .text = "", .weight = 1 };
    return node;
}

void node_append(struct node *sequence, struct node *item)
{
    sequence->items = arena_grow(sequence->items, sequence->count, sizeof(struct node *));
    sequence->items[sequence->count++] = item;
    sequence->weight += item->weight;
}

void node_add(struct node *mapping, struct node *key, struct node *value)
{
    mapping->entries = arena_grow(mapping->entries, mapping->count, sizeof(*mapping->entries));
    mapping->entries[mapping->count++] = (struct node_entry){ key, value };
    mapping->weight += key->weight + value->weight;
}

struct node *node_get(const struct node *mapping, const char *key)
{
    for (size_t i = 0; mapping->type == NODE_MAPPING && i < mapping->count; i++)
        if (!strcmp(mapping->entries[i].key->text, key))
            return mapping->entries[i].value;
    return NULL;
}

static bool is_one_of(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, names[i]))
            return true;
    return false;
}

void error_unknown_key(const struct node *key, const char *what, const char *const *names, size_t count)
{
    error_at(key->where, "unknown key '%s' in %s", key->text, what);
    const char *nearest = nearest_name(key->text, names, count);
    if (nearest) {
        note_at(key->where, "did you mean '%s'?", nearest);
        return;
    }
    const char *list = "";
    for (size_t i = 0; i < count; i++)
        list = arena_printf("%s%s%s", list, i ? ", " : "", names[i]);
    note_at(key->where, "its keys are %s", list);
}

void node_check_keys(const struct node *mapping, const char *what, const char *const *names, size_t count)
{
    for (size_t i = 0; mapping->type == NODE_MAPPING && i < mapping->count; i++)
        if (!is_one_of(mapping->entries[i].key->text, names, count))
            error_unknown_key(mapping->entries[i].key, what, names, count);
}

static bool is_plain(const struct node *node, const char *text)
{
    return node->type == NODE_SCALAR && node->plain && !strcmp(node->text, text);
}

bool node_is_null(const struct node *node)
{
    static const char *const nulls[] = { "~", "null", "Null", "NULL" };
    return node->type == NODE_SCALAR && node->plain && is_one_of(node->text, nulls, COUNT_OF(nulls));
}

bool node_is_nothing(const struct node *node)
{
    return is_plain(node, "");
}

bool node_is_bool(const struct node *node)
{
    return is_plain(node, "true") || is_plain(node, "false");
}
