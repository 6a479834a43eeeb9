/* picture.c: pictures of the critical path and of the accounts. */
#include "picture.h"

#include <string.h>

#include "accounts.h"
#include "common/arena.h"
#include "launch/kernel.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "sites.h"
#include "timeline/perfetto.h"
#include "timeline/timeline.h"
#include "timeline/window.h"

enum { COLUMNS = 480 };

_Static_assert(REASONS <= 26, "a column is a letter");

/* The reason that takes most of each column. Segments are in the order of time, so each is visited once and once more for
 * each further column that it reaches into. */
static void columns_fill(const struct path *path, char row[COLUMNS + 1])
{
    const struct segment *segment = path->segments, *end = path->segments + path->count;
    for (unsigned column = 0; column < COLUMNS; column++) {
        uint64_t till_ps = path->end_ps / COLUMNS * (column + 1) + path->end_ps % COLUMNS * (column + 1) / COLUMNS;
        uint64_t from_ps = path->end_ps / COLUMNS * column + path->end_ps % COLUMNS * column / COLUMNS;
        uint64_t reason_ps[REASONS] = {0};
        unsigned most = segment->reason;
        for (;; segment++) {
            uint64_t begin_ps = segment->begin_ps > from_ps ? segment->begin_ps : from_ps;
            uint64_t end_ps = segment->end_ps < till_ps ? segment->end_ps : till_ps;
            reason_ps[segment->reason] += end_ps > begin_ps ? end_ps - begin_ps : 0;
            if (reason_ps[segment->reason] > reason_ps[most])
                most = segment->reason;
            if (segment->end_ps >= till_ps || segment + 1 == end)
                break;
        }
        row[column] = (char)('a' + most);
    }
}

void picture_write_columns(struct json *json, const struct path *path)
{
    char row[COLUMNS + 1] = {0};
    if (!path->count)
        return;
    columns_fill(path, row);
    json_object(json, "columns");
    json_array(json, "names");
    for (unsigned reason = 0; reason < REASONS; reason++)
        json_string(json, NULL, reason_names[reason]);
    json_array_end(json);
    json_string(json, "row", row);
    json_array(json, "meanings");
    for (unsigned reason = 0; reason < REASONS; reason++)
        json_string(json, NULL, reason_meanings[reason]);
    json_array_end(json);
    json_object_end(json);
}

void picture_write_pes(struct json *json)
{
    uint64_t(*reason_ps)[REASONS] = arena_alloc(pe_count(), sizeof *reason_ps), sum_ps[REASONS] = {0};
    for (size_t i = 0; i < accounts.count; i++)
        for (unsigned reason = 0; accounts.at[i].tl && reason < REASONS; reason++) {
            reason_ps[pe_number(accounts.at[i].tl->pe)][reason] += accounts.at[i].reason_ps[reason];
            sum_ps[reason] += accounts.at[i].reason_ps[reason];
        }
    json_object(json, "pes");
    for (unsigned reason = 0; reason < REASONS; reason++) {
        if (!sum_ps[reason])
            continue;
        json_array(json, reason_names[reason]);
        for (uint32_t pe = 0; pe < pe_count(); pe++)
            json_u64(json, NULL, reason_ps[pe][reason]);
        json_array_end(json);
    }
    json_object_end(json);
}

static void track_slice(uint32_t track, const struct segment *segment)
{
    const char *channel;
    const struct tl *tl = kernel_of(segment->who.kernel);
    struct perfetto_value values[6] = {{ARGUMENT_work, true, perfetto_text(work_names[segment->work])},
                                       {ARGUMENT_at, true, perfetto_text(segment_place(segment, &channel))}};
    uint32_t count = 2;
    if (tl)
        values[count++] = (struct perfetto_value){ARGUMENT_pe, true, perfetto_text(pe_name(tl->pe))};
    if (segment->who.number)
        values[count++] = (struct perfetto_value){tl ? ARGUMENT_command : ARGUMENT_request, false, segment->who.number};
    if (segment->who.tile != NO_TILE)
        values[count++] = (struct perfetto_value){ARGUMENT_tile, false, segment->who.tile};
    if (segment->who.site)
        values[count++] = (struct perfetto_value){ARGUMENT_source, true, perfetto_text(site_name(segment->who.site))};
    perfetto_slice(&(struct perfetto_event){track, perfetto_name(reason_names[segment->reason]), segment->begin_ps,
                                            .value_count = count, .values = values}, segment->end_ps);
}

void picture_write_track(const struct path *path)
{
    uint32_t track = timeline_path_track();
    for (size_t i = 0; track && i < path->count; i++) {
        if (window_has(path->segments[i].begin_ps, path->segments[i].end_ps))
            track_slice(track, &path->segments[i]);
        perfetto_empty();
    }
}
