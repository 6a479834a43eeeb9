/* yaml.c: a tree of nodes from libyaml's events.
 *
 * libyaml gives scalars, nesting and places, and leaves to its users anchors and aliases, the number of documents, and
 * bounds against malicious input, which are here, and merge keys and duplicates, which are in merge.c. Tags are refused:
 * they would name types that no key has. */
#define _GNU_SOURCE                                     /* tdestroy */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "arena.h"
#include "merge.h"
#include "path_error.h"
#include "yaml.h"

enum { DEPTH_MOST = 64, EXPANDED_MOST = 1000000 };

struct anchor {
    const char *name;
    struct node *node;                                  /* NULL: still being read */
};

struct reader {
    yaml_parser_t parser;
    const struct source *source;
    unsigned col_offset;                                /* characters before the text on its first line */
    void *anchors;                                      /* by name; a tree of <search.h> */
    size_t expanded;                                    /* nodes that aliases have expanded to */
    bool is_value;                                      /* a value alone, not a document */
    bool stopped;                                       /* an error that ends the reading was reported */
};

static struct where where_of(const struct reader *r, yaml_mark_t mark)
{
    unsigned offset = mark.line == 0 ? r->col_offset : 0;
    return (struct where){ r->source, r->source->lines_before + (unsigned)mark.line + 1,
                           (unsigned)mark.column + 1 + offset };
}

/* The place of a byte, for errors of libyaml's decoder, which does not count lines. */
static struct where where_of_byte(const struct reader *r, size_t byte)
{
    struct where at = { r->source, r->source->lines_before + 1, 1 };
    for (size_t i = 0; i < byte && i < r->source->length; i++) {
        unsigned char c = (unsigned char)r->source->text[i];
        if (c == '\n')
            at.line++, at.col = 1;
        else if ((c & 0xc0) != 0x80)
            at.col++;
    }
    return at;
}

/* libyaml places the end of a text without a last newline on a line too many. */
static struct where where_of_problem(const struct reader *r)
{
    struct where at = where_of(r, r->parser.problem_mark), end = where_of_byte(r, r->source->length);
    return at.line > end.line ? end : at;
}

static void report_parser(struct reader *r, size_t from)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    r->stopped = true;
    if (p->error == YAML_MEMORY_ERROR)
        die("out of memory");
    if (p->error == YAML_READER_ERROR) {
        error_at(where_of_byte(r, from + p->problem_offset), "%s", problem);
        return;
    }
    error_at(where_of_problem(r), "%s", problem);
    if (p->context)
        note_at(where_of(r, p->context_mark), "%s", p->context);
}

/* Gets the next event, which the caller deletes. */
static bool next_event(struct reader *r, yaml_event_t *event)
{
    if (r->stopped)
        return false;
    if (yaml_parser_parse(&r->parser, event))
        return true;
    report_parser(r, (size_t)(r->parser.input.string.start - (const unsigned char *)r->source->text));
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct anchor *)a)->name, ((const struct anchor *)b)->name);
}

static struct anchor *find_anchor(const struct reader *r, const char *name)
{
    struct anchor **found = tfind(&(struct anchor){ name, NULL }, &r->anchors, by_name);
    return found ? *found : NULL;
}

/* Adds an anchor before its node is read, so that an alias within the node is found. A later anchor of the same name
 * replaces it. */
static struct anchor *open_anchor(struct reader *r, const char *name)
{
    struct anchor *anchor = find_anchor(r, name);
    if (!anchor) {
        anchor = arena_alloc(1, sizeof(*anchor));
        anchor->name = arena_text(name, strlen(name));
        if (!tsearch(anchor, &r->anchors, by_name))
            die("out of memory");
    }
    anchor->node = NULL;
    return anchor;
}

static void keep_anchor(void *anchor)
{
    (void)anchor;                                       /* the arena's */
}

/* In place of a node that an error was reported for. */
static struct node *broken_node(struct where where)
{
    struct node *node = node_new(where, NODE_SCALAR);
    node->broken = true;
    return node;
}

static struct node *read_alias(struct reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct where where = where_of(r, event->start_mark);
    struct anchor *anchor = find_anchor(r, name);
    if (anchor && anchor->node) {
        r->expanded += anchor->node->weight;
        if (r->expanded <= EXPANDED_MOST)
            return anchor->node;
        error_at(where, "aliases expand to more than %d nodes", EXPANDED_MOST);
        r->stopped = true;
    } else if (anchor) {
        error_at(where, "the alias '*%s' is within the node that it names", name);
    } else {
        error_at(where, "there is no anchor '&%s' before this alias", name);
    }
    return broken_node(where);
}

static struct node *read_scalar(struct reader *r, const yaml_event_t *event)
{
    struct node *node = node_new(where_of(r, event->start_mark), NODE_SCALAR);
    const char *text = (const char *)event->data.scalar.value;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = arena_text(text, event->data.scalar.length);
    if (strlen(text) != event->data.scalar.length)
        error_at(node->where, "a text must not contain a NUL character");
    return node;
}

static struct node *read_node(struct reader *r, const yaml_event_t *event, unsigned depth);

static void read_sequence(struct reader *r, struct node *node, unsigned depth)
{
    yaml_event_t event;
    while (next_event(r, &event)) {
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        if (!end)
            node_append(node, read_node(r, &event, depth));
        yaml_event_delete(&event);
        if (end)
            return;
    }
}

static void read_mapping(struct reader *r, struct node *node, unsigned depth)
{
    struct node *key = NULL;
    yaml_event_t event;
    while (next_event(r, &event)) {
        bool end = event.type == YAML_MAPPING_END_EVENT;
        struct node *read = end ? NULL : read_node(r, &event, depth);
        yaml_event_delete(&event);
        if (end)
            break;
        if (!key) {
            key = read;
            continue;
        }
        if (key->type == NODE_SCALAR)
            node_add(node, key, read);
        else
            error_at(key->where, "a key must be a name");
        key = NULL;
    }
    mapping_finish(node);
}

/* The tag and the anchor of an event that begins a node. */
static void event_marks(const yaml_event_t *event, const yaml_char_t **anchor, const yaml_char_t **tag)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        *anchor = event->data.scalar.anchor, *tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        *anchor = event->data.sequence_start.anchor, *tag = event->data.sequence_start.tag;
        break;
    default:
        *anchor = event->data.mapping_start.anchor, *tag = event->data.mapping_start.tag;
    }
}

static struct node *read_node(struct reader *r, const yaml_event_t *event, unsigned depth)
{
    struct where where = where_of(r, event->start_mark);
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(r, event);
    if (depth == DEPTH_MOST) {
        error_at(where, "nested deeper than %d", DEPTH_MOST);
        r->stopped = true;
        return broken_node(where);
    }
    const yaml_char_t *name, *tag;
    event_marks(event, &name, &tag);
    if (tag)
        error_at(where, "tags such as '%s' are not supported", (const char *)tag);
    struct anchor *anchor = name ? open_anchor(r, (const char *)name) : NULL;
    struct node *node;
    if (event->type == YAML_SCALAR_EVENT) {
        node = read_scalar(r, event);
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        node = node_new(where, NODE_SEQUENCE);
        read_sequence(r, node, depth + 1);
    } else {
        node = node_new(where, NODE_MAPPING);
        read_mapping(r, node, depth + 1);
    }
    if (anchor)
        anchor->node = node;
    return node;
}

/* Whether an event is a mark that only files have: the `---` before a document, or the `...` after it. */
static bool is_document_mark(const yaml_event_t *event)
{
    return (event->type == YAML_DOCUMENT_START_EVENT && !event->data.document_start.implicit)
        || (event->type == YAML_DOCUMENT_END_EVENT && !event->data.document_end.implicit);
}

static struct node *read_stream(struct reader *r)
{
    struct node *root = NULL;
    yaml_event_t event;
    for (bool end = false; !end && next_event(r, &event);) {
        end = event.type == YAML_STREAM_END_EVENT;
        bool document = event.type == YAML_DOCUMENT_START_EVENT;
        if (document && root) {
            error_at(where_of(r, event.start_mark), "a second document: a file has only one");
            r->stopped = true;
        } else if (r->is_value && is_document_mark(&event)) {
            error_at(where_of(r, event.start_mark), "a value has no marks of a document, '---' and '...'");
            r->stopped = true;
        }
        if (!document && !end && event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_END_EVENT)
            root = read_node(r, &event, 0);
        yaml_event_delete(&event);
    }
    return root;
}

/* Returns NULL after an error that ends the reading, and for an empty text: r->stopped tells which. */
static struct node *parse(struct reader *r, size_t from)
{
    if (!yaml_parser_initialize(&r->parser))
        die("out of memory");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->source->text + from, r->source->length - from);
    struct node *root = read_stream(r);
    yaml_parser_delete(&r->parser);
    tdestroy(r->anchors, keep_anchor);
    return r->stopped ? NULL : root;
}

struct node *yaml_document(const struct source *source)
{
    struct reader r = { .source = source };
    struct node *root = parse(&r, 0);
    bool nothing = !root || node_is_nothing(root);
    if (nothing && !r.stopped)
        return node_new((struct where){ source, source->lines_before + 1, 1 }, NODE_MAPPING);
    return root;
}

struct node *yaml_value(const struct source *source, size_t from)
{
    struct reader r = { .source = source, .is_value = true };
    for (size_t i = 0; i < from; i++)
        r.col_offset += ((unsigned char)source->text[i] & 0xc0) != 0x80;
    struct node *root = parse(&r, from);
    if (!root && !r.stopped)
        return node_new((struct where){ source, 1, r.col_offset + 1 }, NODE_SCALAR);
    return root;
}

static const struct source *source_of(const char *path, const char *text, size_t length)
{
    size_t mark = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    struct source *source = arena_alloc(1, sizeof(*source));
    *source = (struct source){ path, text + mark, length - mark, 0 };
    return source;
}

const struct source *source_read(const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    return text ? source_of(path, text, length) : NULL;
}

const struct source *source_given(const char *path)
{
    size_t length;
    bool is_input = !strcmp(path, "-");
    const char *text = is_input ? read_standard_input(&length) : read_file(path, &length);
    if (!text && is_input)
        usage_error("cannot read standard input:");
    if (!text)
        usage_error("cannot open %s: %s", path, path_error(path));
    return source_of(is_input ? STANDARD_INPUT : path, text, length);
}

struct node *yaml_read(const char *path)
{
    return yaml_document(source_given(path));
}
