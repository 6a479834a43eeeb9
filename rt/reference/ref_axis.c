/* ref_axis.c: references of what joins the elements along an axis: reductions, softmax, norms. In f64; integers add up
 * in i32.
 *
 * A sum of n elements is a dot product with ones: s is sqrt(n) times the largest of them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/fail.h"
#include "machine/tiling.h"
#include "reference.h"
#include "common/arena.h"

/* Elements along an axis, of which there are `count` at equal distances. */
struct line {
    const double *at;
    uint64_t count, stride;
};

/* The lines along an axis; line i begins `line_start(l, i)` elements from the first one. */
struct lines {
    uint64_t number, count, stride;
};

static struct lines lines_along(const struct gathered *g, uint32_t axis)
{
    struct lines lines = {.count = g->dims.size[axis], .stride = 1};
    for (uint32_t i = axis + 1; i < g->dims.rank; i++)
        lines.stride *= g->dims.size[i];
    lines.number = g->elements / lines.count;
    return lines;
}

static struct line line_of(const struct gathered *g, const struct lines *lines, uint64_t i)
{
    const double *first = g->f64 + i / lines->stride * lines->stride * lines->count + i % lines->stride;
    return (struct line){first, lines->count, lines->stride};
}

/* ---- reductions */

static double sum(struct line line)
{
    double total = 0;
    for (uint64_t i = 0; i < line.count; i++)
        total += line.at[i * line.stride];
    return total;
}

static double mean(struct line line)
{
    return sum(line) / (double)line.count;
}

static double most(struct line line)
{
    double found = line.at[0];
    for (uint64_t i = 1; i < line.count; i++) {
        double x = line.at[i * line.stride];
        found = isnan(x) || x > found ? x : found;
    }
    return found;
}

static double least(struct line line)
{
    double found = line.at[0];
    for (uint64_t i = 1; i < line.count; i++) {
        double x = line.at[i * line.stride];
        found = isnan(x) || x < found ? x : found;
    }
    return found;
}

static const struct reduction {
    const char *name;
    double (*of)(struct line line);
    bool adds;
} reductions[] = {{"sum", sum, true}, {"mean", mean, true}, {"max", most, false}, {"min", least, false}};

/* Of integers f64 holds every sum; i32 is what remains of it. */
static double whole(const struct reduction *reduction, struct line line)
{
    double total = dtype_wrapped(DTYPE_i32, (int64_t)(reduction->adds ? sum(line) : reduction->of(line)));
    return reduction->of == mean ? trunc(total / (double)line.count) : total;
}

static const struct reduction *reduction_of(const char *op)
{
    const struct reduction *found = reductions;
    while (strcmp(found->name, op))
        found++;
    return found;
}

kb_ref kb_ref_along_at(const char *op, struct kb_values x, uint32_t axis, const char *file, uint32_t line)
{
    const struct reduction *reduction = reduction_of(op);
    struct ref_call call = {arena_printf("kb_ref_%s", op), file, line};
    ref_begin(&call);
    struct gathered g = gather(&call, x, true);
    if (axis >= g.dims.rank)
        misuse(file, line, "%s: '%s' has %u axes, there is no axis %u", call.name, g.name, (unsigned)g.dims.rank,
               (unsigned)axis);
    bool floats = dtype_is_float(g.dtype);
    struct lines lines = lines_along(&g, axis);
    double *to = reference_room(lines.number, sizeof *to), root = sqrt((double)lines.count);
    for (uint64_t i = 0; i < lines.number; i++)
        to[i] = floats ? reduction->of(line_of(&g, &lines, i)) : whole(reduction, line_of(&g, &lines, i));
    double scale = reduction->adds ? root * (g.max + g.error) : g.error;
    struct kb_dims dims = g.dims;
    dims.size[axis] = 1;
    struct reference *ref = reference_computed(dims, floats ? g.dtype : DTYPE_i32, to,
                                               reduction->of == mean ? scale / (double)lines.count : scale);
    ref->exact = !floats || (!reduction->adds && g.exact);
    ref->wraps = !floats;
    gathered_free(&g);
    return ref_end(ref);
}

/* ---- rows: softmax and norms along the last axis */

static struct gathered gather_floats(const struct ref_call *call, struct kb_values x)
{
    struct gathered g = gather(call, x, true);
    if (!dtype_is_float(g.dtype))
        misuse(call->file, call->line, "%s: '%s' is of %s; floats are needed", call->name, g.name,
               dtype_words[g.dtype]);
    return g;
}

/* No result is steeper than one along any of x. */
kb_ref kb_ref_softmax_at(struct kb_values x, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_softmax", file, line};
    ref_begin(&call);
    struct gathered g = gather_floats(&call, x);
    uint64_t columns = g.dims.size[g.dims.rank - 1];
    double *to = reference_room(g.elements, sizeof *to);
    for (uint64_t row = 0; row < g.elements; row += columns) {
        struct line of = {g.f64 + row, columns, 1};
        double largest = most(of), total = 0;
        for (uint64_t i = 0; i < columns; i++)
            total += to[row + i] = exp(of.at[i] - largest);
        for (uint64_t i = 0; i < columns; i++)
            to[row + i] /= total;
    }
    struct reference *ref = reference_computed(g.dims, g.dtype, to, g.error);
    gathered_free(&g);
    return ref_end(ref);
}

/* A row of n elements, or a number. */
static struct gathered gather_row(const struct ref_call *call, struct kb_values from, uint64_t columns)
{
    struct gathered g = gather_floats(call, from);
    gathered_check_row(call, &g, columns, true);
    return g;
}

static double row_value(const struct gathered *g, uint64_t i)
{
    return g->f64[g->elements == 1 ? 0 : i];
}

/* One row: (x - centre) / size * gain + bias. Differences and quotients keep what x is off by, in units of `size`. */
struct norm {
    struct gathered x, gain, bias;
    double eps, scale;
    bool centred;
};

static void norm_row(struct norm *norm, const double *from, double *to, uint64_t columns)
{
    struct line line = {from, columns, 1};
    double centre = norm->centred ? mean(line) : 0, squares = 0, largest = 0;
    for (uint64_t i = 0; i < columns; i++) {
        squares += (from[i] - centre) * (from[i] - centre);
        largest = fmax(largest, fabs(from[i]));
    }
    double size = sqrt(squares / (double)columns + norm->eps);
    for (uint64_t i = 0; i < columns; i++)
        to[i] = (from[i] - centre) / size * row_value(&norm->gain, i) + row_value(&norm->bias, i);
    double off = (largest + 2 * norm->x.error) / size * norm->gain.max;
    if (off > norm->scale && off < (double)INFINITY)
        norm->scale = off;
}

static kb_ref normed(const struct ref_call *call, struct norm *norm, struct kb_values x, struct kb_values gain,
                     struct kb_values bias)
{
    ref_begin(call);
    norm->x = gather_floats(call, x);
    uint64_t columns = norm->x.dims.size[norm->x.dims.rank - 1];
    norm->gain = gather_row(call, gain, columns);
    norm->bias = gather_row(call, bias, columns);
    double *to = reference_room(norm->x.elements, sizeof *to);
    for (uint64_t row = 0; row < norm->x.elements; row += columns)
        norm_row(norm, norm->x.f64 + row, to + row, columns);
    struct reference *ref = reference_computed(norm->x.dims, norm->x.dtype, to, norm->scale);
    gathered_free(&norm->x);
    gathered_free(&norm->gain);
    gathered_free(&norm->bias);
    return ref_end(ref);
}

kb_ref kb_ref_layernorm_at(struct kb_values x, struct kb_values gain, struct kb_values bias, double eps,
                           const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_layernorm", file, line};
    return normed(&call, &(struct norm){.eps = eps, .centred = true}, x, gain, bias);
}

kb_ref kb_ref_rmsnorm_at(struct kb_values x, struct kb_values gain, double eps, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_rmsnorm", file, line};
    struct kb_values none = {.is_number = true};
    return normed(&call, &(struct norm){.eps = eps}, x, gain, none);
}
