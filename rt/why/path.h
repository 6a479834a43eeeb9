/* path.h: the critical path: the chain of causes from an item back to the beginning of the run, as segments of time. */
#ifndef KB_PATH_H
#define KB_PATH_H

#include <stddef.h>

#include "common/json.h"
#include "items.h"

struct launch;

struct segment {
    uint64_t begin_ps, end_ps;
    uint8_t reason, work, edge;
    uint64_t at;                                        /* place_at */
    struct subject who, held_up;                        /* for whom it is; whom it held up, if edge is not EDGE_direct */
};

static inline uint64_t length_of(const struct segment *segment)
{
    return segment->end_ps - segment->begin_ps;
}

struct path {
    struct segment *segments;                           /* by time, not folded */
    size_t count;
    uint64_t begin_ps, end_ps;
};

/* The launch that is a request of the host; NULL: the request is no launch. launches_forget: before a run. */
const struct launch *launch_of(uint32_t request);
void launches_forget(void);

/* Writes the reasons that took time as an object. */
void reasons_write(struct json *json, const char *key, const uint64_t reason_ps[REASONS]);

/* The path to an item, from from_ps on. path_free frees it. */
struct path path_to(struct ref end, uint64_t from_ps);
void path_free(struct path *path);

/* Returns NULL, or what is wrong with a path: a gap, an overlap, a sum that is not its length. */
const char *path_wrong(const struct path *path);

/* The place of a segment: a node's id, or those of both ends of a link; in the arena. Sets *channel to the channel of a
 * memory, or NULL. */
const char *segment_place(const struct segment *segment, const char **channel);

#endif
