/* sobol.c: Sobol's sequence in the order of Gray codes, by the directions of Joe and Kuo. A seed other than 0 shifts it: its
 * points in base 2 are added without carry to a random point, which keeps their even distribution. */
#include "sobol.h"

#include "../../rt/common/arena.h"
#include "draw.h"

enum { BITS = 64, DEGREE_MOST = 18 };

struct directions {
    uint8_t degree;
    uint32_t coefficients, initial[DEGREE_MOST];
};

static const struct directions rows[] = {
#define DIRECTIONS(s, a, ...) {s, a, {__VA_ARGS__}},
#include "sobol.def"
};
enum { AXES_MOST = COUNT_OF(rows) + 1 };

/* What the points of a search have in common, by axis. */
struct sobol {
    uint64_t shift;
    uint64_t direction[BITS];                           /* by bit of the Gray code; fractions of 2^64 */
};

/* Bratley and Fox, "Algorithm 659", ACM TOMS 14 (1988). */
static void expand(const struct directions *row, uint64_t *direction)
{
    unsigned degree = row->degree;
    for (unsigned i = 0; i < BITS; i++) {
        if (i < degree) {
            direction[i] = (uint64_t)row->initial[i] << (BITS - 1 - i);
            continue;
        }
        direction[i] = direction[i - degree] ^ direction[i - degree] >> degree;
        for (unsigned k = 1; k < degree; k++)
            if (row->coefficients >> (degree - 1 - k) & 1)
                direction[i] ^= direction[i - k];
    }
}

static const char *sobol_refusal(const struct method_space *space)
{
    if (space->axis_count <= AXES_MOST)
        return NULL;
    return arena_printf("sobol has directions for %d keys, and the space has %zu; lhs and random take any number", AXES_MOST,
                        space->axis_count);
}

static void sobol_begin(struct method *method)
{
    const struct method_space *space = method->space;
    struct sobol *axes = arena_alloc(space->axis_count, sizeof *axes);
    for (size_t i = 0; i < space->axis_count; i++) {
        axes[i].shift = space->seed ? draw_bits(space->seed, STREAM_shift, 0, (uint32_t)i) : 0;
        if (i > 0)
            expand(&rows[i - 1], axes[i].direction);
        else
            for (unsigned bit = 0; bit < BITS; bit++)
                axes[i].direction[bit] = UINT64_C(1) << (BITS - 1 - bit);
    }
    method->state = axes;
    method->total = method->known = METHOD_ENDLESS;
}

static void sobol_point(const struct method *method, uint64_t number, uint32_t *levels)
{
    const struct method_space *space = method->space;
    const struct sobol *axes = method->state;
    for (size_t i = 0; i < space->axis_count; i++) {
        uint64_t place = axes[i].shift;
        for (uint64_t gray = number ^ number >> 1; gray; gray &= gray - 1)
            place ^= axes[i].direction[__builtin_ctzll(gray)];
        levels[i] = (uint32_t)draw_scale(place, space->axes[i].count);
    }
}

const struct method_kind method_sobol = {.refusal = sobol_refusal, .begin = sobol_begin, .point = sobol_point};
