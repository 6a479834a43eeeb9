/* json.h: a writer of JSON, indented by one space per level. Keys are NULL inside arrays. It writes a text, or visits the
 * numbers of what would be written. */
#ifndef KB_JSON_H
#define KB_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_LEVELS = 16, JSON_PATH_BYTES = 512 };

/* Gets each whole number with its path, "launches.0.pes.3.dma_ps", which is valid during the call. */
struct json_numbers {
    void (*number)(void *user, const char *path, uint64_t value);
    void *user;
    char path[JSON_PATH_BYTES];
    struct {
        size_t length;                                  /* of the path to an object or array */
        uint64_t index;                                 /* of the next element of an array */
    } level[JSON_LEVELS];
};

struct json {
    FILE *out;                                          /* NULL: `numbers` are visited */
    struct json_numbers *numbers;
    int depth;
    bool first;
    bool one_line;                                      /* set it after json_open */
};

/* A text in JSON's quotes, in the arena. */
const char *json_quoted(const char *text);

void json_open(struct json *json, FILE *out);
void json_visit(struct json *json, struct json_numbers *numbers);            /* instead of json_open */
void json_close(struct json *json);                     /* a newline; the caller closes the file */
void json_object(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value);     /* NULL: null */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_u64_array(struct json *json, const char *key, const uint64_t *values, size_t count);
void json_double(struct json *json, const char *key, double value);          /* shortest that reads back the same */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
