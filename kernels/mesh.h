/* mesh.h: hierarchical reduce-scatter and all-gather of a matrix that every PE holds in its TCM, one axis of the
 * machine after the other.
 *
 * The PEs form a mesh of three axes: the PEs of a cube, the cubes of a row, the rows of cubes. The PEs of a large cube
 * have two axes, of nearly equal lengths. A reduce-scatter goes around the ring of a cube first, which leaves each of
 * its PEs a part of the rows; those parts go around the rings of the next axis, and so on. The number of steps is the
 * sum of the axes' lengths instead of their product, and so is that of the roundings of a sum; the nearest PEs exchange
 * the most bytes. An all-gather goes the same way back. One after the other they are an all-reduce. */
#ifndef MESH_H
#define MESH_H

#include "collective.h"

/* Most PEs along an axis, and along the only one of a cube. */
enum { MESH_AXES = 4, MESH_LONGEST = 512, MESH_LONGEST_IN_CUBE = 16 };

struct mesh {
    uint32_t axes;
    struct rank_ring axis[MESH_AXES];
    uint32_t rank[MESH_AXES][MESH_LONGEST];
};

/* Adds an axis of `count` PEs whose ranks are `stride` apart. */
static inline void mesh_add_axis(struct tl *tl, struct mesh *mesh, uint32_t stride, uint32_t count)
{
    uint32_t at = tl_pe(tl) / stride % count, first = tl_pe(tl) - at * stride, axis = mesh->axes++;
    if (count > MESH_LONGEST)
        tl_fail(tl, 1, "an axis of %u PEs, of at most %u", count, (unsigned)MESH_LONGEST);
    for (uint32_t i = 0; i < count; i++)
        mesh->rank[axis][i] = first + i * stride;
    mesh->axis[axis] = (struct rank_ring){at, count, mesh->rank[axis]};
}

/* The length of the first axis of a cube: of all its PEs or, if they are many, the largest divisor of their number that
 * leaves a longer second axis. */
static inline uint32_t mesh_first_of_cube(uint32_t pes)
{
    uint32_t first = pes;
    if (pes > MESH_LONGEST_IN_CUBE)
        do
            first--;
        while (first > pes / first || pes % first);
    return first > 1 ? first : pes;
}

/* Makes the mesh of the launch's PEs. Its axes follow the cubes and their rows where the launch has whole cubes and
 * whole rows of them; otherwise it has fewer, longer axes. Do not move the mesh: its rings point into it.
 * Fails with KERNEL_ERROR if an axis has more than MESH_LONGEST PEs. */
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
    uint32_t first = mesh_first_of_cube(pes);
    mesh_add_axis(tl, mesh, 1, first);
    mesh_add_axis(tl, mesh, first, pes / first);
    mesh_add_axis(tl, mesh, pes, columns);
    mesh_add_axis(tl, mesh, pes * columns, p / pes / columns);
}

/* The part of a range of rows that belongs to index `at` on an axis. */
static inline struct indices mesh_part(struct indices rows, const struct rank_ring *axis, uint64_t at)
{
    struct indices part = block_range(rows.count, axis->count, at);
    return (struct indices){rows.first + part.first, part.count};
}

/* This PE's part of `rows` rows after a split along the first `axes` axes. */
static inline struct indices mesh_rows(const struct mesh *mesh, uint64_t rows, uint32_t axes)
{
    struct indices range = {0, rows};
    for (uint32_t i = 0; i < axes; i++)
        range = mesh_part(range, &mesh->axis[i], mesh->axis[i].at);
    return range;
}

/* A ring reduce-scatter or all-gather of the range `rows` of x along one axis. */
static inline void mesh_ring(struct pipeline *pipeline, const struct rank_ring *ring, struct tl_shard x,
                             struct indices rows, bool reduce)
{
    uint64_t p = ring->count, row_elements = x.shape[1], longest = block_longest(rows.count, p) * row_elements;
    struct tl_shard all = flattened(x);
    for (uint64_t base = 0; base < longest; base += pipeline->segment)
        for (uint64_t step = 0; step < p; step++) {
            bool first = step == 0, last = step == p - 1, load = reduce || first, store = reduce ? last : !first;
            struct indices block = mesh_part(rows, ring, (ring->at + 2 * p - step - reduce) % p);
            struct indices elements = {block.first * row_elements, block.count * row_elements};
            struct indices range = range_window(elements, base, pipeline->segment);
            unsigned actions = (first ? 0 : PIPELINE_RECV) | (load ? PIPELINE_LOAD : 0) | (last ? 0 : PIPELINE_SEND) |
                               (store ? PIPELINE_STORE : 0);
            struct tl_shard part = subrange(pipeline->tl, all, range);
            pipeline_push(pipeline, &(struct segment){
                actions, ring_behind(ring, 1), ring_ahead(ring, 1), part, part, range.count});
        }
    pipeline_drain(pipeline);
}

/* Leaves the sum of all PEs' x in this PE's part of the rows, mesh_rows(mesh, x.shape[0], mesh->axes). The other rows
 * hold partial sums or what they held before. */
static inline void mesh_reduce_scatter(struct pipeline *pipeline, const struct mesh *mesh, struct tl_shard x)
{
    for (uint32_t i = 0; i < mesh->axes; i++)
        if (mesh->axis[i].count > 1)
            mesh_ring(pipeline, &mesh->axis[i], x, mesh_rows(mesh, x.shape[0], i), true);
}

/* Copies every PE's part of the rows into all PEs' x. */
static inline void mesh_all_gather(struct pipeline *pipeline, const struct mesh *mesh, struct tl_shard x)
{
    for (uint32_t i = mesh->axes; i-- > 0;)
        if (mesh->axis[i].count > 1)
            mesh_ring(pipeline, &mesh->axis[i], x, mesh_rows(mesh, x.shape[0], i), false);
}

#endif
