/* command_record.c: the keys that all records of a firmware log have. */
#include "command_record.h"

#include <gmp.h>
#include <inttypes.h>
#include <string.h>

#include "base/tables.h"
#include "common/arena.h"
#include "common/read.h"
#include "machine/emitted.h"
#include "machine/pe.h"

enum { TIME_BITS_MOST = 76 };

enum time_kind { TIME_STARTS, TIME_ENDS, TIME_TAKES, NO_TIME };

static const char *const prefixes[] = {[TIME_STARTS] = "t_", [TIME_ENDS] = "done_", [TIME_TAKES] = "took_"};
static const char cycles[] = "cycles";

/* Returns NO_TIME if a key is none of a time; *unit: what follows the prefix. */
static enum time_kind time_kind(const char *key, const char **unit)
{
    enum time_kind kind = TIME_STARTS;
    while (kind < NO_TIME && strncmp(key, prefixes[kind], strlen(prefixes[kind])))
        kind++;
    if (kind == NO_TIME)
        return NO_TIME;
    *unit = key + strlen(prefixes[kind]);
    const struct unit *known = unit_named(*unit);
    return !strcmp(*unit, cycles) || (known && known->dimension == DIMENSION_time) ? kind : NO_TIME;
}

const char *const command_record_keys[] = {"pe", "launch", "cmd", "id", "async", "do", "t_ns", "done_ns", "took_ns", NULL};

bool command_record_has(const char *key)
{
    const char *unit;
    for (const char *const *known = command_record_keys; *known; known++)
        if (!strcmp(key, *known))
            return true;
    return time_kind(key, &unit) != NO_TIME;
}

/* Rounds half up; returns false if the time is too large. */
static bool round_ps(mpq_t value, log_ps *out)
{
    mpz_t rounded;
    mpz_init(rounded);
    mpz_mul_2exp(rounded, mpq_numref(value), 1);
    mpz_add(rounded, rounded, mpq_denref(value));
    mpz_fdiv_q(rounded, rounded, mpq_denref(value));
    mpz_fdiv_q_2exp(rounded, rounded, 1);
    bool fits = mpz_sizeinbase(rounded, 2) <= TIME_BITS_MOST;
    uint64_t parts[2] = {0};
    if (fits)
        mpz_export(parts, NULL, -1, sizeof *parts, 0, 0, rounded);
    *out = (log_ps)((unsigned __int128)parts[1] << 64 | parts[0]);
    mpz_clear(rounded);
    return fits;
}

static bool read_time(const struct node *node, const char *key, const char *unit, uint64_t clock_khz, log_ps *out)
{
    bool is_cycles = !strcmp(unit, cycles);
    if (is_cycles && !clock_khz) {
        error_at(node->where, "%s counts cycles of a clock that is not given", key);
        note_at(node->where, "say which: --clock '1.2 GHz'");
        return false;
    }
    mpq_t value;
    mpq_init(value);
    const char *why = is_cycles ? node_number(node, DIMENSION_none, NULL, value)
                                : node_number(node, DIMENSION_time, unit_named(unit), value);
    if (!why && is_cycles) {                            /* 10^9 / kHz is ps per cycle */
        mpq_t ps_per_cycle;
        mpq_init(ps_per_cycle);
        mpq_set_ui(ps_per_cycle, 1000000000, clock_khz);
        mpq_canonicalize(ps_per_cycle);
        mpq_mul(value, value, ps_per_cycle);
        mpq_clear(ps_per_cycle);
    }
    bool good = !why && mpq_sgn(value) >= 0 && round_ps(value, out);
    mpq_clear(value);
    if (!good)
        error_expected(node, key, is_cycles ? "a number of cycles from 0 on" : "a time from 0 on, of less than 2^76 ps", why);
    return good;
}

static bool read_pe(const struct node *node, uint32_t *out)
{
    uint64_t number = 0;
    if (node->type == NODE_SCALAR && *node->text && !node->text[strspn(node->text, "0123456789")]) {
        struct node plain = *node;
        plain.plain = true;
        bool good = node_u64(&plain, "pe", 0, pe_count() - 1, &number);
        *out = (uint32_t)number;
        return good;
    }
    const char *id;
    if (!node_string(node, "pe", &id))
        return false;
    if (pe_numbered(id, out))
        return true;
    error_at(node->where, "there is no PE '%s'; ids are like sip0.cube0.pe0", id);
    return false;
}

/* A label may look like a number. */
static bool read_id(const struct node *node, const char **out)
{
    if (node->type != NODE_SCALAR || node_is_nothing(node)) {
        error_expected(node, "id", "a text", NULL);
        return false;
    }
    *out = node->text;
    return true;
}

static bool read_times(const struct node *fields, uint64_t clock_khz, struct command_record *out)
{
    bool *const has[] = {&out->has_start, &out->has_done, &out->has_took}, good = true;
    log_ps *const times[] = {&out->start_ps, &out->done_ps, &out->took_ps};
    const struct node *last = NULL;
    for (size_t i = 0; i < fields->count; i++) {
        const struct node *key = fields->entries[i].key, *value = fields->entries[i].value;
        const char *unit;
        enum time_kind kind = time_kind(key->text, &unit);
        if (kind == NO_TIME)
            continue;
        if (*has[kind] || (kind != TIME_STARTS && last)) {
            error_at(value->where, "the record has another time beside %s", key->text);
            return false;
        }
        *has[kind] = read_time(value, key->text, unit, clock_khz, times[kind]);
        good &= *has[kind];
        if (kind != TIME_STARTS)
            last = value;
    }
    if (!good)
        return false;
    if (out->has_start && out->has_done && out->done_ps < out->start_ps) {
        error_at(last->where, "the command ends before it begins");
        return false;
    }
    if (out->has_start && out->has_took)
        out->done_ps = out->start_ps + out->took_ps;
    else if (out->has_start && out->has_done)
        out->took_ps = out->done_ps - out->start_ps;
    if (out->has_start)
        out->has_done = out->has_took = out->has_done || out->has_took;
    return true;
}

bool command_record_read(const struct node *fields, uint64_t clock_khz, struct command_record *out)
{
    const struct node *pe = node_get(fields, "pe"), *launch = node_get(fields, "launch"), *number = node_get(fields, "cmd");
    const struct node *id = node_get(fields, "id"), *async = node_get(fields, "async"), *word = node_get(fields, "do");
    bool asynchronous = true;
    *out = (struct command_record){.fields = fields, .where = fields->where};
    bool good = read_times(fields, clock_khz, out);
    good &= !pe || (out->has_pe = read_pe(pe, &out->pe));
    good &= !launch || (out->has_launch = node_u64(launch, "launch", 0, UINT32_MAX, &out->launch));
    good &= !number || (out->has_number = node_u64(number, "cmd", 0, UINT32_MAX, &out->number));
    good &= !id || read_id(id, &out->id);
    good &= !async || node_bool(async, "async", &asynchronous);
    good &= !word || node_string(word, "do", &out->word);
    out->waited = !asynchronous;
    out->ends = out->word && !strcmp(out->word, "end");
    out->word_where = word ? word->where : fields->where;
    out->id_where = id ? id->where : fields->where;
    return good;
}

void command_order_add(struct command_order *pes, struct command_record *record)
{
    struct command_order *pe = &pes[record->pe];
    if (!pe->known)
        *pe = (struct command_order){.known = true, .has_launch = record->has_launch, .first = record->where};
    if (record->has_launch != pe->has_launch) {
        error_at(record->where, "the record has %s 'launch', but others of %s have %s", record->has_launch ? "a" : "no",
                 pe_name(&kb_pe[record->pe]), record->has_launch ? "none" : "one");
        note_at(pe->first, "such as this one");
    }
    pe->ps = record->has_start ? record->start_ps : pe->ps;
    pe->number = record->has_number ? record->number : pe->number;
    record->order_ps = pe->ps;
    record->order_number = pe->number;
}

int command_order_compare(const void *a, const void *b)
{
    const struct command_record *x = a, *y = b;
    BY(x->pe, y->pe);
    BY(x->launch, y->launch);
    BY(x->order_ps, y->order_ps);
    BY(x->ends, y->ends);
    BY(x->order_number, y->order_number);
    BY(x->where.line, y->where.line);
    return 0;
}
