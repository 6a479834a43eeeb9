/* perfetto.c: messages of Perfetto's trace format, by the field numbers of its published definitions.
 *
 * A trace is a list of packets, each of one of two sequences. Slices are of the first one, which interns its strings: each
 * is written once, in a packet before the first event that refers to its number. Values of counters are of the second one.
 * They come in the order of time, so its clock is incremental: a packet has the time since the one before.
 *
 * An event is built at its place in the buffer of the file, and completed when the next one begins: its track and its time,
 * which differ most from those of the event before, stand together at the end, since that compresses best. Nearly all
 * lengths are below 128 and take one byte; an event that is longer, for its many flows, is moved. */
#include "perfetto.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/hash.h"
#include "sink.h"

/* ---- field numbers */

enum { TRACE_PACKET = 1 };
enum { PACKET_CLOCKS = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_INTERNED = 12,
       PACKET_FLAGS = 13, PACKET_DEFAULTS = 59, PACKET_TRACK = 60 };
enum { CLOCKS_CLOCK = 1, CLOCK_NUMBER = 1, CLOCK_TIMESTAMP = 2, CLOCK_IS_INCREMENTAL = 3, DEFAULTS_CLOCK = 58 };
enum { TRACE_CLOCK = 6, INCREMENTAL_CLOCK = 64 };       /* that of packets without another one; the first of a sequence's own */
enum { SLICES = 1, COUNTERS };                          /* the sequences */
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };        /* of PACKET_FLAGS: it is the first; it refers to strings */
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8, TRACK_CHILD_ORDERING = 11, TRACK_RANK = 12 };
enum { ORDERING_EXPLICIT = 3 };
enum { COUNTER_UNIT = 3, UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11, EVENT_COUNTER_VALUE = 30,
       EVENT_SOURCE = 34, EVENT_FLOW = 47, EVENT_LAST_FLOW = 48 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { ANNOTATION_NAME = 1, ANNOTATION_UINT = 3, ANNOTATION_STRING = 17 };
enum { INTERNED_EVENT_NAMES = 2, INTERNED_ANNOTATION_NAMES = 3, INTERNED_SOURCES = 4, INTERNED_STRINGS = 29 };
enum { STRING_NUMBER = 1, STRING_TEXT = 2, SOURCE_FILE = 2, SOURCE_LINE = 4 };

enum wire { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES };

/* ---- messages, built in a buffer */

struct builder ARRAY(uint8_t);

enum { VARINT_MOST = 10, SMALL_FIELD = 32 };            /* bytes of a number; of a field that is one, or two in a message,
                                                           with what is written behind */

static inline __attribute__((always_inline)) uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* The same without a branch for each byte, for times, which take many. Writes up to 8 bytes behind the number. */
static inline __attribute__((always_inline)) uint8_t *put_varint_fast(uint8_t *at, uint64_t value)
{
    if (value >> 56)
        return put_varint(at, value);
    unsigned bytes = ((63 - (unsigned)__builtin_clzll(value | 1)) * 9 + 73) / 64;
    uint64_t spread = (value & 0x0fffffff) | (value & UINT64_C(0xfffffff0000000)) << 4;     /* 2 x 28 bits, 4 x 14, 8 x 7 */
    spread = (spread & UINT64_C(0x00003fff00003fff)) | (spread & UINT64_C(0x0fffc0000fffc000)) << 2;
    spread = (spread & UINT64_C(0x007f007f007f007f)) | (spread & UINT64_C(0x3f803f803f803f80)) << 1;
    spread |= UINT64_C(0x80808080808080) & ((UINT64_C(1) << 8 * (bytes - 1)) - 1);
    spread = htole64(spread);
    memcpy(at, &spread, sizeof spread);
    return at + bytes;
}

static inline __attribute__((always_inline)) uint8_t *put_number(uint8_t *at, unsigned field, uint64_t value)
{
    return put_varint(put_varint(at, field << 3 | WIRE_VARINT), value);
}

static inline __attribute__((always_inline)) uint8_t *put_timestamp(uint8_t *at, uint64_t t_ps)
{
    *at++ = PACKET_TIMESTAMP << 3 | WIRE_VARINT;
    return put_varint_fast(at, t_ps);
}

static uint8_t *put_fixed(uint8_t *at, unsigned field, uint64_t value)
{
    at = put_varint(at, field << 3 | WIRE_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

/* Room for one more small field. */
static uint8_t *room(struct builder *to)
{
    array_reserve(to, to->count + SMALL_FIELD);
    return to->at + to->count;
}

static void add_number(struct builder *to, unsigned field, uint64_t value)
{
    to->count = (size_t)(put_number(room(to), field, value) - to->at);
}

static void add_bytes(struct builder *to, unsigned field, const void *bytes, size_t count)
{
    to->count = (size_t)(put_varint(put_varint(room(to), field << 3 | WIRE_BYTES), count) - to->at);
    array_reserve(to, to->count + count);
    memcpy(to->at + to->count, bytes, count);
    to->count += count;
}

static void add_message(struct builder *to, unsigned field, const struct builder *message)
{
    add_bytes(to, field, message->at, message->count);
}

/* Bytes of the character at s in UTF-8; 0 if there is none. */
static size_t utf8_bytes(const unsigned char *s)
{
    size_t bytes = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < bytes; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool no_character = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
    return overlong || no_character ? 0 : bytes;
}

/* A string of a message is UTF-8: other bytes become '?'. */
static void add_text(struct builder *to, unsigned field, const char *text)
{
    static struct builder clean;
    clean.count = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t bytes = utf8_bytes(s);
        array_reserve(&clean, clean.count + 4);
        memcpy(clean.at + clean.count, bytes ? s : (const unsigned char *)"?", bytes ? bytes : 1);
        clean.count += bytes ? bytes : 1;
        s += bytes ? bytes : 1;
    }
    add_bytes(to, field, clean.count ? (const void *)clean.at : "", clean.count);
}

/* ---- packets */

enum { EVENT_MOST = 512 };                              /* bytes of an event without its flows */

static struct {
    struct sink sink;
    uint32_t tracks;                                    /* given out */
    size_t count;                                       /* bytes of the event under construction; 0: there is none */
    uint32_t track;                                     /* of it */
    uint64_t t_ps;
    uint64_t counted_ps;                                /* the time of the last value of a counter */
} writer;

static struct builder packet, part, inner;

/* Where the event under construction goes on, with room for a field. */
static uint8_t *event_room(size_t added)
{
    return sink_room(&writer.sink, writer.count, added) + writer.count;
}

static void event_grown(const uint8_t *end)
{
    writer.count = (size_t)(end - writer.sink.bytes) - writer.sink.count;
}

/* Events begin with these bytes, of which LENGTH and the type of one with strings are filled in. */
enum { LENGTH = 0, LENGTH_END = 128 };                  /* lengths below it take one byte */
#define HEAD(sequence) TRACE_PACKET << 3 | WIRE_BYTES, LENGTH, PACKET_SEQUENCE << 3, sequence
#define STATE_HEAD(sequence) HEAD(sequence), PACKET_FLAGS << 3, FLAG_NEEDS_STATE
#define EVENT_HEAD PACKET_EVENT << 3 | WIRE_BYTES, LENGTH, EVENT_TYPE << 3
static const uint8_t head[] = {STATE_HEAD(SLICES), EVENT_HEAD}, end_head[] = {HEAD(SLICES), EVENT_HEAD, TYPE_END},
                     count_head[] = {STATE_HEAD(COUNTERS), EVENT_HEAD, TYPE_COUNTER};
enum { PACKET_START = 2, EVENT_START = sizeof head - 1, END_START = sizeof end_head - 2, COUNT_START = sizeof count_head - 2 };

/* Completes an event whose lengths take more than one byte; its time has time_bytes. */
static __attribute__((cold, noinline)) void event_end_long(uint8_t *start, size_t event_bytes, size_t time_bytes)
{
    uint8_t length[VARINT_MOST], made[2 * SMALL_FIELD];
    size_t length_bytes = (size_t)(put_varint(length, event_bytes) - length);
    size_t kept = EVENT_START - 1 - PACKET_START;       /* of head, between the two lengths */
    uint8_t *at = put_varint(made + 1, kept + length_bytes + event_bytes + time_bytes);
    made[0] = head[0];
    memcpy(at, head + PACKET_START, kept);
    memcpy(at + kept, length, length_bytes);
    size_t made_bytes = (size_t)(at + kept + length_bytes - made);
    memmove(start + made_bytes, start + EVENT_START, event_bytes + time_bytes);
    memcpy(start, made, made_bytes);
    writer.sink.count += made_bytes + event_bytes + time_bytes;
}

/* Completes an event whose bytes are those from `start` to `at`. Returns its end. */
static inline uint8_t *event_completed(uint8_t *start, uint8_t *at, size_t event_start, uint32_t track, uint64_t t_ps)
{
    at = put_number(at, EVENT_TRACK, track);
    start[event_start - 1] = (uint8_t)(at - start - (ptrdiff_t)event_start);
    at = put_timestamp(at, t_ps);
    start[PACKET_START - 1] = (uint8_t)(at - start - PACKET_START);
    return at;
}

static void event_end(void)
{
    if (!writer.count)
        return;
    uint8_t *at = event_room(2 * SMALL_FIELD), *start = at - writer.count;
    uint8_t *end = event_completed(start, at, EVENT_START, writer.track, writer.t_ps);
    writer.count = 0;
    if (end - start < LENGTH_END) {
        writer.sink.count += (size_t)(end - start);
        return;
    }
    at = put_number(at, EVENT_TRACK, writer.track);
    event_end_long(start, (size_t)(at - start) - EVENT_START, (size_t)(end - at));
}

static inline uint8_t *put_begin(uint8_t *start, uint8_t type, uint32_t name)
{
    memcpy(start, head, sizeof head);
    start[sizeof head] = type;
    return put_number(start + sizeof head + 1, EVENT_NAME, name);
}

static inline uint8_t *put_end(uint8_t *start, uint32_t track, uint64_t t_ps)
{
    memcpy(start, end_head, sizeof end_head);
    return event_completed(start, start + sizeof end_head, END_START, track, t_ps);
}

static inline uint8_t *put_argument(uint8_t *at, enum perfetto_argument argument, unsigned field, uint64_t value)
{
    at = put_varint(at, EVENT_ANNOTATION << 3 | WIRE_BYTES);
    uint8_t *length = at++;                             /* below 128 */
    at = put_number(put_number(at, ANNOTATION_NAME, argument + 1u), field, value);
    *length = (uint8_t)(at - length - 1);
    return at;
}

/* Begins an event that ends when the next one begins. */
static inline void event_begin(uint8_t type, uint32_t track, uint64_t t_ps, uint32_t name)
{
    event_end();
    writer.track = track;
    writer.t_ps = t_ps;
    event_grown(put_begin(event_room(EVENT_MOST), type, name));
}

/* Where events are written of which all is known, with room for EVENT_MOST bytes. */
static inline uint8_t *events_room(void)
{
    event_end();
    return event_room(EVENT_MOST);
}

static inline void events_written(const uint8_t *end)
{
    writer.sink.count = (size_t)(end - writer.sink.bytes);
}

/* Writes another packet, before the event under construction. */
static void packet_write(const struct builder *body)
{
    uint8_t head[2 * VARINT_MOST], *end = put_varint(put_varint(head, TRACE_PACKET << 3 | WIRE_BYTES), body->count);
    size_t head_bytes = (size_t)(end - head), bytes = head_bytes + body->count;
    uint8_t *start = event_room(bytes + EVENT_MOST) - writer.count;
    memmove(start + bytes, start, writer.count);
    memcpy(start, head, head_bytes);
    memcpy(start + head_bytes, body->at, body->count);
    writer.sink.count += bytes;
}

/* ---- interned strings */

enum intern_kind { INTERN_NAME, INTERN_TEXT, INTERN_SOURCE, INTERN_KINDS };

struct interned {
    uint64_t hash;
    const char *text;                                   /* NULL: the row is empty */
    uint32_t line;                                      /* of a source */
    uint32_t number;
    uint8_t kind;
};

static struct {
    struct interned *rows;                              /* a hash table with open addressing, half empty at least */
    unsigned bits;
    size_t count;
    uint32_t given[INTERN_KINDS];                       /* numbers given out */
} strings;

static struct interned *row_of(enum intern_kind kind, const char *text, uint32_t line, uint64_t hash)
{
    size_t mask = ((size_t)1 << strings.bits) - 1, at = hash_bits(hash, strings.bits);
    for (;; at = (at + 1) & mask) {
        struct interned *row = &strings.rows[at];
        if (!row->text || (row->hash == hash && row->kind == kind && row->line == line && !strcmp(row->text, text)))
            return row;
    }
}

static void strings_grow(void)
{
    struct interned *old = strings.rows;
    size_t rows = old ? (size_t)1 << strings.bits : 0;
    strings.bits = old ? strings.bits + 1 : 10;
    strings.rows = arena_alloc((size_t)1 << strings.bits, sizeof *strings.rows);
    for (size_t i = 0; i < rows; i++)
        if (old[i].text)
            *row_of(old[i].kind, old[i].text, old[i].line, old[i].hash) = old[i];
}

static void interned_write(unsigned field, uint32_t number, const char *text, uint32_t line)
{
    bool is_source = field == INTERNED_SOURCES;
    inner.count = part.count = packet.count = 0;
    add_number(&inner, STRING_NUMBER, number);
    add_text(&inner, is_source ? SOURCE_FILE : STRING_TEXT, text);
    if (is_source)
        add_number(&inner, SOURCE_LINE, line);
    add_message(&part, field, &inner);
    add_number(&packet, PACKET_SEQUENCE, SLICES);
    add_number(&packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
    add_message(&packet, PACKET_INTERNED, &part);
    packet_write(&packet);
}

static uint32_t intern(enum intern_kind kind, const char *text, uint32_t line)
{
    static const unsigned fields[INTERN_KINDS] = {INTERNED_EVENT_NAMES, INTERNED_STRINGS, INTERNED_SOURCES};
    uint64_t hash = hash_bytes(line ^ (uint64_t)kind << 32, text, strlen(text));
    if (!strings.rows || strings.count * 2 >= (size_t)1 << strings.bits)
        strings_grow();
    struct interned *row = row_of(kind, text, line, hash);
    if (row->text)
        return row->number;
    *row = (struct interned){hash, arena_text(text, strlen(text)), line, ++strings.given[kind], kind};
    strings.count++;
    interned_write(fields[kind], row->number, row->text, line);
    return row->number;
}

uint32_t perfetto_name(const char *name)
{
    return intern(INTERN_NAME, name, 0);
}

uint32_t perfetto_text(const char *text)
{
    return intern(INTERN_TEXT, text, 0);
}

/* Most calls are for one of the few lines that a kernel is at. */
uint32_t perfetto_source(const char *file, uint32_t line)
{
    enum { LINE_BITS = 8 };
    static struct {
        const char *file;
        uint32_t line, number;
    } lines[1 << LINE_BITS], *known;
    known = &lines[hash_bits((uintptr_t)file + line, LINE_BITS)];
    if (!file || (known->file == file && known->line == line))
        return file ? known->number : 0;
    known->file = file;
    known->line = line;
    return known->number = intern(INTERN_SOURCE, file, line);
}

/* ---- tracks */

static uint32_t track_write(uint32_t parent, const char *name, uint32_t rank, const struct builder *counter)
{
    part.count = packet.count = 0;
    add_number(&part, TRACK_UUID, ++writer.tracks);
    if (parent)
        add_number(&part, TRACK_PARENT, parent);
    add_text(&part, TRACK_NAME, name);
    add_number(&part, TRACK_RANK, rank);
    add_number(&part, TRACK_CHILD_ORDERING, ORDERING_EXPLICIT);
    if (counter)
        add_message(&part, TRACK_COUNTER, counter);
    add_message(&packet, PACKET_TRACK, &part);
    add_number(&packet, PACKET_SEQUENCE, SLICES);
    packet_write(&packet);
    return writer.tracks;
}

uint32_t perfetto_track(uint32_t parent, const char *name, uint32_t rank)
{
    return track_write(parent, name, rank, NULL);
}

uint32_t perfetto_counter(uint32_t parent, const char *name, uint32_t rank, bool bytes)
{
    inner.count = 0;
    add_number(&inner, COUNTER_UNIT, bytes ? UNIT_BYTES : UNIT_COUNT);
    return track_write(parent, name, rank, &inner);
}

/* ---- events */

void perfetto_begin(uint32_t track, uint32_t name, uint64_t t_ps)
{
    event_begin(TYPE_BEGIN, track, t_ps, name);
}

void perfetto_instant(uint32_t track, uint32_t name, uint64_t t_ps)
{
    event_begin(TYPE_INSTANT, track, t_ps, name);
}

void perfetto_end(uint32_t track, uint64_t t_ps)
{
    events_written(put_end(events_room(), track, t_ps));
}

void perfetto_slice(uint32_t track, uint32_t name, uint64_t begin_ps, uint64_t end_ps, const struct perfetto_value *values,
                    size_t count)
{
    uint8_t *start = events_room(), *at = put_begin(start, TYPE_BEGIN, name);
    for (const struct perfetto_value *value = values; value < values + count; value++)
        at = put_argument(at, value->argument, value->is_text ? ANNOTATION_STRING : ANNOTATION_UINT, value->number);
    at = event_completed(start, at, EVENT_START, track, begin_ps);
    assert(at - start < LENGTH_END);
    events_written(put_end(at, track, end_ps));
}

static inline void add_argument(enum perfetto_argument argument, unsigned field, uint64_t value)
{
    assert(writer.count);                               /* there is an event that it belongs to */
    event_grown(put_argument(writer.sink.bytes + writer.sink.count + writer.count, argument, field, value));
}

void perfetto_number(enum perfetto_argument argument, uint64_t number)
{
    add_argument(argument, ANNOTATION_UINT, number);
}

void perfetto_word(enum perfetto_argument argument, uint32_t text)
{
    add_argument(argument, ANNOTATION_STRING, text);
}

void perfetto_at(uint32_t source)
{
    if (source)
        event_grown(put_number(event_room(SMALL_FIELD), EVENT_SOURCE, source));
}

void perfetto_flow(uint64_t flow, bool ends)
{
    if (flow)
        event_grown(put_fixed(event_room(SMALL_FIELD), ends ? EVENT_LAST_FLOW : EVENT_FLOW, flow));
}

void perfetto_count(uint32_t counter, uint64_t t_ps, int64_t value)
{
    assert(t_ps >= writer.counted_ps);
    uint8_t *start = events_room();
    memcpy(start, count_head, sizeof count_head);
    uint8_t *at = put_number(start + sizeof count_head, EVENT_COUNTER_VALUE, (uint64_t)value);
    events_written(event_completed(start, at, COUNT_START, counter, t_ps - writer.counted_ps));
    writer.counted_ps = t_ps;
}

/* ---- the file */

/* The first packet of a sequence. */
static void sequence_begin(uint32_t sequence)
{
    packet.count = 0;
    add_number(&packet, PACKET_SEQUENCE, sequence);
    add_number(&packet, PACKET_FLAGS, FLAG_CLEARED);
}

static void add_clock(struct builder *clocks, uint32_t number, bool is_incremental)
{
    inner.count = 0;
    add_number(&inner, CLOCK_NUMBER, number);
    add_number(&inner, CLOCK_TIMESTAMP, 0);
    if (is_incremental)
        add_number(&inner, CLOCK_IS_INCREMENTAL, true);
    add_message(clocks, CLOCKS_CLOCK, &inner);
}

/* Says that both clocks begin at 0, and that packets of the sequence have the times of its own one. */
static void add_incremental_clock(void)
{
    part.count = 0;
    add_clock(&part, TRACE_CLOCK, false);
    add_clock(&part, INCREMENTAL_CLOCK, true);
    add_message(&packet, PACKET_CLOCKS, &part);
    part.count = 0;
    add_number(&part, DEFAULTS_CLOCK, INCREMENTAL_CLOCK);
    add_message(&packet, PACKET_DEFAULTS, &part);
}

void perfetto_open(const char *path)
{
    static const char *const arguments[ARGUMENTS] = {
#define ARGUMENT(name) #name,
#include "perfetto.def"
#undef ARGUMENT
    };
    writer.sink = sink_open(path);
    sequence_begin(SLICES);
    packet_write(&packet);
    sequence_begin(COUNTERS);
    add_incremental_clock();
    packet_write(&packet);
    for (uint32_t i = 0; i < ARGUMENTS; i++)
        interned_write(INTERNED_ANNOTATION_NAMES, i + 1, arguments[i], 0);
}

void perfetto_empty(void)
{
    event_end();
    sink_empty(&writer.sink);
}

void perfetto_close(void)
{
    event_end();
    sink_close(&writer.sink);
}
