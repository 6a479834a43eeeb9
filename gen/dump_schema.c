/* dump_schema.c: schema.def as a JSON Schema.
 *
 * The schema describes the value of each key. It cannot express rules between keys (a router inside the grid,
 * reserved_mb within size_mb), nor that sizes are whole bytes. */
#include <inttypes.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/json.h"
#include "../rt/common/read.h"
#include "../rt/common/yaml.h"
#include "../rt/kb/keys.def"
#include "dump_schema.h"
#include "schema.h"

#define IDENTIFIER "[A-Za-z_][A-Za-z0-9_]{0,127}"        /* IDENTIFIER_MOST characters */

static const char *join(const char *list, const char *between, const char *more)
{
    return *list ? arena_printf("%s%s%s", list, between, more) : more;
}

/* Prints a default as JSON; its plain numbers are JSON numbers already. */
static const char *json_of(const struct node *node)
{
    const char *inside = "";
    mpq_t number;
    switch (node->type) {
    case NODE_SEQUENCE:
        for (size_t i = 0; i < node->count; i++)
            inside = join(inside, ", ", json_of(node->items[i]));
        return arena_printf("[%s]", inside);
    case NODE_MAPPING:
        for (size_t i = 0; i < node->count; i++)
            inside = join(inside, ", ", arena_printf("%s: %s", json_quoted(node->entries[i].key->text),
                                                     json_of(node->entries[i].value)));
        return arena_printf("{%s}", inside);
    case NODE_SCALAR:
        break;
    }
    if (node_is_null(node))
        return "null";
    mpq_init(number);
    bool bare = node_is_bool(node) || !node_number(node, DIMENSION_none, NULL, number);
    mpq_clear(number);
    return bare ? node->text : json_quoted(node->text);
}

/* Prints a bound in the unit of its key as an exact decimal: units are powers of two and ten apart. */
static const char *bound(const struct key *key, const char *text)
{
    const struct unit *unit = schema_unit(key);
    uint64_t whole;
    unsigned places = 0;
    mpq_t value, factor;
    mpq_inits(value, factor, NULL);
    schema_number(key, text, value);
    mpq_set_ui(factor, unit ? unit->up : 1, unit ? unit->down : 1);
    mpq_canonicalize(factor);
    mpq_div(value, value, factor);
    mpq_set_ui(factor, 10, 1);
    for (; !quantity_whole(value, &whole); places++)
        mpq_mul(value, value, factor);
    mpq_clears(value, factor, NULL);
    return places ? arena_printf("%" PRIu64 "e-%u", whole, places) : arena_printf("%" PRIu64, whole);
}

static const char *bounds(const struct key *key)
{
    const char *most = bound(key, key->most);
    if (!key->least)
        return arena_printf("\"exclusiveMinimum\": 0, \"maximum\": %s", most);
    return arena_printf("\"minimum\": %s, \"maximum\": %s", bound(key, key->least), most);
}

static const char *text_form(const char *pattern)
{
    return arena_printf("\"type\": \"string\", \"pattern\": %s", json_quoted(pattern));
}

/* Prints for each dimension the pattern of a number with a unit. */
static const char *definitions(void)
{
    const char *list = "";
    for (enum dimension dimension = DIMENSION_none + 1; dimension < DIMENSIONS; dimension++) {
        const char *names = "";
        for (const struct unit *unit = units; unit->name; unit++)
            if (unit->dimension == dimension)
                names = join(names, "|", unit->name);
        const char *pattern = arena_printf("^(%s) ?(%s)$", quantity_pattern, names);
        list = join(list, ",\n", arena_printf("  \"%s\": {%s}", dimension_name[dimension], text_form(pattern)));
    }
    return list;
}

static const char *quantity_form(enum dimension dimension)
{
    return arena_printf("{\"$ref\": \"#/definitions/%s\"}", dimension_name[dimension]);
}

static const char *any_quantity_form(void)
{
    const char *list = "{\"type\": \"number\", \"minimum\": 0}";
    for (enum dimension dimension = DIMENSION_none + 1; dimension < DIMENSIONS; dimension++)
        list = join(list, ", ", quantity_form(dimension));
    return list;
}

static const char *words_form(const struct key *key)
{
    const char *all[8], *list = "";
    size_t count = schema_words(key, all, COUNT_OF(all));
    for (size_t i = 0; i < count; i++)
        list = join(list, ", ", json_quoted(all[i]));
    return arena_printf("\"enum\": [%s]", list);
}

static const char *keys_of(const struct key *key, const char *indent);

/* Prints the bounds of a number, as members of a JSON object. */
static const char *number_form(const struct key *key)
{
    enum dimension dimension = schema_dimension(key);
    const char *null = schema_is_limit(key) ? ", {\"type\": \"null\"}" : "";
    if (key->kind == KIND_count_limit)
        return arena_printf("\"anyOf\": [{\"type\": \"integer\", %s}%s]", bounds(key), null);
    if (dimension == DIMENSION_none)
        return arena_printf("\"type\": \"%s\", %s", key->kind == KIND_ratio ? "number" : "integer", bounds(key));
    return arena_printf("\"anyOf\": [{\"type\": \"number\", %s}, %s%s]", bounds(key), quantity_form(dimension), null);
}

/* Prints an object that maps dtypes to numbers. */
static const char *dtypes_form(const struct key *key)
{
    const char *list = "", *number = number_form(key);
    for (size_t i = 0; i < DTYPES; i++)
        list = join(list, ", ", arena_printf("\"%s\": {%s}", dtype_names[i], number));
    return arena_printf("\"type\": \"object\", \"additionalProperties\": false, \"properties\": {%s}", list);
}

/* Prints an object that maps identifiers to values. */
static const char *names_form(const char *values)
{
    return arena_printf("\"type\": \"object\", \"propertyNames\": {%s}, \"additionalProperties\": {%s}",
                        text_form("^" IDENTIFIER "$"), values);
}

static const char *pair_form(const struct key *key)
{
    return arena_printf("\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2, \"items\": {%s}", number_form(key));
}

static const char *list_form(const struct key *key, const char *bounds, const char *indent)
{
    return arena_printf("\"type\": \"array\", %s\"items\": {%s}", bounds, keys_of(key, indent));
}

static const char *form(const struct key *key, const char *indent)
{
    switch (key->kind) {
    case KIND_mapping:
        return keys_of(key, indent);
    case KIND_attachments: return list_form(key, "\"minItems\": 1, \"uniqueItems\": true, ", indent);
    case KIND_planes: return list_form(key, "\"minItems\": 1, \"maxItems\": " DIGITS(PLANES_MOST) ", ", indent);
    case KIND_chip_links: return list_form(key, "\"uniqueItems\": true, ", indent);
    case KIND_either:
        return arena_printf("\"anyOf\": [{%s}, {%s}]", words_form(key), keys_of(key, indent));
    case KIND_path: return text_form("^(?!/)(?!(.*/)?\\.\\.(/|$)).+$");
    case KIND_constant: return arena_printf("\"const\": \"%s\"", key->form);
    case KIND_impl: return text_form(arena_printf("^(builtin\\.%s|" IDENTIFIER ")$", key->form));
    case KIND_params:
        return names_form(arena_printf("\"anyOf\": [%s]", any_quantity_form()));
    case KIND_name: return text_form("^" IDENTIFIER "$");
    case KIND_resource: return arena_printf("\"anyOf\": [{%s}, {\"type\": \"null\"}]", text_form("^" IDENTIFIER "$"));
    case KIND_ratio: case KIND_time: case KIND_length: case KIND_bandwidth: case KIND_clock: case KIND_size:
    case KIND_size_limit: case KIND_count: case KIND_count_limit:
        return number_form(key);
    case KIND_choice: return words_form(key);
    case KIND_flag: return "\"type\": \"boolean\"";
    case KIND_router: return pair_form(key);
    case KIND_routers: return arena_printf("\"type\": \"array\", \"items\": {%s}", pair_form(key));
    case KIND_dtypes: return dtypes_form(key);
    case KIND_ops: return names_form(number_form(key));
    }
    return NULL;
}

/* Prints a key with its description, default and form. */
static const char *property(const struct key *key, const char *indent)
{
    const struct unit *unit = schema_unit(key);
    const char *doc = unit ? arena_printf("%s (a bare number counts %s)", key->doc, unit->name) : key->doc;
    const char *standard = "";
    if (key->standard && *key->standard) {
        const struct source source = { key->path, key->standard, strlen(key->standard), 0 };
        standard = arena_printf("\"default\": %s, ", json_of(yaml_value(&source, 0)));
    }
    return arena_printf("%s\"%s\": {\"description\": %s, %s%s}", indent, key->name, json_quoted(doc), standard,
                        form(key, indent));
}

/* Prints an object with the keys below a key. */
static const char *keys_of(const struct key *key, const char *indent)
{
    const char *within = arena_printf("%s  ", indent), *properties = "", *required = "";
    for (size_t i = 0; i < key->count; i++) {
        const struct key *child = &key->keys[i];
        properties = join(properties, ",\n", property(child, within));
        if (key_must_be_given(child))
            required = join(required, ", ", json_quoted(child->name));
    }
    if (*required)
        required = arena_printf("\"required\": [%s], ", required);
    return arena_printf("\"type\": \"object\", %s\"additionalProperties\": false, \"properties\": {\n%s\n%s}", required,
                        properties, indent);
}

void dump_schema(FILE *out)
{
    fprintf(out, "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"title\": \"a topology of kbgen\",\n"
            "\"definitions\": {\n%s\n},\n%s}\n", definitions(), keys_of(schema(), ""));
}
