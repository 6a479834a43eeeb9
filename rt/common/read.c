/* read.c: nodes as typed values. Booleans are true and false without quotes; numbers have no quotes unless they have a
 * unit; null is not a text. */
#include <inttypes.h>
#include <string.h>

#include "arena.h"
#include "read.h"

/* The node in a message. */
static const char *shown(const struct node *node)
{
    if (node->type != NODE_SCALAR)
        return node->type == NODE_MAPPING ? "a mapping" : "a sequence";
    if (node_is_nothing(node))
        return "nothing";
    size_t length = strlen(node->text), most = 60;
    return arena_printf("%s'%.*s%s'", node->plain ? "" : "the text ", (int)(length < most ? length : most), node->text,
                        length > most ? "..." : "");
}

void error_expected(const struct node *node, const char *what, const char *description, const char *why)
{
    if (node->broken)
        return;
    error_at(node->where, "%s must be %s, not %s", what, description, shown(node));
    if (why && *why)
        note_at(node->where, "%s", why);
}

bool node_is(const struct node *node, enum node_type type, const char *what)
{
    static const char *const names[] = {
        [NODE_SCALAR] = "a single value", [NODE_SEQUENCE] = "a sequence", [NODE_MAPPING] = "a mapping"
    };
    if (node->type == type)
        return true;
    error_expected(node, what, names[type], NULL);
    return false;
}

const char *node_number(const struct node *node, enum dimension dimension, const struct unit *bare, mpq_t value)
{
    if (node->type != NODE_SCALAR || node_is_null(node) || node_is_nothing(node))
        return "";
    const char *unit, *why = quantity_lex(node->text, value, &unit);
    if (!why && !*unit && !node->plain)
        why = "numbers are written without quotes";
    return why ? why : quantity_scale(value, unit, dimension, bare);
}

bool node_u64(const struct node *node, const char *what, uint64_t least, uint64_t most, uint64_t *out)
{
    mpq_t value;
    mpq_init(value);
    const char *why = node_number(node, DIMENSION_none, NULL, value);
    bool good = !why && quantity_whole(value, out) && *out >= least && *out <= most;
    mpq_clear(value);
    if (!good)
        error_expected(node, what, arena_printf("a whole number from %" PRIu64 " to %" PRIu64, least, most), why);
    return good;
}

bool node_ps(const struct node *node, const char *what, uint64_t most_ps, uint64_t *out)
{
    mpq_t value;
    mpq_init(value);
    const char *why = node_number(node, DIMENSION_time, unit_named("ns"), value);
    bool good = !why && quantity_round(value, out) && *out <= most_ps;
    mpq_clear(value);
    if (!good)
        error_expected(node, what, arena_printf("a time up to %" PRIu64 " ps", most_ps), why);
    return good;
}

bool node_bool(const struct node *node, const char *what, bool *out)
{
    if (!node_is_bool(node)) {
        error_expected(node, what, "true or false", NULL);
        return false;
    }
    *out = !strcmp(node->text, "true");
    return true;
}

/* Whether a node is a text: not nothing, null, a boolean or a number. */
static bool is_text(const struct node *node)
{
    if (node->type != NODE_SCALAR || node_is_nothing(node) || node_is_null(node) || node_is_bool(node))
        return false;
    mpq_t value;
    mpq_init(value);
    const char *unit;
    bool number = node->plain && !quantity_lex(node->text, value, &unit) && !*unit;
    mpq_clear(value);
    return !number;
}

bool node_string(const struct node *node, const char *what, const char **out)
{
    if (!is_text(node)) {
        error_expected(node, what, "a text", NULL);
        return false;
    }
    *out = node->text;
    return true;
}

bool node_identifier(const struct node *node, const char *what, const char **out)
{
    if (!is_text(node) || !is_identifier(node->text)) {
        error_expected(node, what, IDENTIFIER_FORM, NULL);
        return false;
    }
    *out = node->text;
    return true;
}

bool node_choice(const struct node *node, const char *what, const char *const *names, size_t count, unsigned *out)
{
    for (size_t i = 0; is_text(node) && i < count; i++)
        if (!strcmp(node->text, names[i])) {
            *out = (unsigned)i;
            return true;
        }
    const char *list = names[0];
    for (size_t i = 1; i < count; i++)
        list = arena_printf("%s%s%s", list, i + 1 < count ? ", " : " or ", names[i]);
    error_expected(node, what, list, NULL);
    const char *nearest = is_text(node) && !node->broken ? nearest_name(node->text, names, count) : NULL;
    if (nearest)
        note_at(node->where, "did you mean '%s'?", nearest);
    return false;
}
