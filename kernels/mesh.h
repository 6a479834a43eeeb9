/* mesh.h: reductions and gathers of a vector that every PE holds in its TCM, along the axes of the machine in turn.
 *
 * The PEs stand in a mesh: those of a cube, the cubes of a row, the rows of cubes. A reduce-scatter goes round the ring
 * of a cube first, which leaves each of its PEs a part; those parts go round the rings of the next axis, and so on. So
 * steps are as many as the axes are long, added up, in place of one for each PE, and the nearest move the most bytes.
 * A gather goes the same way back. The two, one after the other, are an all-reduce. */
#ifndef MESH_H
#define MESH_H

#include "collective.h"

enum { MESH_AXES = 3, MESH_LONGEST = 512 };

struct mesh {
    uint32_t axes;
    struct ring axis[MESH_AXES];
    uint32_t rank[MESH_AXES][MESH_LONGEST];
};

static inline void mesh_add(struct tl *tl, struct mesh *mesh, uint32_t stride, uint32_t count)
{
    uint32_t at = tl_pe(tl) / stride % count, first = tl_pe(tl) - at * stride, axis = mesh->axes++;
    if (count > MESH_LONGEST)
        tl_fail(tl, 1, "an axis of %u PEs, of at most %u", count, (unsigned)MESH_LONGEST);
    for (uint32_t i = 0; i < count; i++)
        mesh->rank[axis][i] = first + i * stride;
    mesh->axis[axis] = (struct ring){at, count, mesh->rank[axis]};
}

/* The mesh of the launch's PEs; of whole cubes in whole rows, if they are that. It stays where it is: rings point into
 * it. */
static inline void mesh_open(struct mesh *mesh, struct tl *tl)
{
    uint32_t p = tl_num_pes(tl), pes = 1, columns = 1;
    mesh->axes = 0;
    while (pes < p && tl_place(tl, pes).cube == tl_place(tl, 0).cube && tl_place(tl, pes).sip == tl_place(tl, 0).sip)
        pes++;
    if (p % pes)
        pes = p;
    while (columns * pes < p && tl_place(tl, columns * pes).cube_row == tl_place(tl, 0).cube_row &&
           tl_place(tl, columns * pes).sip == tl_place(tl, 0).sip)
        columns++;
    if (p / pes % columns)
        columns = p / pes;
    mesh_add(tl, mesh, 1, pes);
    mesh_add(tl, mesh, pes, columns);
    mesh_add(tl, mesh, pes * columns, p / pes / columns);
}

/* What one place on an axis has of a span of rows. */
static inline struct span mesh_cut(struct span span, const struct ring *ring, uint64_t at)
{
    struct span cut = block_of(span.count, ring->count, at);
    return (struct span){span.first + cut.first, cut.count};
}

/* The rows that are this PE's, of so many that are split along the first axes. */
static inline struct span mesh_span(const struct mesh *mesh, uint64_t rows, uint32_t axes)
{
    struct span span = {0, rows};
    for (uint32_t i = 0; i < axes; i++)
        span = mesh_cut(span, &mesh->axis[i], mesh->axis[i].at);
    return span;
}

/* Round one ring, a block of `rows` from place to place: `what` of a panel at each step, of the block that is so many
 * places behind. x is all rows, in the TCM. */
static inline void mesh_panels(struct pipe *pipe, const struct ring *ring, struct tl_shard x, struct span rows,
                               bool reduce)
{
    uint64_t p = ring->count, a_row = x.shape[1], longest = longest_block(rows.count, p) * a_row;
    struct tl_shard all = flat(x);
    for (uint64_t base = 0; base < longest; base += pipe->panel)
        for (uint64_t step = 0; step < p; step++) {
            bool first = step == 0, last = step == p - 1;
            struct span block = mesh_cut(rows, ring, (ring->at + 2 * p - step - reduce) % p);
            struct span span = span_cut((struct span){block.first * a_row, block.count * a_row}, base, pipe->panel);
            unsigned store = reduce ? last : !first, load = reduce || first;
            unsigned what = (first ? 0 : RECV) | (load ? LOAD : 0) | (last ? 0 : SEND) | (store ? STORE : 0);
            struct tl_shard part = part_of(pipe->tl, all, span);
            pipe_put(pipe, (struct panel){what, ring_behind(ring, 1), ring_ahead(ring, 1), part, part, span.count});
        }
    pipe_flush(pipe);
}

/* The rows of mesh_span hold the sum of all PEs' x; others are what they were, or partial sums. */
static inline void mesh_reduce_scatter(struct pipe *pipe, const struct mesh *mesh, struct tl_shard x)
{
    for (uint32_t i = 0; i < mesh->axes; i++)
        if (mesh->axis[i].count > 1)
            mesh_panels(pipe, &mesh->axis[i], x, mesh_span(mesh, x.shape[0], i), true);
}

/* Every PE's rows of mesh_span are in all PEs' x. */
static inline void mesh_all_gather(struct pipe *pipe, const struct mesh *mesh, struct tl_shard x)
{
    for (uint32_t i = mesh->axes; i-- > 0;)
        if (mesh->axis[i].count > 1)
            mesh_panels(pipe, &mesh->axis[i], x, mesh_span(mesh, x.shape[0], i), false);
}

#endif
