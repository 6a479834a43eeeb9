/* array.c: growing arrays: elements keep their values, room and count. */
#include "common/array.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/fail.h"
#include "tap.h"

struct point {
    uint32_t x, y, z;
};

struct points ARRAY(struct point);

static int tests, status;
static jmp_buf caller;

static bool holds(const struct points *points, uint32_t count)
{
    bool good = points->count == count && points->room >= count;
    for (uint32_t i = 0; i < count && good; i++)
        good = points->at[i].x == i && points->at[i].y == 2 * i && points->at[i].z == 3 * i;
    return good;
}

static void quiet(const char *text, void *arg)
{
    (void)text, (void)arg;
}

static void leave(int with, void *arg)
{
    *(int *)arg = with;
    longjmp(caller, 1);
}

int main(void)
{
    struct points points = {0};
    bool good = true;
    unsigned moves = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        const struct point *before = points.at;
        *array_add(&points) = (struct point){i, 2 * i, 3 * i};
        moves += points.at != before;
        good &= i % 997 || holds(&points, i + 1);
    }
    expect(good && holds(&points, 100000), "all elements are there after each addition");
    expect(moves < 20, "the array moves a logarithmic number of times");
    const struct point *before = points.at;
    points.count = 0;
    *array_add(&points) = (struct point){0};
    expect(points.at == before && holds(&points, 1), "an emptied array keeps its memory");
    array_reserve(&points, 5000000);
    expect(points.room >= 5000000 && holds(&points, 1), "array_reserve makes room and keeps elements");
    array_reserve(&points, 10);
    expect(points.room >= 5000000, "array_reserve for less changes nothing");
    array_free(&points);
    expect(!points.at && !points.count && !points.room, "array_free leaves an empty array");
    fail_set_exit(leave, &status);
    message_set_take(quiet, NULL);
    if (!setjmp(caller))
        array_reserve(&points, SIZE_MAX / 4);
    expect(status == STATUS_HOST_FAILED, "a size beyond the address space is a failure of the host");
    return tests_end();
}
