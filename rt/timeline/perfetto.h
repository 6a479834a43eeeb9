/* perfetto.h: writes a trace in the protobuf format of Perfetto: tracks, slices, flows and counters.
 *
 * Times of the format are whole ns. One unit of it is 1 ps here; the caller says so in the name of the trace's root.
 * Tracks, names and texts have numbers, which the functions below give out; 0 is none. Of one track, slices are written
 * in the order of time, and inner ones between the begin and the end of the outer one. */
#ifndef KB_PERFETTO_H
#define KB_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perfetto_argument {
#define ARGUMENT(name) ARGUMENT_##name,
#include "perfetto.def"
#undef ARGUMENT
    ARGUMENTS
};

void perfetto_open(const char *path);
void perfetto_close(void);

/* Writes to the file what is in memory, if that is worth while. To be called now and then, not on the stack of a kernel. */
void perfetto_empty(void);

/* A track below another one, 0: below none; siblings are shown in the order of their ranks. */
uint32_t perfetto_track(uint32_t parent, const char *name, uint32_t rank);

/* The same for a counter, of bytes or of things. */
uint32_t perfetto_counter(uint32_t parent, const char *name, uint32_t rank, bool bytes);

/* The number of a slice's name, of a text as an argument, of a place in a source file. Equal texts have one number. */
uint32_t perfetto_name(const char *name);
uint32_t perfetto_text(const char *text);
uint32_t perfetto_source(const char *file, uint32_t line);

/* Begins a slice, or writes an event without duration. Arguments, source and flows that follow belong to it. */
void perfetto_begin(uint32_t track, uint32_t name, uint64_t t_ps);
void perfetto_instant(uint32_t track, uint32_t name, uint64_t t_ps);

void perfetto_number(enum perfetto_argument argument, uint64_t number);
void perfetto_word(enum perfetto_argument argument, uint32_t text);
void perfetto_at(uint32_t source);

/* An arrow leads from each slice with the number of a flow to the next one with it, in the order of time. The last one
 * `ends` it. */
void perfetto_flow(uint64_t flow, bool ends);

/* Ends the innermost slice of a track. */
void perfetto_end(uint32_t track, uint64_t t_ps);

/* A slice without nested slices, with at most 6 arguments. */
struct perfetto_value {
    enum perfetto_argument argument;
    bool is_text;                                       /* perfetto_text */
    uint64_t number;
};

void perfetto_slice(uint32_t track, uint32_t name, uint64_t begin_ps, uint64_t end_ps, const struct perfetto_value *values,
                    size_t count);

/* The value of a counter from a time on, which is not before that of the last call for any counter. */
void perfetto_count(uint32_t counter, uint64_t t_ps, int64_t value);

#endif
