/* pipe.h: a stream of panels through a PE: taken from memory or from a PE, joined, passed on, put into memory.
 *
 * A panel is what a PE handles in one step of a collective: a run of elements that travels as a few messages (chunks).
 * While one panel is worked on, the next one is loaded and its receives wait in line, and the sends and the store of
 * those before it run on; each panel under way has buffers of its own in the TCM.
 *
 *     load --+
 *            +-- math -- send, chunk by chunk
 *     recv --+        -- store
 *
 * Ranks that send round a ring are safe from waiting for each other in a circle as long as a panel has no more chunks
 * than a ring of the machine has slots: then who is furthest behind always finds its message sent and its slot free. */
#ifndef PIPE_H
#define PIPE_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/tl.h>

/* What happens to a panel. Loaded and received: the two are joined by the pipe's op. */
enum { LOAD = 1, RECV = 2, SEND = 4, STORE = 8 };

struct panel {
    unsigned what;
    uint32_t from, to;                                  /* the PEs of RECV and SEND */
    struct tl_shard in, out;                            /* where LOAD and STORE go; of one axis */
    uint64_t count;                                     /* elements; 0: there is no such panel */
};

enum { PIPE_PANELS = 3, PIPE_CHUNKS = 8 };

struct flight {
    struct panel panel;
    struct tl_shard own, got;                           /* buffers: loaded, received */
    tl_handle load, store, recv[PIPE_CHUNKS], math[PIPE_CHUNKS], send[PIPE_CHUNKS];
};

struct pipe {
    struct tl *tl;
    const char *op;                                     /* of tl_math */
    uint64_t chunk, panel;                              /* elements of a message, and of a panel, at most */
    uint32_t depth;                                     /* panels under way, at most */
    uint64_t put, worked;                               /* panels so far */
    struct flight flight[PIPE_PANELS];
};

/* Chunks are of chunk_bytes, or of a slot or a quarter of the TCM if that is less. Panels of no more than `longest`
 * elements will be put. The sizes of chunks and panels are the same on every PE; how many panels are under way follows
 * from its room. */
static inline void pipe_open(struct pipe *pipe, struct tl *tl, enum kb_dtype dtype, const char *op,
                             uint64_t chunk_bytes, uint64_t longest)
{
    uint64_t size = kb_dtype_bytes(dtype), most = (kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes) / 4;
    uint64_t slot = kb_min(kb_min(chunk_bytes, tl_slot_bytes(tl)), most);
    if (slot < size)
        tl_fail(tl, 1, "a message of %llu bytes holds no element", (unsigned long long)slot);
    *pipe = (struct pipe){.tl = tl, .op = op, .chunk = slot / size};
    pipe->panel = pipe->chunk * kb_min(kb_min(tl_slots(tl), PIPE_CHUNKS), most / slot);
    uint64_t buffer = kb_min(pipe->panel, longest);
    if (buffer == 0)
        return;
    uint64_t fit = tl_room_bytes(tl) / (2 * (buffer * size + 64));
    pipe->depth = fit < 1 ? 1 : (uint32_t)kb_min(fit, PIPE_PANELS);
    for (uint32_t i = 0; i < pipe->depth; i++) {
        pipe->flight[i].own = tl_alloc(tl, dtype, buffer);
        pipe->flight[i].got = tl_alloc(tl, dtype, buffer);
    }
}

static inline struct tl_shard chunk_of(const struct pipe *pipe, const struct flight *f, struct tl_shard buffer,
                                       uint64_t i)
{
    uint64_t first = i * pipe->chunk;
    return tl_part(pipe->tl, buffer, 0, first, kb_min(pipe->chunk, f->panel.count - first));
}

static inline uint64_t chunks_of(const struct pipe *pipe, const struct flight *f)
{
    return (f->panel.count + pipe->chunk - 1) / pipe->chunk;
}

/* The buffer that holds the panel as it is passed on. */
static inline struct tl_shard result_of(const struct flight *f)
{
    return f->panel.what & LOAD ? f->own : f->got;
}

/* Its load and receives: none of them waits for anything here. */
static inline void flight_begin(struct pipe *pipe, struct flight *f)
{
    const struct panel *p = &f->panel;
    if (p->what & LOAD)
        f->load = tl_load_async(pipe->tl, tl_part(pipe->tl, f->own, 0, 0, p->count), p->in);
    for (uint64_t i = 0; p->what & RECV && i < chunks_of(pipe, f); i++)
        f->recv[i] = tl_recv_async(pipe->tl, p->from, chunk_of(pipe, f, f->got, i));
}

static inline void chunk_pass(struct pipe *pipe, struct flight *f, uint64_t i)
{
    if ((f->panel.what & (LOAD | RECV)) == (LOAD | RECV))
        tl_wait(pipe->tl, f->math[i]);
    if (f->panel.what & SEND)
        f->send[i] = tl_send_async(pipe->tl, f->panel.to, chunk_of(pipe, f, result_of(f), i));
}

/* A chunk is passed on while the next one is being joined. */
static inline void flight_work(struct pipe *pipe, struct flight *f)
{
    const struct panel *p = &f->panel;
    uint64_t chunks = chunks_of(pipe, f);
    if (p->what & LOAD)
        tl_wait(pipe->tl, f->load);
    for (uint64_t i = 0; i < chunks; i++) {
        struct tl_shard own = chunk_of(pipe, f, f->own, i), got = chunk_of(pipe, f, f->got, i);
        if (p->what & RECV)
            tl_wait(pipe->tl, f->recv[i]);
        if (p->what & RECV && p->what & LOAD)
            f->math[i] = tl_math_async(pipe->tl, pipe->op, own, got, own);
        if (i > 0)
            chunk_pass(pipe, f, i - 1);
    }
    chunk_pass(pipe, f, chunks - 1);
    if (p->what & STORE)
        f->store = tl_store_async(pipe->tl, p->out, tl_part(pipe->tl, result_of(f), 0, 0, p->count));
}

/* Its buffers are free again. */
static inline void flight_end(struct pipe *pipe, struct flight *f)
{
    for (uint64_t i = 0; f->panel.what & SEND && i < chunks_of(pipe, f); i++)
        tl_wait(pipe->tl, f->send[i]);
    if (f->panel.what & STORE)
        tl_wait(pipe->tl, f->store);
    f->panel.what = 0;
}

static inline void pipe_work(struct pipe *pipe)
{
    flight_work(pipe, &pipe->flight[pipe->worked++ % pipe->depth]);
}

/* Puts a panel into the pipe, and works on those before it; its load and receives have begun when this returns. */
static inline void pipe_put(struct pipe *pipe, struct panel panel)
{
    if (panel.count == 0)
        return;
    if (pipe->put - pipe->worked == pipe->depth)
        pipe_work(pipe);
    struct flight *f = &pipe->flight[pipe->put++ % pipe->depth];
    flight_end(pipe, f);
    f->panel = panel;
    flight_begin(pipe, f);
    if (pipe->put - pipe->worked > 1)
        pipe_work(pipe);
}

/* Until all panels are through: what they stored can be loaded again. */
static inline void pipe_flush(struct pipe *pipe)
{
    while (pipe->worked < pipe->put)
        pipe_work(pipe);
    for (uint32_t i = 0; i < pipe->depth; i++)
        flight_end(pipe, &pipe->flight[i]);
}

#endif
