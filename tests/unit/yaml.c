/* yaml.c: texts -> trees: nesting, places, aliases, merge keys, what is refused. Messages go to standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/read.h"
#include "common/yaml.h"

static int tests;

static void check(const char *what, const char *got, const char *want)
{
    printf("%s %d - %s\n", strcmp(got, want) ? "not ok" : "ok", ++tests, what);
    if (strcmp(got, want))
        printf("# got %s\n# want %s\n", got, want);
}

/* A tree as flow text; scalars that are not plain in quotes. */
static const char *shown(const struct node *node)
{
    const char *text = "";
    if (!node)
        return "none";
    for (size_t i = 0; node->type == NODE_SEQUENCE && i < node->count; i++)
        text = arena_printf("%s%s%s", text, i ? ", " : "", shown(node->items[i]));
    for (size_t i = 0; node->type == NODE_MAPPING && i < node->count; i++)
        text = arena_printf("%s%s%s: %s", text, i ? ", " : "", shown(node->entries[i].key),
                            shown(node->entries[i].value));
    switch (node->type) {
    case NODE_SEQUENCE: return arena_printf("[%s]", text);
    case NODE_MAPPING: return arena_printf("{%s}", text);
    default: return node->plain ? node->text : arena_printf("'%s'", node->text);
    }
}

static const struct source *source_of(const char *text)
{
    struct source *source = arena_alloc(1, sizeof(*source));
    *source = (struct source){ "text", text, strlen(text), 0 };
    return source;
}

/* A document gives this tree, after so many errors. */
static void expect(const char *what, const char *text, const char *want, unsigned errors)
{
    unsigned before = error_count();
    const struct node *node = yaml_document(source_of(text));
    const char *got = arena_printf("%s, %u errors", shown(node), error_count() - before);
    check(what, got, arena_printf("%s, %u errors", want, errors));
}

static void trees(void)
{
    expect("an empty text is an empty mapping", "", "{}", 0);
    expect("a comment is an empty mapping", "# nothing\n", "{}", 0);
    expect("an empty document is an empty mapping", "---\n", "{}", 0);
    expect("block style is read", "a:\n  - 1\n  - b: 2\nc: x y\n", "{a: [1, {b: 2}], c: x y}", 0);
    expect("flow style is read", "{a: [1, {b: 2}], c: ~}", "{a: [1, {b: 2}], c: ~}", 0);
    expect("quoted scalars are told from plain ones, tags are refused", "[1, '1', \"a\\tb\", !!str 1]",
           "[1, '1', 'a\tb', 1]", 1);
    expect("scalars stay as written", "[010, 1:30, no, 0x10, .inf]", "[010, 1:30, no, 0x10, .inf]", 0);
}

static void aliases(void)
{
    expect("an alias is its node", "a: &x [1]\nb: *x\n", "{a: [1], b: [1]}", 0);
    expect("an anchor can be given again", "[&x 1, *x, &x 2, *x]", "[1, 1, 2, 2]", 0);
    expect("an alias can name a key", "{&k a: 1, b: {*k : 2}}", "{a: 1, b: {a: 2}}", 0);
    expect("an alias without an anchor is an error", "[*x]", "[]", 1);
    expect("an alias within its own node is an error", "&x [*x]", "[]", 1);
    expect("a merged mapping gives the keys that are missing", "{<<: {a: 1, b: 2}, b: 3}", "{b: 3, a: 1}", 0);
    expect("of several merged mappings the first counts", "{<<: [{a: 1}, {a: 2, b: 2}]}", "{a: 1, b: 2}", 0);
    expect("a mapping with merged keys can be merged", "x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y}\n",
           "{x: {a: 1}, y: {b: 2, a: 1}, z: {b: 2, a: 1}}", 0);
    expect("a quoted << is a key", "{'<<': 1}", "{'<<': 1}", 0);
    expect("a merged scalar is an error", "{<<: 1, a: 2}", "{a: 2}", 1);
    expect("a duplicate key is an error, and the first one counts", "{a: 1, b: 2, a: 3}", "{a: 1, b: 2}", 1);
}

static void refused(void)
{
    expect("a second document is an error", "a: 1\n---\nb: 2\n", "none", 1);
    expect("a text that is not YAML is an error", "a: [1", "none", 1);
    expect("a NUL in a scalar is an error", "a: \"\\0\"", "{a: ''}", 1);
    expect("a text that is not UTF-8 is an error", "a: \xff", "none", 1);
    expect("a key that is a sequence is an error", "{[a]: 1, b: 2}", "{b: 2}", 1);
}

/* Nesting is bounded to 64; each of these lists stands for ten of the one before. */
static void bounds(void)
{
    char deep[2 * 70 + 1] = "", bomb[4000] = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    check("64 levels of nesting are read", yaml_document(source_of(arena_text(deep, 128))) ? "a tree" : "none",
          "a tree");
    memset(deep, '[', 70);
    memset(deep + 70, ']', 70);
    expect("70 levels of nesting are an error", deep, "none", 1);
    for (char c = 'b'; c < 'z'; c++)
        strcat(bomb, arena_printf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c - 1, c - 1,
                                  c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1));
    expect("aliases for 10^25 nodes are an error", bomb, "none", 1);
}

static void places(void)
{
    const struct node *node = yaml_document(source_of("a:\n  \"\xc3\xa9\": { b: 1 }\n"));
    const struct node *b = node_get(node_get(node_get(node, "a"), "\xc3\xa9"), "b");
    check("columns count characters, not bytes", arena_printf("%u:%u", b->where.line, b->where.col), "2:13");
    node = yaml_value(source_of("x.y=[1, 2]"), 4);
    check("a value within a line keeps its column", arena_printf("%s at %u", shown(node), node->items[1]->where.col),
          "[1, 2] at 9");
    node = yaml_value(source_of("x="), 2);
    check("an empty value is nothing, and nothing is not null",
          arena_printf("%d %d", node_is_nothing(node), node_is_null(node)), "1 0");
}

/* What readers take: a letter for each of u64, bool, string, identifier, null. */
static const char *readings(const char *text)
{
    const struct node *node = yaml_value(source_of(text), 0);
    uint64_t number;
    bool on;
    const char *string;
    bool u = node_u64(node, "it", 0, UINT64_MAX, &number), b = node_bool(node, "it", &on);
    bool s = node_string(node, "it", &string), i = node_identifier(node, "it", &string);
    return arena_printf("%s%s%s%s%s", u ? "u" : "", b ? "b" : "", s ? "s" : "", i ? "i" : "",
                        node_is_null(node) ? "n" : "");
}

static void readers(void)
{
    static const char *const cases[][2] = {
        { "0xffff_ffff_ffff_ffff", "u" }, { "1e3", "u" }, { "18446744073709551616", "" }, { "1.5", "" },
        { "'1'", "s" }, { "5 ns", "s" }, { "010", "s" }, { "true", "b" }, { "'true'", "si" }, { "yes", "si" },
        { "~", "n" }, { "", "" }, { "''", "s" }, { "a b", "s" }, { "_a1", "si" }, { "[1]", "" }, { "{a: 1}", "" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(arena_printf("the scalar '%s' has its readings", cases[i][0]), readings(cases[i][0]), cases[i][1]);
}

int main(void)
{
    trees();
    aliases();
    refused();
    bounds();
    places();
    readers();
    printf("1..%d\n", tests);
    return 0;
}
