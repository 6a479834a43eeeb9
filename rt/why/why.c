/* why.c: the critical path of a run: checked, summed by reason, resource and line, printed and written. */
#include "why.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "causes.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "common/hash.h"
#include "accounts.h"
#include "advice.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "picture.h"
#include "sites.h"

bool why_on;
const char *(*why_key_place)(const char *key);

static struct path path;
static struct advice advice;                            /* of it */

/* The path of a launch, from its submission to the host's last answer. */
struct launch_path {
    const struct launch *launch;
    uint64_t reason_ps[REASONS];
};

static struct ARRAY(struct launch_path) launch_paths;

void why_begin(const char *stream)
{
    if (!why_on)
        return;
    path_free(&path);
    launches_forget();
    sites_reset();
    sites_name_stream(stream);
    accounts_reset();
    engines_begin();
    causes_begin();
    observer_watch(&why_observer, true);
}

void why_mark_end(void)
{
    if (why_on)
        causes_mark_end();
}

/* ---- checks */

static const char *account_wrong(const struct account *account)
{
    uint64_t sum_ps = 0, total_ps = account->end_ps - account->begin_ps;
    for (unsigned reason = 0; reason < REASONS; reason++)
        sum_ps += account->reason_ps[reason];
    if (!account->tl)
        return NULL;
    if (sum_ps == total_ps)
        return engines_wrong(account);
    return arena_printf("the account of %s adds up to %" PRIu64 " ps, its kernel took %" PRIu64 " ps",
                        pe_name(account->tl->pe), sum_ps, total_ps);
}

static const char *launch_path_wrong(const struct launch_path *of)
{
    uint64_t sum_ps = 0, took_ps = of->launch->done_ps - of->launch->submitted_ps;
    for (unsigned reason = 0; reason < REASONS; reason++)
        sum_ps += of->reason_ps[reason];
    if (sum_ps == took_ps)
        return NULL;
    return arena_printf("the path of request %" PRIu64 " adds up to %" PRIu64 " ps, its launch took %" PRIu64 " ps",
                        of->launch->fanout.correlation, sum_ps, took_ps);
}

static const char *wrong(uint64_t end_ps, bool stopped)
{
    const char *why = path_wrong(&path);
    if (!why && !stopped && path.end_ps != end_ps)
        why = arena_printf("it ends at %" PRIu64 " ps, the run at %" PRIu64 " ps", path.end_ps, end_ps);
    for (size_t i = 0; i < accounts.count && !why; i++)
        why = account_wrong(&accounts.at[i]);
    for (size_t i = 0; i < launch_paths.count && !why; i++)
        why = launch_path_wrong(&launch_paths.at[i]);
    return why;
}

static void launch_paths_make(void)
{
    size_t count;
    const struct launch_end *ends = causes_of_launches(&count);
    launch_paths.count = 0;
    for (size_t i = 0; i < count; i++) {
        *array_add(&launch_paths) = (struct launch_path){.launch = ends[i].launch};
        path_add_reasons(ends[i].ref, ends[i].launch->submitted_ps, launch_paths.at[i].reason_ps);
    }
}

const char *why_end(uint64_t end_ps, bool stopped)
{
    if (!why_on)
        return NULL;
    observer_watch(&why_observer, false);
    path = path_to(end_ps ? causes_of_end() : (struct ref){0, EDGE_direct});   /* 0: only delays have ended */
    accounts_close(end_ps);
    advice = advice_of(&path, why_key_place);
    launch_paths_make();
    const char *why = wrong(end_ps, stopped);
    if (why) {
        why = arena_printf("internal error: the critical path of --why: %s", why);
        message("%s: %s\n", program_name, why);
    }
    causes_end();
    engines_end();
    return why;
}

/* ---- sums */

enum { CHAIN_BITS = 12 };

struct sum {
    uint64_t key, ps;
    const struct segment *first;
    uint32_t next;                                      /* of its chain */
};

struct sums ARRAY(struct sum);

static int by_length(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return x->ps > y->ps ? -1 : x->ps < y->ps ? 1 : x->key < y->key ? -1 : x->key > y->key;
}

static struct sum *sum_of(struct sums *sums, uint32_t *chain, const struct sum *empty)
{
    for (uint32_t i = *chain; i; i = sums->at[i - 1].next)
        if (sums->at[i - 1].key == empty->key)
            return &sums->at[i - 1];
    struct sum *sum = array_add(sums);
    *sum = *empty;
    sum->next = *chain;
    *chain = (uint32_t)sums->count;
    return sum;
}

/* Sums the path by a key of its segments, the longest sum first. A path may have millions of segments, of few keys: a hash
 * table of the keys, and no sort of the segments. */
static struct sums summed(uint64_t (*key)(const struct segment *segment))
{
    struct sums sums = {0};
    uint32_t chains[1 << CHAIN_BITS] = {0};             /* numbers: positions + 1 */
    for (size_t i = 0; i < path.count; i++) {
        const struct segment *segment = &path.segments[i];
        struct sum empty = {.key = key(segment), .first = segment};
        sum_of(&sums, &chains[hash_bits(empty.key, CHAIN_BITS)], &empty)->ps += length_of(segment);
    }
    if (sums.count)
        qsort(sums.at, sums.count, sizeof *sums.at, by_length);
    return sums;
}

static uint64_t reason_key(const struct segment *segment)
{
    return segment->reason;
}

/* Channels of a memory count as the memory. */
static uint64_t resource_key(const struct segment *segment)
{
    unsigned kind = place_resource(segment->at);
    uint64_t number = place_number(segment->at);
    switch (kind) {
    case RESOURCE_TCM_WRITE: return place_at(RESOURCE_TCM_READ, number);
    case RESOURCE_SRAM_WRITE:
    case RESOURCE_SRAM_MODEL: return place_at(RESOURCE_SRAM_READ, number);
    case RESOURCE_PSEUDO_CHANNEL: return place_at(RESOURCE_NODE, place_rank(slice_place(number / kb_attrs.hbm_ctrl_pcs)));
    case RESOURCE_HBM_MODEL: return place_at(RESOURCE_NODE, place_rank(slice_place(number)));
    default: return segment->at;
    }
}

/* The call of a command; of what the host does, that of the launch. */
static uint32_t segment_site(const struct segment *segment)
{
    const struct launch *launch = segment->who.kernel || !segment->who.number ? NULL : launch_of(segment->who.number);
    return launch && launch->line ? site_number(launch->file, launch->line) : segment->who.site;
}

static uint64_t line_key(const struct segment *segment)
{
    return segment_site(segment);
}

static double share_of(uint64_t ps)
{
    return path.end_ps ? (double)ps / (double)path.end_ps : 0;
}

/* ---- texts */

enum { LONGEST = 10, PRINTED = 8 };

static int by_segment_length(const void *a, const void *b)
{
    const struct segment *x = *(const struct segment *const *)a, *y = *(const struct segment *const *)b;
    return length_of(x) > length_of(y) ? -1 : length_of(x) < length_of(y) ? 1 : x < y ? -1 : x > y;
}

/* The longest segments of the path; returns how many there are. */
static size_t longest(const struct segment *found[LONGEST])
{
    size_t count = 0;
    for (size_t i = 0; i < path.count; i++) {
        const struct segment *segment = &path.segments[i];
        if (count == LONGEST && length_of(segment) <= length_of(found[LONGEST - 1]))
            continue;
        found[count < LONGEST ? count++ : LONGEST - 1] = segment;
        qsort(found, count, sizeof *found, by_segment_length);
    }
    return count;
}

static const char *place_text(const struct segment *segment)
{
    const char *channel, *place = segment_place(segment, &channel);
    return channel ? arena_printf("%s %s", place, channel) : place;
}

/* "kernel gemm, sip0.cube0.pe3, command 7, tile 2, GEMM, gemm.c:12" */
static const char *subject_text(const struct subject *who, uint32_t site)
{
    const struct tl *tl = kernel_of(who->kernel);
    const char *text = tl ? arena_printf("kernel %s, %s, command %u", tl->name, pe_name(tl->pe), who->number)
                     : who->number ? arena_printf("request %u", who->number) : "the host";
    if (who->tile != NO_TILE)
        text = arena_printf("%s, tile %u", text, who->tile);
    if (who->stage != NO_STAGE)
        text = arena_printf("%s, %s", text, stage_names[who->stage]);
    return site ? arena_printf("%s, %s", text, site_name(site)) : text;
}

static void print_sums(FILE *out, const char *title, struct sums sums, const char *(*name)(const struct segment *))
{
    uint64_t rest_ps = 0;
    fprintf(out, "  by %s\n", title);
    for (size_t i = 0; i < sums.count; i++)
        if (i < PRINTED)
            fprintf(out, "    %5.1f %%  %9s  %s\n", 100 * share_of(sums.at[i].ps), human_time(sums.at[i].ps),
                    name(sums.at[i].first));
        else
            rest_ps += sums.at[i].ps;
    if (rest_ps)
        fprintf(out, "    %5.1f %%  %9s  %zu other%s\n", 100 * share_of(rest_ps), human_time(rest_ps),
                sums.count - PRINTED, sums.count - PRINTED == 1 ? "" : "s");
    array_free(&sums);
}

static const char *reason_text(const struct segment *segment)
{
    return arena_printf("%-14s  %s", reason_names[segment->reason], reason_meanings[segment->reason]);
}

static const char *resource_text(const struct segment *segment)
{
    const char *channel;
    return segment_place(segment, &channel);
}

static const char *line_text(const struct segment *segment)
{
    uint32_t site = segment_site(segment);
    return site ? site_name(site) : "no call: the host, or the way of a launch";
}

/* ---- as JSON */

static void write_subject(struct json *json, const struct subject *who, uint32_t site)
{
    const struct tl *tl = kernel_of(who->kernel);
    if (tl) {
        json_string(json, "pe", pe_name(tl->pe));
        json_string(json, "kernel", tl->name);
        json_u64(json, "request", tl->request);
        json_u64(json, "command", who->number);
    } else if (who->number) {
        json_u64(json, "request", who->number);
    }
    if (who->tile != NO_TILE)
        json_u64(json, "tile", who->tile);
    if (who->stage != NO_STAGE)
        json_string(json, "stage", stage_names[who->stage]);
    if (site)
        json_string(json, "source", site_name(site));
}

static void write_segment(struct json *json, const struct segment *segment, uint64_t end_ps, uint32_t times)
{
    const char *channel, *place = segment_place(segment, &channel);
    json_object(json, NULL);
    json_u64(json, "begin_ps", segment->begin_ps);
    json_u64(json, "end_ps", end_ps);
    if (times > 1)
        json_u64(json, "times", times);
    json_string(json, "reason", reason_names[segment->reason]);
    json_string(json, "work", work_names[segment->work]);
    if (segment->edge != EDGE_direct)
        json_string(json, "edge", edge_names[segment->edge]);
    json_string(json, "at", place);
    if (channel)
        json_string(json, "channel", channel);
    write_subject(json, &segment->who, segment_site(segment));
    if (segment->edge != EDGE_direct) {
        json_object(json, "held_up");
        write_subject(json, &segment->held_up, segment->held_up.site);
        json_object_end(json);
    }
    json_object_end(json);
}

static bool same_subject(const struct subject *a, const struct subject *b)
{
    return a->kernel == b->kernel && a->number == b->number && a->site == b->site && a->stage == b->stage;
}

/* Whether a segment is like the one before it, whatever their tiles. */
static bool folds(const struct segment *a, const struct segment *b)
{
    return a->reason == b->reason && a->work == b->work && a->edge == b->edge && a->at == b->at
           && same_subject(&a->who, &b->who) && same_subject(&a->held_up, &b->held_up);
}

static void write_segments(struct json *json)
{
    json_array(json, "segments");
    for (size_t i = 0, next; i < path.count; i = next) {
        for (next = i + 1; next < path.count && folds(&path.segments[i], &path.segments[next]);)
            next++;
        write_segment(json, &path.segments[i], path.segments[next - 1].end_ps, (uint32_t)(next - i));
    }
    json_array_end(json);
}

static void write_sums(struct json *json, const char *key, const char *name_key, struct sums sums,
                       const char *(*name)(const struct segment *))
{
    json_array(json, key);
    for (size_t i = 0; i < sums.count; i++) {
        json_object(json, NULL);
        json_string(json, name_key, name(sums.at[i].first));
        json_u64(json, "ps", sums.at[i].ps);
        json_double(json, "share", share_of(sums.at[i].ps));
        json_object_end(json);
    }
    json_array_end(json);
    array_free(&sums);
}

static const char *reason_name(const struct segment *segment)
{
    return reason_names[segment->reason];
}

static const char *line_name(const struct segment *segment)
{
    uint32_t site = segment_site(segment);
    return site ? site_name(site) : NULL;
}

static void write_path(struct json *json)
{
    json_object(json, "path");
    json_u64(json, "begin_ps", 0);
    json_u64(json, "end_ps", path.end_ps);
    json_u64(json, "count", path.count);
    write_sums(json, "by_reason", "reason", summed(reason_key), reason_name);
    write_sums(json, "by_resource", "at", summed(resource_key), resource_text);
    write_sums(json, "by_line", "source", summed(line_key), line_name);
    write_segments(json);
    picture_write_columns(json, &path);
    json_object_end(json);
}

static void write_longest(struct json *json)
{
    const struct segment *found[LONGEST];
    size_t count = longest(found);
    json_array(json, "longest");
    for (size_t i = 0; i < count; i++)
        write_segment(json, found[i], found[i]->end_ps, 1);
    json_array_end(json);
}

static void write_advice(struct json *json)
{
    json_string(json, "first", advice.sentence);
    json_object(json, "change");
    json_string(json, "line", advice.site ? site_name(advice.site) : NULL);
    json_double(json, "line_share", share_of(advice.line_ps));
    json_string(json, "cause", advice.cause);
    json_double(json, "cause_share", share_of(advice.cause_ps));
    json_string(json, "key", advice.key);
    json_string(json, "place", advice.key && why_key_place ? why_key_place(advice.key) : NULL);
    json_object_end(json);
}

/* The kernel that took longest; the first of several. */
static const struct account *longest_account(void)
{
    const struct account *worst = NULL;
    for (const struct account *one = accounts.at; one < accounts.at + accounts.count; one++)
        if (one->tl && (!worst || one->end_ps - one->begin_ps > worst->end_ps - worst->begin_ps))
            worst = one;
    return worst;
}

struct spread {
    uint64_t least_ps, most_ps, sum_ps;
};

/* Of a reason, over all kernels. */
static struct spread spread_of(unsigned reason)
{
    struct spread spread = {UINT64_MAX, 0, 0};
    for (const struct account *one = accounts.at; one < accounts.at + accounts.count; one++) {
        uint64_t ps = one->reason_ps[reason];
        if (!one->tl)
            continue;
        spread.least_ps = ps < spread.least_ps ? ps : spread.least_ps;
        spread.most_ps = ps > spread.most_ps ? ps : spread.most_ps;
        spread.sum_ps += ps;
    }
    return spread;
}

static void write_spread(struct json *json)
{
    const struct account *worst = longest_account();
    json_object(json, "spread");
    for (unsigned reason = 0; reason < REASONS; reason++) {
        struct spread spread = spread_of(reason);
        if (!spread.most_ps)
            continue;
        json_object(json, reason_names[reason]);
        json_u64(json, "least_ps", spread.least_ps);
        json_u64(json, "most_ps", spread.most_ps);
        json_object_end(json);
    }
    json_object_end(json);
    json_string(json, "worst", worst ? pe_name(worst->tl->pe) : NULL);
}

static void write_account(struct json *json)
{
    uint64_t sum_ps[REASONS] = {0};
    json_object(json, "account");
    json_array(json, "kernels");
    for (size_t i = 0; i < accounts.count; i++) {
        const struct account *account = &accounts.at[i];
        if (!account->tl)
            continue;
        json_object(json, NULL);
        json_string(json, "pe", pe_name(account->tl->pe));
        json_string(json, "kernel", account->tl->name);
        json_u64(json, "request", account->tl->request);
        json_u64(json, "begin_ps", account->begin_ps);
        json_u64(json, "end_ps", account->end_ps);
        reasons_write(json, "reasons", account->reason_ps);
        engines_write_kernel(json, account);
        json_object_end(json);
        for (unsigned reason = 0; reason < REASONS; reason++)
            sum_ps[reason] += account->reason_ps[reason];
    }
    json_array_end(json);
    reasons_write(json, "reasons", sum_ps);
    write_spread(json);
    picture_write_pes(json);
    engines_write(json);
    json_object_end(json);
}

static void write_launches(struct json *json)
{
    json_array(json, "launches");
    for (size_t i = 0; i < launch_paths.count; i++) {
        const struct launch *launch = launch_paths.at[i].launch;
        json_object(json, NULL);
        json_u64(json, "request", launch->fanout.correlation);
        json_string(json, "program", launch->program);
        json_u64(json, "begin_ps", launch->submitted_ps);
        json_u64(json, "end_ps", launch->done_ps);
        reasons_write(json, "reasons", launch_paths.at[i].reason_ps);
        if (launch->line)
            json_string(json, "source", site_name(site_number(launch->file, launch->line)));
        json_object_end(json);
    }
    json_array_end(json);
}

void why_write(struct json *json)
{
    if (!why_on)
        return;
    json_object(json, "why");
    write_path(json);
    write_longest(json);
    write_advice(json);
    write_launches(json);
    write_account(json);
    json_object_end(json);
}

/* ---- for people */

static void print_account(FILE *out)
{
    const struct account *worst = longest_account();
    uint64_t total_ps = 0;
    if (!worst)
        return;
    for (const struct account *one = accounts.at; one < accounts.at + accounts.count; one++)
        total_ps += one->tl ? one->end_ps - one->begin_ps : 0;
    fprintf(out, "account      of all kernels, and from the least to the most of one; the longest took %s on %s\n",
            human_time(worst->end_ps - worst->begin_ps), pe_name(worst->tl->pe));
    for (unsigned reason = 0; reason < REASONS; reason++) {
        struct spread spread = spread_of(reason);
        if (spread.sum_ps)
            fprintf(out, "    %5.1f %%  %9s to %9s  %s\n", total_ps ? 100 * (double)spread.sum_ps / (double)total_ps : 0,
                    human_time(spread.least_ps), human_time(spread.most_ps), reason_names[reason]);
    }
}

void why_print(FILE *out)
{
    const struct segment *found[LONGEST];
    if (!why_on)
        return;
    fprintf(out, "why          the critical path: %s in %zu segments\n", human_time(path.end_ps), path.count);
    print_sums(out, "reason", summed(reason_key), reason_text);
    print_sums(out, "resource", summed(resource_key), resource_text);
    print_sums(out, "line", summed(line_key), line_text);
    fprintf(out, "  longest\n");
    size_t count = longest(found);
    for (size_t i = 0; i < count; i++) {
        const struct segment *segment = found[i];
        fprintf(out, "    %9s  from %" PRIu64 " ps  %s: %s at %s, %s\n", human_time(length_of(segment)),
                segment->begin_ps, reason_names[segment->reason], work_names[segment->work], place_text(segment),
                subject_text(&segment->who, segment_site(segment)));
    }
    print_account(out);
    engines_print(out);
    fprintf(out, "change first %s\n", advice.sentence);
}

void why_write_track(void)
{
    if (why_on)
        picture_write_track(&path);
}
