/* pipeline.h: a software pipeline for the steps of a collective. Each step takes a segment of a vector from memory or
 * from another PE, reduces it, and passes it on or stores it.
 *
 * A segment is the run of elements that a PE handles in one step; it travels as a few messages, its chunks. While one
 * segment is worked on, the next one is loaded and its receives are posted, and the sends and stores of the previous
 * ones complete. Each segment in flight has its own buffers in the TCM.
 *
 *     load --+
 *            +-- math -- send, chunk by chunk
 *     recv --+        -- store
 *
 * Ranks that send around a ring cannot deadlock as long as a segment has no more chunks than there are slots between
 * two PEs: the rank that is furthest behind always finds its message sent and a slot free. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include "tcm.h"
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/tl.h>

/* What happens to a segment. With both LOAD and RECV, the pipeline's op reduces the two. */
enum { PIPELINE_LOAD = 1, PIPELINE_RECV = 2, PIPELINE_SEND = 4, PIPELINE_STORE = 8 };

struct segment {
    unsigned actions;
    uint32_t from, to;                                  /* the PEs of RECV and SEND */
    struct tl_shard in, out;                            /* what LOAD reads and STORE writes; one axis */
    uint64_t count;                                     /* elements; a segment of 0 elements is skipped */
};

/* At most this many segments in flight, and chunks in a segment. */
enum { PIPELINE_SEGMENTS = 3, PIPELINE_CHUNKS = 8 };

struct segment_in_flight {
    struct segment segment;
    struct tl_shard own, got;                           /* buffers of what was loaded and of what was received */
    tl_handle load, store, recv[PIPELINE_CHUNKS], math[PIPELINE_CHUNKS], send[PIPELINE_CHUNKS];
};

struct pipeline {
    struct tl *tl;
    const char *op;                                     /* of tl_math */
    uint64_t chunk, segment;                            /* largest message, largest segment, in elements */
    uint32_t depth;                                     /* most segments in flight */
    const uint32_t *all;                                /* every SEND goes to these PEs at once, */
    uint32_t receivers;                                 /* of this number; 0: to that of its segment */
    uint64_t pushed, worked;                            /* segments so far */
    struct segment_in_flight flight[PIPELINE_SEGMENTS];
};

/* The largest message: a slot, or a quarter of the TCM where that is smaller. */
static inline uint64_t pipeline_message_bytes(void)
{
    return kb_min(kb_attrs.pe_ipcq_slot_bytes, tcm_allocatable_bytes() / 4);
}

/* The chunks of a segment. As many as there are slots let no send wait for a slot; together they take a quarter of the TCM at
 * most. */
static inline uint64_t pipeline_chunks(uint64_t message_bytes)
{
    return kb_min(kb_min(kb_attrs.pe_ipcq_slots, PIPELINE_CHUNKS), tcm_allocatable_bytes() / 4 / message_bytes);
}

/* Opens a pipeline for segments of up to `longest` elements. A chunk has chunk_bytes, at most
 * pipeline_message_bytes. The sizes of chunks and segments are the same on every PE; the depth follows from the room in
 * this PE's TCM. Fails with KERNEL_ERROR if a chunk holds no element. */
static inline void pipeline_open(struct pipeline *pipeline, struct tl *tl, enum kb_dtype dtype, const char *op,
                                 uint64_t chunk_bytes, uint64_t longest)
{
    uint64_t size = kb_dtype_bytes(dtype), message = kb_min(chunk_bytes, pipeline_message_bytes());
    if (message < size)
        tl_fail(tl, 1, "a message of %llu bytes holds no element", (unsigned long long)message);
    *pipeline = (struct pipeline){.tl = tl, .op = op, .chunk = message / size};
    pipeline->segment = pipeline->chunk * pipeline_chunks(message);
    uint64_t buffer = kb_min(pipeline->segment, longest);
    if (buffer == 0)
        return;
    uint64_t fit = tl_room_bytes(tl) / (2 * (buffer * size + 64));
    pipeline->depth = (uint32_t)kb_clamp(fit, 1, PIPELINE_SEGMENTS);
    for (uint32_t i = 0; i < pipeline->depth; i++) {
        pipeline->flight[i].own = tl_alloc(tl, dtype, buffer);
        pipeline->flight[i].got = tl_alloc(tl, dtype, buffer);
    }
}

static inline uint64_t segment_chunks(const struct pipeline *pipeline, const struct segment_in_flight *f)
{
    return kb_ceil_div(f->segment.count, pipeline->chunk);
}

/* Chunk i of a segment's buffer. */
static inline struct tl_shard segment_chunk(const struct pipeline *pipeline, const struct segment_in_flight *f,
                                            const struct tl_shard *buffer, uint64_t i)
{
    uint64_t first = i * pipeline->chunk;
    return tl_part(pipeline->tl, *buffer, 0, first, kb_min(pipeline->chunk, f->segment.count - first));
}

/* The buffer that is sent and stored. */
static inline const struct tl_shard *segment_result(const struct segment_in_flight *f)
{
    return f->segment.actions & PIPELINE_LOAD ? &f->own : &f->got;
}

/* Issues the load and the receives of a segment. Does not block. */
static inline void segment_issue(struct pipeline *pipeline, struct segment_in_flight *f)
{
    const struct segment *s = &f->segment;
    if (s->actions & PIPELINE_LOAD)
        f->load = tl_load_async(pipeline->tl, tl_part(pipeline->tl, f->own, 0, 0, s->count), s->in);
    for (uint64_t i = 0; s->actions & PIPELINE_RECV && i < segment_chunks(pipeline, f); i++)
        f->recv[i] = tl_recv_async(pipeline->tl, s->from, segment_chunk(pipeline, f, &f->got, i));
}

/* Sends chunk i on once it is reduced. */
static inline void segment_pass(struct pipeline *pipeline, struct segment_in_flight *f, uint64_t i)
{
    const unsigned both = PIPELINE_LOAD | PIPELINE_RECV;
    if ((f->segment.actions & both) == both)
        tl_wait(pipeline->tl, f->math[i]);
    if (!(f->segment.actions & PIPELINE_SEND))
        return;
    struct tl_shard chunk = segment_chunk(pipeline, f, segment_result(f), i);
    if (pipeline->receivers)
        f->send[i] = tl_multicast_async(pipeline->tl, pipeline->all, pipeline->receivers, chunk);
    else
        f->send[i] = tl_send_async(pipeline->tl, f->segment.to, chunk);
}

/* Reduces a segment chunk by chunk: each chunk is sent while the next one is reduced. */
static inline void segment_work(struct pipeline *pipeline, struct segment_in_flight *f)
{
    const struct segment *s = &f->segment;
    uint64_t chunks = segment_chunks(pipeline, f);
    if (s->actions & PIPELINE_LOAD)
        tl_wait(pipeline->tl, f->load);
    for (uint64_t i = 0; i < chunks; i++) {
        if (s->actions & PIPELINE_RECV)
            tl_wait(pipeline->tl, f->recv[i]);
        if (s->actions & PIPELINE_RECV && s->actions & PIPELINE_LOAD) {
            struct tl_shard own = segment_chunk(pipeline, f, &f->own, i);
            f->math[i] = tl_math_async(pipeline->tl, pipeline->op, own, segment_chunk(pipeline, f, &f->got, i), own);
        }
        if (i > 0)
            segment_pass(pipeline, f, i - 1);
    }
    segment_pass(pipeline, f, chunks - 1);
    if (s->actions & PIPELINE_STORE)
        f->store = tl_store_async(pipeline->tl, s->out, tl_part(pipeline->tl, *segment_result(f), 0, 0, s->count));
}

/* Waits for the sends and the store of a segment, after which its buffers are free. */
static inline void segment_retire(struct pipeline *pipeline, struct segment_in_flight *f)
{
    for (uint64_t i = 0; f->segment.actions & PIPELINE_SEND && i < segment_chunks(pipeline, f); i++)
        tl_wait(pipeline->tl, f->send[i]);
    if (f->segment.actions & PIPELINE_STORE)
        tl_wait(pipeline->tl, f->store);
    f->segment.actions = 0;
}

static inline void pipeline_work(struct pipeline *pipeline)
{
    segment_work(pipeline, &pipeline->flight[pipeline->worked++ % pipeline->depth]);
}

/* Pushes a segment and works on those before it. The segment's load and receives have been issued on return. */
static inline void pipeline_push(struct pipeline *pipeline, const struct segment *segment)
{
    if (segment->count == 0)
        return;
    if (pipeline->pushed - pipeline->worked == pipeline->depth)
        pipeline_work(pipeline);
    struct segment_in_flight *f = &pipeline->flight[pipeline->pushed++ % pipeline->depth];
    segment_retire(pipeline, f);
    f->segment = *segment;
    segment_issue(pipeline, f);
    if (pipeline->pushed - pipeline->worked > 1)
        pipeline_work(pipeline);
}

/* Drains the pipeline: all segments are sent and stored on return, and what they stored can be loaded. */
static inline void pipeline_drain(struct pipeline *pipeline)
{
    while (pipeline->worked < pipeline->pushed)
        pipeline_work(pipeline);
    for (uint32_t i = 0; i < pipeline->depth; i++)
        segment_retire(pipeline, &pipeline->flight[i]);
}

#endif
