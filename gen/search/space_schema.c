/* space_schema.c: the keys of a space file as a JSON Schema.
 *
 * Keys of the topology are listed, so that an editor completes them; what their levels may be is the topology's schema's
 * business, and what a bench takes is known to its simulator alone. */
#include "space_schema.h"

#include "../../rt/common/arena.h"
#include "../../rt/common/json.h"
#include "space.h"

static const char head[] =
    "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"title\": \"a space of kbgen search\",\n"
    "\"definitions\": {\n"
    "  \"scalar\": {\"type\": [\"string\", \"number\", \"boolean\"]},\n"
    "  \"number\": {\"type\": [\"string\", \"number\"]},\n"
    "  \"name\": {\"type\": \"string\", \"pattern\": \"^[A-Za-z_][A-Za-z0-9_]{0,127}$\"},\n"
    "  \"path\": {\"type\": \"string\", \"minLength\": 1},\n"
    "  \"expression\": {\"type\": [\"string\", \"number\"], \"maxLength\": 10000},\n"
    "  \"range\": {\"type\": \"object\", \"required\": [\"from\", \"to\"], \"additionalProperties\": false,\n"
    "    \"properties\": {\"from\": {\"$ref\": \"#/definitions/number\"}, \"to\": {\"$ref\": \"#/definitions/number\"},\n"
    "      \"step\": {\"$ref\": \"#/definitions/number\"}, \"scale\": {\"enum\": [\"log2\", \"log\"]},\n"
    "      \"count\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 4294967296}},\n"
    "    \"oneOf\": [{\"required\": [\"step\"], \"not\": {\"required\": [\"scale\"]}},\n"
    "      {\"required\": [\"scale\"], \"properties\": {\"scale\": {\"const\": \"log2\"}}},\n"
    "      {\"required\": [\"count\"], \"not\": {\"required\": [\"step\"]}, \"properties\": {\"scale\": {\"const\": \"log\"}}}]},\n"
    "  \"axis\": {\"anyOf\": [{\"type\": \"array\", \"minItems\": 1, \"uniqueItems\": true}, {\"$ref\": \"#/definitions/range\"}]},\n"
    "  \"params\": {\"type\": \"object\", \"additionalProperties\": {\"$ref\": \"#/definitions/scalar\"}},\n"
    "  \"workload\": {\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\n"
    "    \"name\": {\"$ref\": \"#/definitions/name\"}, \"bench\": {\"type\": \"string\"},\n"
    "    \"replay\": {\"$ref\": \"#/definitions/path\"}, \"params\": {\"$ref\": \"#/definitions/params\"},\n"
    "    \"weight\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000000}},\n"
    "    \"oneOf\": [{\"required\": [\"bench\"]}, {\"required\": [\"replay\"], \"not\": {\"required\": [\"params\"]}}]}\n"
    "},\n"
    "\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"topology\", \"space\", \"objectives\"],\n"
    "\"oneOf\": [{\"required\": [\"bench\"]}, {\"required\": [\"replay\"]}, {\"required\": [\"workloads\"]}],\n"
    "\"properties\": {\n"
    "  \"topology\": {\"$ref\": \"#/definitions/path\", \"description\": \"the topology, from this file's folder\"},\n"
    "  \"impls\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/definitions/path\"},\n"
    "    \"description\": \"your models of components, as kbgen --impl takes them\"},\n"
    "  \"kernels\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/definitions/path\"},\n"
    "    \"description\": \"your kernels, as kbgen -k takes them\"},\n"
    "  \"bench\": {\"type\": \"string\", \"description\": \"the bench that each machine runs\"},\n"
    "  \"params\": {\"$ref\": \"#/definitions/params\", \"description\": \"parameters of the bench\"},\n"
    "  \"replay\": {\"$ref\": \"#/definitions/path\", \"description\": \"the command stream that each machine replays\"},\n"
    "  \"workloads\": {\"type\": \"array\", \"minItems\": 1, \"maxItems\": 64, \"items\": {\"$ref\": \"#/definitions/workload\"},\n"
    "    \"description\": \"several runs of each machine, with their weights in sums\"},\n"
    "  \"derive\": {\"type\": \"object\", \"maxProperties\": 200, \"propertyNames\": {\"$ref\": \"#/definitions/name\"},\n"
    "    \"additionalProperties\": {\"$ref\": \"#/definitions/expression\"},\n"
    "    \"description\": \"values computed by expressions of SQLite over keys, counts, parameters, metrics and each other\"},\n"
    "  \"where\": {\"anyOf\": [{\"$ref\": \"#/definitions/expression\"}, {\"type\": \"array\", \"maxItems\": 200,\n"
    "    \"items\": {\"$ref\": \"#/definitions/expression\"}}], \"description\": \"conditions that a point has to meet\"},\n"
    "  \"objectives\": {\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": 16,\n"
    "    \"additionalProperties\": {\"enum\": [\"min\", \"max\"]}, \"description\": \"metrics or derived values\"},\n"
    "  \"budget\": {\"type\": \"object\", \"additionalProperties\": false, \"description\": \"when the search ends\", \"properties\": {\n"
    "    \"points\": {\"type\": \"integer\", \"minimum\": 1}, \"hours\": {\"type\": \"number\", \"minimum\": 1e-6}}},\n"
    "  \"seed\": {\"type\": \"integer\", \"minimum\": 0, \"description\": \"of the method (1)\"},\n";

/* ---- the method */

static const char *option_form(const struct method_option_row *row)
{
    switch (row->kind) {
    case OPTION_KIND_count:
    case OPTION_KIND_real:
        return arena_printf("{\"type\": \"%s\", \"minimum\": %.9g, \"maximum\": %.9g, \"default\": %.9g}",
                            row->kind == OPTION_KIND_count ? "integer" : "number", row->least, row->most, row->standard);
    default: return "{\"type\": \"string\", \"minLength\": 1}";
    }
}

static void print_method(FILE *out, enum method_name name)
{
    const char *required = "\"name\"", *properties = "";
    for (size_t i = 0; i < METHOD_OPTIONS; i++) {
        const struct method_option_row *row = &method_options[i];
        if (row->method != name)
            continue;
        properties = arena_printf("%s, \"%s\": %s", properties, row->name, option_form(row));
        if (row->kind == OPTION_KIND_file || row->kind == OPTION_KIND_axis)
            required = arena_printf("%s, \"%s\"", required, row->name);
    }
    fprintf(out, ",\n    {\"type\": \"object\", \"required\": [%s], \"additionalProperties\": false, \"properties\": "
            "{\"name\": {\"const\": \"%s\"}%s}}", required, method_names[name], properties);
}

static void print_methods(FILE *out)
{
    fputs("  \"method\": {\"description\": \"which points are evaluated\", \"anyOf\": [{\"enum\": [", out);
    for (enum method_name i = 0; i < METHODS; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", method_names[i]);
    fputs("]}", out);
    for (enum method_name i = 0; i < METHODS; i++)
        print_method(out, i);
    fputs("\n  ]},\n", out);
}

/* ---- the keys of the space */

static void print_keys(FILE *out, const struct key *of)
{
    for (size_t i = 0; i < of->count; i++) {
        const struct key *key = &of->keys[i];
        if (key->kind == KIND_mapping)
            print_keys(out, key);
        else if (key->kind != KIND_path && key->kind != KIND_constant)
            fprintf(out, "    \"%s\": {\"description\": %s, \"$ref\": \"#/definitions/axis\"},\n", key->path,
                    json_quoted(key->doc));
    }
}

void dump_schema_space(FILE *out)
{
    fputs(head, out);
    print_methods(out);
    fputs("  \"space\": {\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": 1000, \"additionalProperties\": false,\n"
          "    \"description\": \"the keys that differ from point to point, with their levels\", \"properties\": {\n", out);
    print_keys(out, schema());
    fputs("    \"sip\": {\"$ref\": \"#/definitions/axis\"}, \"cube\": {\"$ref\": \"#/definitions/axis\"}},\n"
          "    \"patternProperties\": {\"^(params|system|sip|cube)[.]\": {\"$ref\": \"#/definitions/axis\"}}}\n}}\n", out);
}
