/* waves.c: changes are written to a temporary file, since the file begins with the list of all signals that change. */
#include "waves.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "launch/watchdog.h"
#include "machine/emitted.h"
#include "machine/engine.h"
#include "machine/pe.h"
#include "machine/peers.h"
#include "report/summary.h"
#include "signals.h"
#include "sink.h"
#include "window.h"

/* A signal as the file names it. */
struct wave {
    uint32_t order;                                     /* of its scope among all: the rank of its first node */
    const char *scope, *name;                           /* "sip0.cube0.pe3", "pe_gemm_busy" */
    uint32_t bits;
    int64_t first, before;                              /* its value at time 0, at the start of the window */
};

/* Credits of a ring, by the PE that receives. */
struct credits {
    struct credits *next;
    uint32_t destination, signal;
};

struct pe_waves {
    bool hidden;
    uint32_t busy[ENGINES], depth[STAGES];              /* signals + 1; 0: not made yet */
    struct credits *credits;
};

static struct {
    struct sink sink;
    FILE *changes;
    struct signals signals;
    struct ARRAY(struct wave) waves;                    /* by number of the signal */
    struct pe_waves *pes;
    uint32_t *links;                                    /* signals + 1 */
    uint64_t written_ps;                                /* the time of the last change in the file */
    bool begun;                                         /* there is one */
    uint32_t credit_signal;                             /* + 1: of the credit that goes back next; 0: none does */
} waves;

/* ---- signals */

static void add(uint32_t *signal, struct wave wave)
{
    wave.before = wave.first;
    *signal = signals_add(&waves.signals) + 1;
    *array_add(&waves.waves) = wave;
}

static void change(uint32_t signal, uint64_t t_ps, int64_t delta)
{
    signals_change(&waves.signals, signal - 1, t_ps, delta);
}

/* Bits of the numbers up to `most`. */
static uint32_t bits_of(uint64_t most)
{
    return most ? 64 - (uint32_t)__builtin_clzll(most) : 1;
}

/* A text as a name: letters, digits and underscores. */
static char *identifier(const char *text)
{
    char *name = arena_text(text, strlen(text));
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *c))
            *c = '_';
    return name;
}

static struct wave pe_wave(const struct pe *pe, const char *name, uint32_t bits)
{
    return (struct wave){.order = pe->rank, .scope = arena_printf("%s", pe_name(pe)), .name = name, .bits = bits};
}

static struct pe_waves *pe_waves(const struct pe *pe)
{
    return &waves.pes[pe_number(pe)];
}

static void busy_changes(const struct token *token, int delta)
{
    const uint64_t servers[ENGINES] = {
#define ENGINE(name, word, servers) servers,
#include "kb/engines.def"
#undef ENGINE
    };
    const struct pe *pe = token->command->pe;
    enum engine engine = engine_of(token->stage->kind);
    uint32_t *signal = &pe_waves(pe)->busy[engine];
    if (!*signal)
        add(signal, pe_wave(pe, arena_printf("%s_busy", identifier(engine_names[engine])), bits_of(servers[engine])));
    change(*signal, now_ps, delta);
}

static void depth_changes(const struct token *token, int delta)
{
    static const char *const names[STAGES] = {
#define STAGE(name, part, engine, busy) #name "_queue",
#include "kb/stages.def"
#undef STAGE
    };
    const struct pe *pe = token->command->pe;
    uint32_t *signal = &pe_waves(pe)->depth[token->stage->kind];
    if (!*signal)
        add(signal, pe_wave(pe, names[token->stage->kind], 32));
    change(*signal, now_ps, delta);
}

static uint32_t credits_of(const struct pe *source, uint32_t destination)
{
    struct credits **link = &pe_waves(source)->credits;
    while (*link && (*link)->destination != destination)
        link = &(*link)->next;
    if (!*link) {
        *link = arena_alloc(1, sizeof **link);
        (*link)->destination = destination;
        const char *name = arena_printf("credits_to_%s", pe_name(&kb_pe[destination]));
        struct wave wave = pe_wave(source, identifier(name), bits_of(kb_attrs.pe_ipcq_slots));
        wave.first = (int64_t)kb_attrs.pe_ipcq_slots;
        add(&(*link)->signal, wave);
    }
    return (*link)->signal;
}

/* The name of a node without its SIP and cube. */
static const char *short_name(struct place place)
{
    const char *name = place_name(place), *cube = place.cube == OUTSIDE ? NULL : strstr(name, ".cube");
    return arena_printf("%s", cube ? strchr(cube + 1, '.') + 1 : name);
}

static void link_make(uint32_t *signal, uint64_t link)
{
    struct link_ends ends = link_ends(link);
    struct place from = ends.from, first = from;
    bool inside = from.cube != OUTSIDE && place_cube(from) == place_cube(ends.to), outside = from.cube == OUTSIDE;
    bool in_system = outside && from.node < SYSTEM_NODES;
    first.node = outside ? (in_system ? NODE_host : NODE_pcie_ep) : 0;
    const char *scope = in_system ? "links" : outside ? arena_printf("sip%u.links", from.sip)
                        : arena_printf("sip%u.cube%u.links", from.sip, from.cube);
    const char *name = short_name(from);
    name = arena_printf("%s_to_%s", name, inside ? short_name(ends.to) : place_name(ends.to));
    add(signal, (struct wave){.order = place_rank(first), .scope = scope, .name = identifier(name), .bits = 1});
}

/* ---- moments */

static void tile_queued(const struct token *token)
{
    if (!pe_waves(token->command->pe)->hidden)
        depth_changes(token, 1);
}

static void service_starts(const struct token *token)
{
    const struct command *command = token->command;
    if (pe_waves(command->pe)->hidden)
        return;
    depth_changes(token, -1);
    busy_changes(token, 1);
    struct pe_list peers = token->stage->kind == STAGE_COMM ? peers_of(&command->ask) : (struct pe_list){0};
    for (uint32_t i = 0; i < peers.count; i++)
        change(credits_of(command->pe, peers.pe[i]), now_ps, -1);
}

static void service_ends(const struct token *token)
{
    if (!pe_waves(token->command->pe)->hidden)
        busy_changes(token, -1);
}

/* The credit of a message goes back in the control message that the receiver sends next. */
static void message_received(const struct command *receive, const struct sender *sender)
{
    waves.credit_signal = pe_waves(sender->pe)->hidden ? 0 : credits_of(sender->pe, pe_number(receive->pe));
}

static void control_sent(const struct message *message, uint64_t leave_ps, uint64_t delivered_ps)
{
    (void)message, (void)leave_ps;
    if (waves.credit_signal)
        change(waves.credit_signal, delivered_ps, 1);
    waves.credit_signal = 0;
}

static void reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    (void)bytes, (void)asked_ps;
    if (kind != RESOURCE_LINK || start_ps == end_ps)
        return;
    if (!waves.links[number])
        link_make(&waves.links[number], number);
    change(waves.links[number], start_ps, 1);
    change(waves.links[number], end_ps, -1);
}

static void instant_ends(void)
{
    unsigned before = phase_enter(PHASE_trace);
    signals_instant_ends(&waves.signals);
    phase_leave(before);
}

/* ---- the file */

enum { VALUE_ROOM = 96, CODE_DIGITS = 94, CODE_FIRST = '!' };

/* The code of a signal in the file: printable characters. */
static const char *code_of(uint32_t number)
{
    static char code[8];
    char *at = code;
    do
        *at++ = (char)(CODE_FIRST + number % CODE_DIGITS);
    while (number /= CODE_DIGITS);
    *at = '\0';
    return code;
}

/* A line that gives a signal a value, in one buffer. */
static const char *value_line(uint32_t number, int64_t value)
{
    static char line[VALUE_ROOM];
    char *at = line;
    if (waves.waves.at[number].bits > 1)
        *at++ = 'b';
    for (uint32_t bit = bits_of((uint64_t)value); bit--;)
        *at++ = (char)('0' + ((uint64_t)value >> bit & 1));
    if (waves.waves.at[number].bits > 1)
        *at++ = ' ';
    sprintf(at, "%s\n", code_of(number));
    return line;
}

static void told(uint32_t number, uint64_t t_ps, int64_t value)
{
    struct wave *wave = &waves.waves.at[number];
    value += wave->first;
    if (t_ps < window.from_ps || (t_ps == 0 && !waves.begun))
        wave->before = value;
    if (t_ps < window.from_ps || t_ps > window.to_ps)
        return;
    if (!waves.begun || waves.written_ps != t_ps)
        fprintf(waves.changes, "#%" PRIu64 "\n", t_ps);
    waves.begun = true;
    waves.written_ps = t_ps;
    fputs(value_line(number, value), waves.changes);
}

static void put(const char *text)
{
    sink_write(&waves.sink, text, strlen(text));
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct wave *left = &waves.waves.at[x], *right = &waves.waves.at[y];
    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The parts of `scope` that `other` begins with as well, in bytes with their dots. */
static size_t common_scope(const char *scope, const char *other)
{
    size_t common = 0;
    for (size_t i = 0; scope[i] && scope[i] == other[i]; i++)
        if (scope[i] == '.' || (!scope[i + 1] && (!other[i + 1] || other[i + 1] == '.')))
            common = i + 1;
    return common;
}

/* Leaves a scope for another one. */
static void scope_change(const char *from, const char *to)
{
    size_t kept = common_scope(from, to);
    for (const char *c = from + kept; *c; c += strcspn(c, ".") + (c[strcspn(c, ".")] == '.'))
        put("$upscope $end\n");
    for (const char *c = to + kept; *c; c += strcspn(c, ".") + (c[strcspn(c, ".")] == '.'))
        put(arena_printf("$scope module %.*s $end\n", (int)strcspn(c, "."), c));
}

static void header_write(void)
{
    uint32_t count = (uint32_t)waves.waves.count, *order = arena_alloc(count + 1, sizeof *order);
    const char *scope = "";
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort(order, count, sizeof *order, compare);
    put("$version kbgen $end\n$timescale 1 ps $end\n");
    put(arena_printf("$scope module %s $end\n", identifier(kb_machine_name)));
    for (uint32_t i = 0; i < count; i++) {
        const struct wave *wave = &waves.waves.at[order[i]];
        scope_change(scope, wave->scope);
        scope = wave->scope;
        put(arena_printf("$var wire %" PRIu32 " %s %s $end\n", wave->bits, code_of(order[i]), wave->name));
    }
    scope_change(scope, "");
    put("$upscope $end\n$enddefinitions $end\n");
    put(arena_printf("#%" PRIu64 "\n$dumpvars\n", window.from_ps));
    for (uint32_t i = 0; i < count; i++)
        put(value_line(i, waves.waves.at[i].before));
    put("$end\n");
}

void waves_open(const char *path)
{
    waves.sink = sink_open(path);
    waves.changes = tmpfile();
    if (!waves.changes)
        die("cannot make a temporary file for %s:", path);
    waves.pes = arena_alloc(pe_count(), sizeof *waves.pes);
    waves.links = arena_alloc(link_count(), sizeof *waves.links);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        waves.pes[pe].hidden = !window_has_pe(pe);
    waves.signals.tell = told;
    observer_watch(&waves_observer, true);
}

static void changes_copy(void)
{
    char part[1 << 14];
    rewind(waves.changes);
    for (size_t bytes; (bytes = fread(part, 1, sizeof part, waves.changes)); sink_empty(&waves.sink))
        sink_write(&waves.sink, part, bytes);
    if (ferror(waves.changes) || fclose(waves.changes))
        die("cannot read the temporary file of --waves:");
}

void waves_close(uint64_t end_ps)
{
    if (!waves_observer.watches)
        return;
    observer_watch(&waves_observer, false);
    signals_finish(&waves.signals);
    if (fflush(waves.changes) || ferror(waves.changes))
        die("cannot write the temporary file of --waves:");
    header_write();
    changes_copy();
    uint64_t last_ps = end_ps < window.to_ps ? end_ps : window.to_ps;
    if (waves.begun ? waves.written_ps < last_ps : window.from_ps < last_ps)
        put(arena_printf("#%" PRIu64 "\n", last_ps));
    if (watchdog_ended())
        put(arena_printf("$comment interrupted by %s $end\n", watchdog_ended()));
    sink_close(&waves.sink);
}

struct observer waves_observer = {
    .name = "waves",
    .needs_every_event = true,
    .instant_ends = instant_ends,
    .message_received = message_received,
    .tile_queued = tile_queued,
    .service_starts = service_starts,
    .service_ends = service_ends,
    .control_sent = control_sent,
    .reserved = reserved,
};
