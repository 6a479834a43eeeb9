/* path_report.c: a critical path summed by reason, resource and line, for people and as JSON. */
#include "path_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "accounts.h"
#include "base/human.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/hash.h"
#include "launch/kernel.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/memory.h"
#include "machine/pe.h"
#include "sites.h"

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
static struct sums summed(const struct path *path, uint64_t (*key)(const struct segment *segment))
{
    struct sums sums = {0};
    uint32_t chains[1 << CHAIN_BITS] = {0};             /* numbers: positions + 1 */
    for (size_t i = 0; i < path->count; i++) {
        const struct segment *segment = &path->segments[i];
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

double path_share(const struct path *path, uint64_t ps)
{
    return path->end_ps > path->begin_ps ? (double)ps / (double)(path->end_ps - path->begin_ps) : 0;
}

/* ---- texts */

enum { LONGEST = 10, PRINTED = 8 };

static int by_segment_length(const void *a, const void *b)
{
    const struct segment *x = *(const struct segment *const *)a, *y = *(const struct segment *const *)b;
    return length_of(x) > length_of(y) ? -1 : length_of(x) < length_of(y) ? 1 : x < y ? -1 : x > y;
}

/* The longest segments of the path; returns how many there are. */
static size_t longest(const struct path *path, const struct segment *found[LONGEST])
{
    size_t count = 0;
    for (size_t i = 0; i < path->count; i++) {
        const struct segment *segment = &path->segments[i];
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

static void print_sums(FILE *out, const struct path *path, const char *title, struct sums sums,
                       const char *(*name)(const struct segment *))
{
    uint64_t rest_ps = 0;
    fprintf(out, "  by %s\n", title);
    for (size_t i = 0; i < sums.count; i++)
        if (i < PRINTED)
            fprintf(out, "    %5.1f %%  %9s  %s\n", 100 * path_share(path, sums.at[i].ps), human_time(sums.at[i].ps),
                    name(sums.at[i].first));
        else
            rest_ps += sums.at[i].ps;
    if (rest_ps)
        fprintf(out, "    %5.1f %%  %9s  %zu other%s\n", 100 * path_share(path, rest_ps), human_time(rest_ps),
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

void path_print(FILE *out, const struct path *path)
{
    const struct segment *found[LONGEST];
    print_sums(out, path, "reason", summed(path, reason_key), reason_text);
    print_sums(out, path, "resource", summed(path, resource_key), resource_text);
    print_sums(out, path, "line", summed(path, line_key), line_text);
    fprintf(out, "  longest\n");
    size_t count = longest(path, found);
    for (size_t i = 0; i < count; i++) {
        const struct segment *segment = found[i];
        fprintf(out, "    %9s  from %" PRIu64 " ps  %s: %s at %s, %s\n", human_time(length_of(segment)),
                segment->begin_ps, reason_names[segment->reason], work_names[segment->work], place_text(segment),
                subject_text(&segment->who, segment_site(segment)));
    }
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

static void write_segments(struct json *json, const struct path *path)
{
    json_array(json, "segments");
    for (size_t i = 0, next; i < path->count; i = next) {
        for (next = i + 1; next < path->count && folds(&path->segments[i], &path->segments[next]);)
            next++;
        write_segment(json, &path->segments[i], path->segments[next - 1].end_ps, (uint32_t)(next - i));
    }
    json_array_end(json);
}

static void write_sums(struct json *json, const struct path *path, const char *key, const char *name_key,
                       struct sums sums, const char *(*name)(const struct segment *))
{
    json_array(json, key);
    for (size_t i = 0; i < sums.count; i++) {
        json_object(json, NULL);
        json_string(json, name_key, name(sums.at[i].first));
        json_u64(json, "ps", sums.at[i].ps);
        json_double(json, "share", path_share(path, sums.at[i].ps));
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

void path_write(struct json *json, const struct path *path)
{
    json_u64(json, "begin_ps", path->begin_ps);
    json_u64(json, "end_ps", path->end_ps);
    json_u64(json, "count", path->count);
    write_sums(json, path, "by_reason", "reason", summed(path, reason_key), reason_name);
    write_sums(json, path, "by_resource", "at", summed(path, resource_key), resource_text);
    write_sums(json, path, "by_line", "source", summed(path, line_key), line_name);
    write_segments(json, path);
}

void path_write_longest(struct json *json, const struct path *path)
{
    const struct segment *found[LONGEST];
    size_t count = longest(path, found);
    json_array(json, "longest");
    for (size_t i = 0; i < count; i++)
        write_segment(json, found[i], found[i]->end_ps, 1);
    json_array_end(json);
}
