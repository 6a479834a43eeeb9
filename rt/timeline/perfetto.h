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

/* The number of the name of a slice, a text that stays as it is, and where. */
uint32_t perfetto_constant(const char *name);

struct perfetto_value {
    enum perfetto_argument argument;
    bool is_text;                                       /* perfetto_text */
    uint64_t number;
};

/* A slice or an event without duration, with at most 6 arguments. An arrow leads from each one with the number of a flow to
 * the next one with it, in the order of time. */
struct perfetto_event {
    uint32_t track, name;
    uint64_t t_ps;
    uint32_t source;                                    /* perfetto_source; 0: none */
    uint32_t value_count, flow_count;
    bool flows_end;                                     /* it is the last one of its flows */
    const struct perfetto_value *values;
    const uint64_t *flows;                              /* 0 among them: none */
};

enum perfetto_type { PERFETTO_BEGIN = 1, PERFETTO_END, PERFETTO_INSTANT, PERFETTO_COUNTER };

/* Writes the begin of a slice, in which others may lie, or an event without duration. */
void perfetto_write(enum perfetto_type type, const struct perfetto_event *event);

/* Ends the innermost slice of a track. */
void perfetto_end(uint32_t track, uint64_t t_ps);

/* A slice without nested slices. */
void perfetto_slice(const struct perfetto_event *event, uint64_t end_ps);

/* Slices with the same name, source and arguments: the bytes that they begin with. */
struct perfetto_slices {
    uint8_t bytes[64], count;
};

/* Prepares slices like `event`, which has no flows and at most 4 arguments; at most one of their numbers is 2^32 or more. Its track
 * and time are not used. */
void perfetto_slices_make(struct perfetto_slices *slices, const struct perfetto_event *event);

/* The bytes with which the events of a track end, before their time, and how many, in the last byte. */
uint64_t perfetto_tail(uint32_t track);

/* Writes one of these slices on the track that the tail is of. `more` is one more argument of the slice; NULL: it has none. */
void perfetto_slice_of(const struct perfetto_slices *slices, const struct perfetto_value *more, uint64_t tail, uint64_t t_ps,
                       uint64_t end_ps);

/* The value of a counter from a time on. */
void perfetto_count(uint32_t counter, uint64_t t_ps, int64_t value);

#endif
