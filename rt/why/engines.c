/* engines.c: the accounts of engines. When a service starts, the time since its server became idle is that of the chain of
 * causes behind the start. What is left when the kernel returns is that of the chain behind the return. */
#include "engines.h"

#include <inttypes.h>
#include <string.h>

#include "accounts.h"
#include "base/human.h"
#include "common/arena.h"
#include "common/array.h"
#include "launch/kernel.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "path.h"
#include "sums.h"

/* Servers of which a start takes the one that has been idle for longest: those of a stage, or the scheduler. */
enum { UNIT_SCHEDULER = STAGES, UNITS };

static const enum engine engine_of[UNITS] = {
#define STAGE(name, part, engine, busy) [STAGE_##name] = ENGINE_##engine,
#include "kb/stages.def"
#undef STAGE
    [UNIT_SCHEDULER] = ENGINE_SCHEDULER,
};

/* Start number n takes the server that end number n - servers left idle. Of a kernel, services that another one has left
 * behind count as its first starts. */
struct unit {
    uint64_t starts, ends;
};

static struct {
    struct unit (*units)[UNITS];                        /* by PE */
    uint64_t *idle_since_ps;                            /* by PE, unit and server */
    uint32_t *kernel;                                   /* by PE: its serial number; 0: none runs */
    uint32_t servers[UNITS], first[UNITS], servers_of_pe;
} state;

static struct ARRAY(struct engine_account) engine_accounts;

/* NULL: the engine has done nothing for the kernel. */
static const struct engine_account *engine_account_of(const struct account *account, enum engine engine)
{
    uint32_t number = account->engines[engine];
    return number ? &engine_accounts.at[number - 1] : NULL;
}

/* The account, which is new if there was none. */
static struct engine_account *account_for(struct account *account, unsigned unit)
{
    uint32_t *number = &account->engines[engine_of[unit]];
    if (!*number) {
        *array_add(&engine_accounts) = (struct engine_account){0};
        *number = (uint32_t)engine_accounts.count;
    }
    return &engine_accounts.at[*number - 1];
}

/* A pe_fetch_store with one port serves FETCH and STORE with one server. */
static unsigned unit_of(enum stage_kind stage)
{
    return state.servers[stage] ? stage : STAGE_FETCH;
}

static uint64_t *idle_since(uint32_t pe, unsigned unit, uint64_t number)
{
    return &state.idle_since_ps[(size_t)pe * state.servers_of_pe + state.first[unit] + number % state.servers[unit]];
}

static struct account *account_on(uint32_t pe)
{
    return state.kernel[pe] ? &accounts.at[state.kernel[pe] - 1] : NULL;
}

void engine_starts(const struct pe *pe, enum stage_kind stage, struct ref cause)
{
    uint32_t number = pe_number(pe);
    unsigned unit = unit_of(stage);
    const uint64_t *since_ps = idle_since(number, unit, state.units[number][unit].starts++);
    struct account *account = account_on(number);
    if (!account)
        return;
    struct engine_account *mine = account_for(account, unit);
    mine->busy_ps -= now_ps;
    if (*since_ps < now_ps)
        sums_add(cause, *since_ps, mine->idle_ps);
}

void engine_ends(const struct pe *pe, enum stage_kind stage)
{
    uint32_t number = pe_number(pe);
    unsigned unit = unit_of(stage);
    struct account *account = account_on(number);
    *idle_since(number, unit, state.units[number][unit].ends++) = now_ps;
    if (account)
        account_for(account, unit)->busy_ps += now_ps;
}

void engines_kernel_begins(struct account *account)
{
    uint32_t pe = pe_number(account->tl->pe);
    state.kernel[pe] = account->tl->serial;
    for (unsigned unit = 0; unit < UNITS; unit++) {
        struct unit *of = &state.units[pe][unit];
        *of = (struct unit){of->starts - of->ends, 0};
        for (uint32_t i = 0; i < state.servers[unit]; i++)
            *idle_since(pe, unit, i) = account->begin_ps;
        if (of->starts)
            account_for(account, unit)->busy_ps -= of->starts * account->begin_ps;
    }
}

void engines_kernel_ends(struct account *account, const struct ref *last)
{
    uint32_t pe = pe_number(account->tl->pe);
    for (unsigned unit = 0; unit < UNITS; unit++) {
        struct unit of = state.units[pe][unit];
        if (!account->engines[engine_of[unit]] || !state.servers[unit])
            continue;
        struct engine_account *mine = account_for(account, unit);
        mine->busy_ps += (of.starts - of.ends) * account->end_ps;
        for (uint64_t i = of.starts; i < of.ends + state.servers[unit]; i++)
            if (last)
                sums_add(*last, *idle_since(pe, unit, i), mine->idle_ps);
            else
                mine->idle_ps[REASON_wait] += account->end_ps - *idle_since(pe, unit, i);
    }
    state.kernel[pe] = 0;
}

void engines_begin(void)
{
    uint32_t pes = pe_count();
    engines_end();
    engine_accounts.count = 0;
    for (unsigned unit = 0; unit < UNITS; unit++) {
        state.servers[unit] = unit == STAGE_DMA_READ ? kb_attrs.pe_dma_rd_engines
                            : unit == STAGE_DMA_WRITE ? kb_attrs.pe_dma_wr_engines
                            : unit == STAGE_STORE ? kb_attrs.pe_fetch_store_ports - 1 : 1;
        state.first[unit] = state.servers_of_pe;
        state.servers_of_pe += state.servers[unit];
    }
    state.units = array_zeros(pes, sizeof *state.units);
    state.idle_since_ps = array_zeros((size_t)pes * state.servers_of_pe, sizeof *state.idle_since_ps);
    state.kernel = array_zeros(pes, sizeof *state.kernel);
}

void engines_end(void)
{
    array_freed(state.units);
    array_freed(state.idle_since_ps);
    array_freed(state.kernel);
    memset(&state, 0, sizeof state);
}

/* ---- what they add up to */

static const char *const engine_words[ENGINES] = {
#define ENGINE(name, word, servers) [ENGINE_##name] = word,
#include "kb/engines.def"
#undef ENGINE
};

static uint64_t servers_of(enum engine engine)
{
    const uint64_t counts[ENGINES] = {
#define ENGINE(name, word, servers) [ENGINE_##name] = servers,
#include "kb/engines.def"
#undef ENGINE
    };
    return counts[engine];
}

static uint64_t idle_of(const struct engine_account *of)
{
    uint64_t sum_ps = 0;
    for (unsigned reason = 0; reason < REASONS; reason++)
        sum_ps += of->idle_ps[reason];
    return sum_ps;
}

const char *engines_wrong(const struct account *account)
{
    for (enum engine engine = 0; engine < ENGINES; engine++) {
        const struct engine_account *of = engine_account_of(account, engine);
        uint64_t time_ps = servers_of(engine) * (account->end_ps - account->begin_ps);
        if (of && of->busy_ps + idle_of(of) != time_ps)
            return arena_printf("the account of %s of %s adds up to %" PRIu64 " ps, its kernel took %" PRIu64 " ps",
                                engine_words[engine], pe_name(account->tl->pe), of->busy_ps + idle_of(of), time_ps);
    }
    return NULL;
}

struct spread {
    uint64_t least_ps, most_ps, sum_ps;
};

/* Over the kernels that an engine has worked for. */
struct sums {
    uint64_t kernels, time_ps;
    struct spread busy, idle[REASONS];
    const struct account *worst;                        /* in which it was idle for longest; the first of several */
};

static void spread_add(struct spread *spread, uint64_t ps)
{
    spread->least_ps = ps < spread->least_ps ? ps : spread->least_ps;
    spread->most_ps = ps > spread->most_ps ? ps : spread->most_ps;
    spread->sum_ps += ps;
}

static struct sums sums_of(enum engine engine)
{
    struct sums sums = {.busy.least_ps = UINT64_MAX};
    uint64_t worst_ps = 0;
    for (unsigned reason = 0; reason < REASONS; reason++)
        sums.idle[reason].least_ps = UINT64_MAX;
    for (const struct account *account = accounts.at; account < accounts.at + accounts.count; account++) {
        const struct engine_account *of = account->tl ? engine_account_of(account, engine) : NULL;
        if (!of)
            continue;
        sums.kernels++;
        sums.time_ps += servers_of(engine) * (account->end_ps - account->begin_ps);
        spread_add(&sums.busy, of->busy_ps);
        for (unsigned reason = 0; reason < REASONS; reason++)
            spread_add(&sums.idle[reason], of->idle_ps[reason]);
        if (!sums.worst || idle_of(of) > worst_ps) {
            worst_ps = idle_of(of);
            sums.worst = account;
        }
    }
    return sums;
}

/* ---- as JSON and for people */

void engines_write_kernel(struct json *json, const struct account *account)
{
    json_array(json, "engines");
    for (enum engine engine = 0; engine < ENGINES; engine++) {
        const struct engine_account *of = engine_account_of(account, engine);
        if (!of)
            continue;
        json_object(json, NULL);
        json_string(json, "engine", engine_words[engine]);
        json_u64(json, "busy_ps", of->busy_ps);
        reasons_write(json, "idle", of->idle_ps);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_spread(struct json *json, const char *key, const struct spread *spread)
{
    json_object(json, key);
    json_u64(json, "least_ps", spread->least_ps);
    json_u64(json, "most_ps", spread->most_ps);
    json_object_end(json);
}

void engines_write(struct json *json)
{
    json_array(json, "engines");
    for (enum engine engine = 0; engine < ENGINES; engine++) {
        struct sums sums = sums_of(engine);
        if (!sums.kernels)
            continue;
        json_object(json, NULL);
        json_string(json, "engine", engine_words[engine]);
        json_u64(json, "servers", servers_of(engine));
        json_u64(json, "kernels", sums.kernels);
        json_u64(json, "time_ps", sums.time_ps);
        json_u64(json, "busy_ps", sums.busy.sum_ps);
        json_object(json, "idle");
        for (unsigned reason = 0; reason < REASONS; reason++)
            if (sums.idle[reason].sum_ps)
                json_u64(json, reason_names[reason], sums.idle[reason].sum_ps);
        json_object_end(json);
        write_spread(json, "busy_spread", &sums.busy);
        json_object(json, "idle_spread");
        for (unsigned reason = 0; reason < REASONS; reason++)
            if (sums.idle[reason].sum_ps)
                write_spread(json, reason_names[reason], &sums.idle[reason]);
        json_object_end(json);
        json_string(json, "worst", pe_name(sums.worst->tl->pe));
        json_object_end(json);
    }
    json_array_end(json);
}

/* The reason for which an engine was idle for longest, of those that come after one of `before_ps`, number `before`. */
static unsigned next_reason(const struct sums *sums, uint64_t before_ps, unsigned before)
{
    unsigned most = REASONS;
    for (unsigned reason = 0; reason < REASONS; reason++) {
        uint64_t ps = sums->idle[reason].sum_ps;
        if (ps && (ps < before_ps || (ps == before_ps && reason > before)) && (most == REASONS || ps > sums->idle[most].sum_ps))
            most = reason;
    }
    return most;
}

enum { PRINTED = 3 };

static void print_idle(FILE *out, const struct sums *sums)
{
    uint64_t rest_ps = sums->time_ps - sums->busy.sum_ps, before_ps = UINT64_MAX;
    for (unsigned i = 0, reason = 0; i < PRINTED && rest_ps; i++) {
        reason = next_reason(sums, before_ps, reason);
        before_ps = sums->idle[reason].sum_ps;
        rest_ps -= before_ps;
        fprintf(out, "%s %.1f %% %s", i ? "," : "; idle:", 100 * (double)before_ps / (double)sums->time_ps, reason_names[reason]);
    }
    if (rest_ps)
        fprintf(out, ", %.1f %% others", 100 * (double)rest_ps / (double)sums->time_ps);
}

void engines_print(FILE *out)
{
    bool any = false;
    for (enum engine engine = 0; engine < ENGINES; engine++) {
        struct sums sums = sums_of(engine);
        if (!sums.time_ps)
            continue;
        if (!any)
            fprintf(out, "engines      of the kernels that they work for: busy, from the least to the most of one, and idle because of what\n");
        any = true;
        fprintf(out, "    %-14s  %5.1f %%  %9s to %9s", engine_words[engine], 100 * (double)sums.busy.sum_ps / (double)sums.time_ps,
                human_time(sums.busy.least_ps), human_time(sums.busy.most_ps));
        print_idle(out, &sums);
        fprintf(out, "; worst %s\n", pe_name(sums.worst->tl->pe));
    }
}
