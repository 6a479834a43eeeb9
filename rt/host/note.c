/* note.c: notes of benches and kernels, each once. */
#include "note.h"

#include <stdarg.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/diag.h"
#include "kb/host.h"

static struct ARRAY(const char *) notes;

/* The length of what a note is about: the text up to its first colon. */
static size_t subject_length(const char *note)
{
    return strcspn(note, ":");
}

static bool is_known(const char *note)
{
    size_t length = subject_length(note);
    for (size_t i = 0; i < notes.count; i++)
        if (subject_length(notes.at[i]) == length && !strncmp(notes.at[i], note, length))
            return true;
    return false;
}

void kb_note(const char *format, ...)
{
    char note[512];                                     /* a longer one is cut */
    va_list list;
    va_start(list, format);
    vsnprintf(note, sizeof note, format, list);
    va_end(list);
    if (!is_known(note))
        *array_add(&notes) = arena_printf("%s", note);
}

void notes_print(FILE *out)
{
    for (size_t i = 0; i < notes.count; i++)
        fprintf(out, "note         %s\n", printable(notes.at[i]));
}

void notes_write(struct json *json)
{
    if (!notes.count)
        return;
    json_array(json, "notes");
    for (size_t i = 0; i < notes.count; i++)
        json_string(json, NULL, notes.at[i]);
    json_array_end(json);
}

void notes_reset(void)
{
    array_free(&notes);
}
