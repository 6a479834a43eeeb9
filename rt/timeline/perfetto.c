/* perfetto.c: messages of Perfetto's trace format, by the field numbers of its published definitions.
 *
 * A trace is a list of packets, of one sequence. Strings are interned: each is written once, in a packet before the first
 * event that refers to its number.
 *
 * An event is built at its place in the buffer of the file. Nearly all lengths are below 128 and take one byte; an event
 * that is longer, for its many flows, is moved.
 *
 * The order of fields is one that compresses well: the compressor looks for four bytes where it last met them. The track and
 * the time, which differ most from those of the event before, stand together. The flags of a begin follow its time: otherwise
 * the same bytes would follow the time of a begin and that of an end, whose next events differ. The first argument stands
 * before the name: mostly that is the number of a command beside whose it is, and the pair is found again. */
#include "perfetto.h"

#include <endian.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/hash.h"
#include "sink.h"

/* ---- field numbers */

enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_INTERNED = 12, PACKET_FLAGS = 13,
       PACKET_TRACK = 60 };
enum { SEQUENCE = 1 };
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };        /* of PACKET_FLAGS: it is the first; it refers to strings */
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8, TRACK_CHILD_ORDERING = 11, TRACK_RANK = 12 };
enum { ORDERING_EXPLICIT = 3 };
enum { COUNTER_UNIT = 3, UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11, EVENT_COUNTER_VALUE = 30,
       EVENT_SOURCE = 34, EVENT_FLOW = 47, EVENT_LAST_FLOW = 48 };
enum { ANNOTATION_NAME = 1, ANNOTATION_UINT = 3, ANNOTATION_STRING = 17 };
enum { INTERNED_EVENT_NAMES = 2, INTERNED_ANNOTATION_NAMES = 3, INTERNED_SOURCES = 4, INTERNED_STRINGS = 29 };
enum { STRING_NUMBER = 1, STRING_TEXT = 2, SOURCE_FILE = 2, SOURCE_LINE = 4 };

enum wire { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES };

#define RARE __attribute__((cold, noinline))            /* not for each event */

/* ---- messages, built in a buffer */

struct builder ARRAY(uint8_t);

enum { VARINT_MOST = 10, SMALL_FIELD = 32 };            /* bytes of a number; of a field that is one, or two in a message,
                                                           with what is written behind */

static RARE uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* The same without a branch for each byte. Writes up to 8 bytes behind the number. */
static __attribute__((noinline)) uint8_t *put_long_varint(uint8_t *at, uint64_t value)
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

static inline uint8_t *put_varint_fast(uint8_t *at, uint64_t value)
{
    if (value >= 0x4000)
        return put_long_varint(at, value);
    at[0] = (uint8_t)value;
    if (value < 0x80)
        return at + 1;
    at[0] |= 0x80;
    at[1] = (uint8_t)(value >> 7);
    return at + 2;
}

static RARE uint8_t *put_number(uint8_t *at, unsigned field, uint64_t value)
{
    return put_varint(put_varint(at, field << 3 | WIRE_VARINT), value);
}

/* Room for one more small field. */
static RARE uint8_t *room(struct builder *to)
{
    array_reserve(to, to->count + SMALL_FIELD);
    return to->at + to->count;
}

static RARE void add_number(struct builder *to, unsigned field, uint64_t value)
{
    to->count = (size_t)(put_number(room(to), field, value) - to->at);
}

static RARE void add_bytes(struct builder *to, unsigned field, const void *bytes, size_t count)
{
    to->count = (size_t)(put_varint(put_varint(room(to), field << 3 | WIRE_BYTES), count) - to->at);
    array_reserve(to, to->count + count);
    memcpy(to->at + to->count, bytes, count);
    to->count += count;
}

static RARE void add_message(struct builder *to, unsigned field, const struct builder *message)
{
    add_bytes(to, field, message->at, message->count);
}

/* Bytes of the character at s in UTF-8; 0 if there is none. */
static RARE size_t utf8_bytes(const unsigned char *s)
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
static RARE void add_text(struct builder *to, unsigned field, const char *text)
{
    static struct builder clean;
    const unsigned char *s = (const unsigned char *)text;
    while (*s && *s < 0x80)
        s++;
    clean.count = (size_t)((const char *)s - text);
    if (!*s) {
        add_bytes(to, field, text, clean.count);
        return;
    }
    array_reserve(&clean, clean.count + 1);
    memcpy(clean.at, text, clean.count);
    while (*s) {
        size_t bytes = utf8_bytes(s);
        array_reserve(&clean, clean.count + 4);
        memcpy(clean.at + clean.count, bytes ? s : (const unsigned char *)"?", bytes ? bytes : 1);
        clean.count += bytes ? bytes : 1;
        s += bytes ? bytes : 1;
    }
    add_bytes(to, field, clean.count ? (const void *)clean.at : "", clean.count);
}

/* ---- packets */

static struct {
    struct sink sink;
    uint32_t tracks;                                    /* given out */
} writer;

static struct builder packet, part, inner;

static RARE void packet_write(const struct builder *body)
{
    uint8_t head[2 * VARINT_MOST], *end = put_varint(put_varint(head, TRACE_PACKET << 3 | WIRE_BYTES), body->count);
    sink_write(&writer.sink, head, (size_t)(end - head));
    sink_write(&writer.sink, body->at, body->count);
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

static RARE struct interned *row_of(enum intern_kind kind, const char *text, uint32_t line, uint64_t hash)
{
    size_t mask = ((size_t)1 << strings.bits) - 1, at = hash_bits(hash, strings.bits);
    for (;; at = (at + 1) & mask) {
        struct interned *row = &strings.rows[at];
        if (!row->text || (row->hash == hash && row->kind == kind && row->line == line && !strcmp(row->text, text)))
            return row;
    }
}

static RARE void strings_grow(void)
{
    struct interned *old = strings.rows;
    size_t rows = old ? (size_t)1 << strings.bits : 0;
    strings.bits = old ? strings.bits + 1 : 10;
    strings.rows = arena_alloc((size_t)1 << strings.bits, sizeof *strings.rows);
    for (size_t i = 0; i < rows; i++)
        if (old[i].text)
            *row_of(old[i].kind, old[i].text, old[i].line, old[i].hash) = old[i];
}

static RARE void interned_write(unsigned field, uint32_t number, const char *text, uint32_t line)
{
    bool is_source = field == INTERNED_SOURCES;
    inner.count = part.count = packet.count = 0;
    add_number(&inner, STRING_NUMBER, number);
    add_text(&inner, is_source ? SOURCE_FILE : STRING_TEXT, text);
    if (is_source)
        add_number(&inner, SOURCE_LINE, line);
    add_message(&part, field, &inner);
    add_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    add_number(&packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
    add_message(&packet, PACKET_INTERNED, &part);
    packet_write(&packet);
}

static RARE uint32_t intern(enum intern_kind kind, const char *text, uint32_t line)
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

RARE uint32_t perfetto_name(const char *name)
{
    return intern(INTERN_NAME, name, 0);
}

RARE uint32_t perfetto_text(const char *text)
{
    return intern(INTERN_TEXT, text, 0);
}

/* The number of a text that stays where it is. Most calls are for one of the few lines and names that a kernel is at. */
static __attribute__((noinline)) uint32_t number_of(enum intern_kind kind, const char *text, uint32_t line)
{
    enum { KNOWN_BITS = 8 };
    static struct {
        const char *text;
        uint32_t line, number;
        enum intern_kind kind;
    } all[1 << KNOWN_BITS], *known;
    known = &all[hash_bits((uintptr_t)text + line, KNOWN_BITS)];
    if (known->text == text && known->line == line && known->kind == kind)
        return known->number;
    known->number = intern(kind, text, line);
    known->text = text;
    known->line = line;
    known->kind = kind;
    return known->number;
}

uint32_t perfetto_source(const char *file, uint32_t line)
{
    return file ? number_of(INTERN_SOURCE, file, line) : 0;
}

uint32_t perfetto_constant(const char *name)
{
    return number_of(INTERN_NAME, name, 0);
}

/* ---- tracks */

static RARE uint32_t track_write(uint32_t parent, const char *name, uint32_t rank, const struct builder *counter)
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
    add_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    packet_write(&packet);
    return writer.tracks;
}

RARE uint32_t perfetto_track(uint32_t parent, const char *name, uint32_t rank)
{
    return track_write(parent, name, rank, NULL);
}

RARE uint32_t perfetto_counter(uint32_t parent, const char *name, uint32_t rank, bool bytes)
{
    inner.count = 0;
    add_number(&inner, COUNTER_UNIT, bytes ? UNIT_BYTES : UNIT_COUNT);
    return track_write(parent, name, rank, &inner);
}

/* ---- events */

enum { EVENT_MOST = 512, FLOW_BYTES = 10 };             /* bytes of a slice without its flows; of a flow */

_Static_assert(ARGUMENTS < 0x7f, "the number of an argument takes one byte");

/* An event begins with these bytes. The writer fills in LENGTH and, unless the event is an end, its type. */
enum { LENGTH = 0, LENGTH_END = 128 };                  /* lengths below it take one byte */
static const uint8_t head[] = {TRACE_PACKET << 3 | WIRE_BYTES, LENGTH, PACKET_SEQUENCE << 3, SEQUENCE,
                               PACKET_EVENT << 3 | WIRE_BYTES, LENGTH, EVENT_TYPE << 3, PERFETTO_END};
enum { PACKET_START = 2, EVENT_START = 6, EVENT_TYPE_AT = 7, FIELDS_START = 8 };

enum { COUNT_SHIFT = 56 };                              /* of a number of bytes that is above them in a word */

/* Writes the time of an event. Times that are near each other differ in its first two bytes; a table keeps the others. */
static inline uint8_t *put_time(uint8_t *at, uint64_t t_ps)
{
    enum { KNOWN_BITS = 6, LOW_BITS = 14 };
    static struct {
        uint64_t high, bytes;                           /* with their number */
    } all[1 << KNOWN_BITS], *known;
    uint64_t high = t_ps >> LOW_BITS, low = (t_ps & 0x7f) | (t_ps << 1 & 0x7f00) | 0x8080;
    if (!high || high >> 42)
        return put_varint_fast(at, t_ps);
    known = &all[high & ((1 << KNOWN_BITS) - 1)];
    if (__builtin_expect(known->high != high, 0)) {
        uint8_t bytes[16] = {0};
        uint64_t count = (uint64_t)(put_long_varint(bytes, high) - bytes);
        memcpy(&known->bytes, bytes, sizeof known->bytes);
        known->bytes = le64toh(known->bytes) | count << COUNT_SHIFT;
        known->high = high;
    }
    uint64_t bytes = htole64(known->bytes << 16 | low);
    memcpy(at, &bytes, sizeof bytes);
    return at + 2 + (known->bytes >> COUNT_SHIFT);
}

static inline uint8_t *put_field(uint8_t *at, unsigned field, uint64_t value)
{
    *at = (uint8_t)(field << 3 | WIRE_VARINT);
    return put_varint_fast(at + 1, value);
}

/* A field whose number does not fit into one byte. */
static inline uint8_t *put_far_key(uint8_t *at, unsigned field, enum wire wire)
{
    at[0] = (uint8_t)(field << 3 | wire | 0x80);
    at[1] = (uint8_t)(field >> 4);
    return at + 2;
}

static inline uint8_t *put_value(uint8_t *at, const struct perfetto_value *value)
{
    at[0] = EVENT_ANNOTATION << 3 | WIRE_BYTES;
    at[2] = ANNOTATION_NAME << 3 | WIRE_VARINT;
    at[3] = (uint8_t)(value->argument + 1);
    at[4] = ANNOTATION_UINT << 3 | WIRE_VARINT;
    uint8_t *end = value->is_text ? put_far_key(at + 4, ANNOTATION_STRING, WIRE_VARINT) : at + 5;
    end = put_varint_fast(end, value->number);
    at[1] = (uint8_t)(end - at - 2);
    return end;
}

/* Makes room for lengths that take more than one byte, of an event up to track_end and of its packet up to `end`. Returns
 * the new end. */
static RARE uint8_t *event_lengthen(uint8_t *start, const uint8_t *track_end, const uint8_t *end)
{
    uint8_t length[VARINT_MOST], made[3 * VARINT_MOST];
    size_t event_bytes = (size_t)(track_end - start - EVENT_START), rest = (size_t)(end - start - EVENT_START);
    size_t length_bytes = (size_t)(put_varint(length, event_bytes) - length), kept = EVENT_START - 1 - PACKET_START;
    uint8_t *at = put_varint(made + 1, kept + length_bytes + rest);
    made[0] = start[0];
    memcpy(at, start + PACKET_START, kept);
    memcpy(at + kept, length, length_bytes);
    size_t made_bytes = (size_t)(at + kept + length_bytes - made);
    memmove(start + made_bytes, start + EVENT_START, rest);
    memcpy(start, made, made_bytes);
    return start + made_bytes + rest;
}

/* The begin of an event up to its track, without lengths. */
static inline uint8_t *put_common(uint8_t *start, uint8_t type, const struct perfetto_event *event)
{
    memcpy(start, head, sizeof head);
    start[EVENT_TYPE_AT] = type;
    uint8_t *at = event->value_count ? put_value(start + FIELDS_START, event->values) : start + FIELDS_START;
    at = put_field(at, EVENT_NAME, event->name);
    for (uint32_t i = 1; i < event->value_count; i++)
        at = put_value(at, &event->values[i]);
    if (event->source)
        at = put_varint_fast(put_far_key(at, EVENT_SOURCE, WIRE_VARINT), event->source);
    return at;
}

/* Ends the packet of an event. */
static inline uint8_t *packet_ends(uint8_t *start, uint8_t *at)
{
    start[PACKET_START - 1] = (uint8_t)(at - start - PACKET_START);
    return at;
}

/* The same of one that refers to strings. */
static inline uint8_t *packet_ends_flagged(uint8_t *start, uint8_t *at)
{
    at[0] = PACKET_FLAGS << 3 | WIRE_VARINT;
    at[1] = FLAG_NEEDS_STATE;
    return packet_ends(start, at + 2);
}

static uint8_t *put_event(uint8_t *start, uint8_t type, const struct perfetto_event *event)
{
    uint8_t *at = put_common(start, type, event);
    for (uint32_t i = 0; i < event->flow_count; i++) {
        uint64_t flow = htole64(event->flows[i]);
        if (!flow)
            continue;
        at = put_far_key(at, event->flows_end ? EVENT_LAST_FLOW : EVENT_FLOW, WIRE_FIXED64);
        memcpy(at, &flow, sizeof flow);
        at += sizeof flow;
    }
    uint8_t *track_end = put_field(at, EVENT_TRACK, event->track);
    *track_end = PACKET_TIMESTAMP << 3 | WIRE_VARINT;
    start[EVENT_START - 1] = (uint8_t)(track_end - start - EVENT_START);
    at = packet_ends_flagged(start, put_time(track_end + 1, event->t_ps));
    return at - start - PACKET_START < LENGTH_END ? at : event_lengthen(start, track_end, at);
}

static inline uint8_t *put_short(uint8_t *start, uint8_t *at, uint32_t track, uint64_t t_ps)
{
    at = put_field(at, EVENT_TRACK, track);
    start[EVENT_START - 1] = (uint8_t)(at - start - EVENT_START);
    return packet_ends(start, put_field(at, PACKET_TIMESTAMP, t_ps));
}

static inline uint8_t *put_end(uint8_t *start, uint32_t track, uint64_t t_ps)
{
    memcpy(start, head, sizeof head);
    return put_short(start, start + FIELDS_START, track, t_ps);
}

static uint8_t *events_room(uint32_t flows)
{
    return sink_room(&writer.sink, EVENT_MOST + flows * FLOW_BYTES);
}

static void events_written(const uint8_t *end)
{
    writer.sink.count = (size_t)(end - writer.sink.bytes);
}

void perfetto_write(enum perfetto_type type, const struct perfetto_event *event)
{
    events_written(put_event(events_room(event->flow_count), (uint8_t)type, event));
}

void perfetto_end(uint32_t track, uint64_t t_ps)
{
    events_written(put_end(events_room(0), track, t_ps));
}

void perfetto_slice(const struct perfetto_event *event, uint64_t end_ps)
{
    uint8_t *at = put_event(events_room(event->flow_count), PERFETTO_BEGIN, event);
    events_written(put_end(at, event->track, end_ps));
}

/* ---- slices of the same name and arguments */

void perfetto_slices_make(struct perfetto_slices *slices, const struct perfetto_event *event)
{
    uint8_t bytes[EVENT_MOST];
    slices->count = (uint8_t)(put_common(bytes, PERFETTO_BEGIN, event) - bytes);
    memcpy(slices->bytes, bytes, sizeof slices->bytes);
}

/* The keys of the track and of the time, which an event has next to each other, with the track between them. */
RARE uint64_t perfetto_tail(uint32_t track)
{
    uint8_t bytes[16] = {0};
    uint8_t *end = put_varint(put_number(bytes, EVENT_TRACK, track), PACKET_TIMESTAMP << 3 | WIRE_VARINT);
    uint64_t tail;
    memcpy(&tail, bytes, sizeof tail);
    return le64toh(tail) | (uint64_t)(end - bytes) << COUNT_SHIFT;
}

/* Ends an event with them, and with the time. */
static inline uint8_t *put_tail(uint8_t *start, uint8_t *at, uint64_t tail, uint64_t t_ps)
{
    uint64_t bytes = htole64(tail);
    memcpy(at, &bytes, sizeof bytes);
    at += tail >> COUNT_SHIFT;
    start[EVENT_START - 1] = (uint8_t)(at - 1 - start - EVENT_START);
    return put_time(at, t_ps);
}

void perfetto_slice_of(const struct perfetto_slices *slices, const struct perfetto_value *more, uint64_t tail, uint64_t t_ps,
                       uint64_t end_ps)
{
    uint8_t *start = events_room(0), *at = start + slices->count;
    memcpy(start, slices->bytes, sizeof slices->bytes);
    if (more)
        at = put_value(at, more);
    start = packet_ends_flagged(start, put_tail(start, at, tail, t_ps));
    memcpy(start, head, sizeof head);
    events_written(packet_ends(start, put_tail(start, start + FIELDS_START, tail, end_ps)));
}

RARE void perfetto_count(uint32_t counter, uint64_t t_ps, int64_t value)
{
    uint8_t *start = events_room(0);
    memcpy(start, head, sizeof head);
    start[EVENT_TYPE_AT] = PERFETTO_COUNTER;
    uint8_t *at = put_far_key(start + FIELDS_START, EVENT_COUNTER_VALUE, WIRE_VARINT);
    events_written(put_short(start, put_varint_fast(at, (uint64_t)value), counter, t_ps));
}

/* ---- the file */

RARE void perfetto_open(const char *path)
{
    static const char *const arguments[ARGUMENTS] = {
#define ARGUMENT(name) #name,
#include "perfetto.def"
#undef ARGUMENT
    };
    writer.sink = sink_open(path);
    packet.count = 0;
    add_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    add_number(&packet, PACKET_FLAGS, FLAG_CLEARED);
    packet_write(&packet);
    for (uint32_t i = 0; i < ARGUMENTS; i++)
        interned_write(INTERNED_ANNOTATION_NAMES, i + 1, arguments[i], 0);
}

void perfetto_empty(void)
{
    sink_empty(&writer.sink);
}

RARE void perfetto_close(void)
{
    sink_close(&writer.sink);
}
