/* json_copy.c: a recursive-descent parser of JSON (RFC 8259) that writes what it reads. */
#include "json_copy.h"

#include <string.h>

enum { DEPTH_MOST = 64, PATH_MOST = 256 };

struct copy {
    const char *at, *end;
    FILE *out;                                          /* NULL: what is read is left out */
    size_t (*keeps)(const char *path);
    void (*sees)(const char *path, const char *value, size_t length);
    char path[PATH_MOST];                               /* keys of the objects around, joined by dots */
    unsigned depth;
    const char *wrong;
};

const char *json_skip_space(const char *text, const char *end)
{
    while (text < end && memchr(" \t\r\n", *text, 4))
        text++;
    return text;
}

static bool fails(struct copy *copy, const char *why)
{
    copy->wrong = why;
    return false;
}

static void put(struct copy *copy, char c)
{
    if (copy->out)
        fputc(c, copy->out);
}

/* Takes a character behind white space. Returns false if another one is there. */
static bool takes(struct copy *copy, char c)
{
    copy->at = json_skip_space(copy->at, copy->end);
    if (copy->at == copy->end || *copy->at != c)
        return false;
    copy->at++;
    put(copy, c);
    return true;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind a backslash. */
static bool copy_escape(struct copy *copy)
{
    char c = copy->at < copy->end ? *copy->at : '\0';
    if (!c || !strchr("\"\\/bfnrtu", c))
        return fails(copy, "an unknown escape in a text");
    put(copy, '\\');
    put(copy, c);
    copy->at++;
    for (int i = 0; c == 'u' && i < 4; i++, copy->at++) {
        if (copy->at == copy->end || !is_hex(*copy->at))
            return fails(copy, "\\u without four hexadecimal digits");
        put(copy, *copy->at);
    }
    return true;
}

static bool copy_text(struct copy *copy)
{
    if (!takes(copy, '"'))
        return fails(copy, "a text in quotes is missing");
    while (copy->at < copy->end && *copy->at != '"') {
        unsigned char c = (unsigned char)*copy->at++;
        if (c < 0x20)
            return fails(copy, "a control character in a text");
        if (c == '\\') {
            if (!copy_escape(copy))
                return false;
        } else if (c == '<' && copy->out) {
            fputs("\\u003c", copy->out);
        } else {
            put(copy, (char)c);
        }
    }
    return takes(copy, '"') || fails(copy, "a text without a closing quote");
}

static bool copy_digits(struct copy *copy)
{
    const char *first = copy->at;
    while (copy->at < copy->end && *copy->at >= '0' && *copy->at <= '9')
        put(copy, *copy->at++);
    return copy->at > first || fails(copy, "a number without digits");
}

static bool takes_one_of(struct copy *copy, const char *set)
{
    if (copy->at == copy->end || !*copy->at || !strchr(set, *copy->at))
        return false;
    put(copy, *copy->at++);
    return true;
}

static bool copy_number(struct copy *copy)
{
    takes_one_of(copy, "-");
    bool is_zero = takes_one_of(copy, "0");
    if (!is_zero && !copy_digits(copy))
        return false;
    if (takes_one_of(copy, ".") && !copy_digits(copy))
        return false;
    if (takes_one_of(copy, "eE")) {
        takes_one_of(copy, "+-");
        return copy_digits(copy);
    }
    return true;
}

static bool copy_word(struct copy *copy)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(copy->end - copy->at) >= length && !memcmp(copy->at, words[i], length)) {
            copy->at += length;
            if (copy->out)
                fputs(words[i], copy->out);
            return true;
        }
    }
    return fails(copy, "a value is missing");
}

static bool copy_value(struct copy *copy);

/* Appends the key that begins at copy->at to the path. Nobody leaves out members whose keys have escapes. */
static void path_enter(struct copy *copy)
{
    const char *key = json_skip_space(copy->at, copy->end) + 1;
    size_t used = strlen(copy->path), length = 0;
    while (key + length < copy->end && key[length] != '"')
        length++;
    if (used + length + 2 < sizeof copy->path)
        sprintf(copy->path + used, "%s%.*s", used ? "." : "", (int)length, key);
}

static bool copy_key_and_value(struct copy *copy)
{
    if (!copy_text(copy) || !(takes(copy, ':') || fails(copy, "a colon is missing")))
        return false;
    const char *value = json_skip_space(copy->at, copy->end);
    bool good = copy_value(copy);
    if (good && copy->sees)
        copy->sees(copy->path, value, (size_t)(copy->at - value));
    return good;
}

/* A member; `first`: nothing was written before it in its object. */
static bool copy_member(struct copy *copy, bool *first)
{
    size_t outside = strlen(copy->path);
    FILE *out = copy->out;
    path_enter(copy);
    if (!copy->keeps(copy->path))
        copy->out = NULL;
    if (copy->out && !*first)
        put(copy, ',');
    *first &= !copy->out;
    bool good = copy_key_and_value(copy);
    copy->out = out;
    copy->path[outside] = '\0';
    return good;
}

/* Moves behind a comma that separates two values, and does not write it. */
static bool takes_comma(struct copy *copy)
{
    FILE *out = copy->out;
    copy->out = NULL;
    bool takes_it = takes(copy, ',');
    copy->out = out;
    return takes_it;
}

static bool copy_object(struct copy *copy)
{
    bool first = true;
    takes(copy, '{');
    if (takes(copy, '}'))
        return true;
    do {
        if (!copy_member(copy, &first))
            return false;
    } while (takes_comma(copy));
    return takes(copy, '}') || fails(copy, "a comma or } is missing");
}

static bool copy_array(struct copy *copy)
{
    takes(copy, '[');
    if (takes(copy, ']'))
        return true;
    FILE *out = copy->out;
    size_t most = out ? copy->keeps(copy->path) : 0, count = 0;
    do {
        if (count == most)
            copy->out = NULL;
        else if (count)
            put(copy, ',');
        if (!copy_value(copy))
            return false;
        count += count < most;
    } while (takes_comma(copy));
    copy->out = out;
    return takes(copy, ']') || fails(copy, "a comma or ] is missing");
}

static bool copy_any(struct copy *copy)
{
    copy->at = json_skip_space(copy->at, copy->end);
    if (copy->at == copy->end)
        return fails(copy, "the text ends in a value");
    switch (*copy->at) {
    case '{': return copy_object(copy);
    case '[': return copy_array(copy);
    case '"': return copy_text(copy);
    case '-':
    case '0' ... '9': return copy_number(copy);
    default: return copy_word(copy);
    }
}

static bool copy_value(struct copy *copy)
{
    if (copy->depth == DEPTH_MOST)
        return fails(copy, "values are nested too deeply");
    copy->depth++;
    bool good = copy_any(copy);
    copy->depth--;
    return good;
}

const char *json_copy(FILE *out, const char **text, const char *end, size_t (*keeps)(const char *path),
                      void (*sees)(const char *path, const char *value, size_t length))
{
    struct copy copy = {.at = *text, .end = end, .out = out, .keeps = keeps, .sees = sees};
    copy_value(&copy);
    *text = copy.at;
    return copy.wrong;
}
