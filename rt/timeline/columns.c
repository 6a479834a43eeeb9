/* columns.c: changes are added to their columns in any order of time. The sum up to a column is the integer at its begin. */
#include "columns.h"

#include "common/arena.h"

__attribute__((cold)) struct columns columns_make(uint64_t from_ps)
{
    return (struct columns){from_ps, COLUMN_BITS, 0, arena_alloc(COLUMNS_MOST, sizeof(struct column))};
}

/* Several columns become one, in which a change in one of them is there for the rest of it and for those behind. With
 * fewer than four at a time, that would happen more often. */
static __attribute__((cold, noinline)) void widen(struct columns *columns, uint64_t t_ps)
{
    unsigned more = 2;
    while ((t_ps - columns->from_ps) >> columns->bits >> more >= COLUMNS_MOST)
        more++;
    for (uint64_t i = 0; i < columns->used; i++) {
        struct column column = columns->at[i], *wide = &columns->at[i >> more];
        uint64_t behind = (((i >> more) + 1) << more) - 1 - i;
        columns->at[i] = (struct column){0, 0};
        wide->delta += column.delta;
        wide->area += column.area + (__int128)column.delta * (int64_t)(behind << columns->bits);
    }
    columns->bits += more;
    columns->used = (columns->used + (UINT64_C(1) << more) - 1) >> more;
}

static void change(struct columns *columns, uint64_t offset_ps, int64_t delta)
{
    uint64_t width_ps = UINT64_C(1) << columns->bits;
    struct column *column = &columns->at[offset_ps >> columns->bits];
    column->delta += delta;
    column->area += (__int128)delta * (int64_t)(width_ps - (offset_ps & (width_ps - 1)));
}

void columns_add(struct columns *columns, uint64_t begin_ps, uint64_t end_ps, int64_t amount)
{
    uint64_t begin = begin_ps - columns->from_ps, end = end_ps - columns->from_ps;
    if (end >> columns->bits >= COLUMNS_MOST)
        widen(columns, end_ps);
    columns->used = end >> columns->bits >= columns->used ? (end >> columns->bits) + 1 : columns->used;
    if (begin >> columns->bits == end >> columns->bits) {
        columns->at[begin >> columns->bits].area += (__int128)amount * (int64_t)(end - begin);
        return;
    }
    change(columns, begin, amount);
    change(columns, end, -amount);
}

__attribute__((cold)) void columns_tell(const struct columns *columns, uint64_t last_ps, uint32_t number,
                                       void (*tell)(uint32_t number, uint64_t t_ps, int64_t mean))
{
    int64_t value = 0, told = 0;                        /* behind the used columns, the integer is 0 */
    for (uint64_t i = 0; i < COLUMNS_MOST && i <= columns->used && columns->from_ps + (i << columns->bits) <= last_ps; i++) {
        const struct column *column = &columns->at[i];
        __int128 width = (__int128)1 << columns->bits;
        int64_t mean = (int64_t)((value * width + column->area + width - 1) >> columns->bits);
        value += column->delta;
        if (mean == told)
            continue;
        told = mean;
        tell(number, columns->from_ps + (i << columns->bits), mean);
    }
}
