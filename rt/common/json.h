/* json.h: a writer of JSON, indented by one space per level. Keys are NULL inside arrays. */
#ifndef KB_JSON_H
#define KB_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool first;
    bool one_line;                                      /* set it after json_open */
};

/* A text in JSON's quotes, in the arena. */
const char *json_quoted(const char *text);

void json_open(struct json *json, FILE *out);
void json_close(struct json *json);                     /* a newline; the caller closes the file */
void json_object(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value);     /* NULL: null */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_double(struct json *json, const char *key, double value);          /* shortest that reads back the same */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
