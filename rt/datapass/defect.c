/* defect.c: the kinds of defects: which operations they fit, and what they make of their records. */
#include "defect.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "exec.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "store/allocator.h"

/* ---- the views of an operation */

enum { READS = MATH_OPERANDS };

static unsigned reads_of(struct op *op, struct view *views[READS])
{
    if (op->kind == OPKIND_gemm) {
        views[0] = &op->gemm.a;
        views[1] = &op->gemm.b;
        return 2;
    }
    if (op->kind == OPKIND_memory) {
        views[0] = &op->copy.from;
        return 1;
    }
    for (unsigned i = 0; i < math_views(&op->math); i++)
        views[i] = &op->math.operand[i];
    return math_views(&op->math);
}

static struct view *written_by(struct op *op)
{
    return op->kind == OPKIND_gemm ? &op->gemm.c : op->kind == OPKIND_math ? &op->math.to : &op->copy.to;
}

static bool receives(const struct op *op)
{
    return op->sent != 0;
}

/* Returns the first axis with more than one element, or VIEW_RANK if each has one. */
static unsigned first_axis(const struct view *view)
{
    unsigned axis = 0;
    while (axis < VIEW_RANK && view->shape[axis] < 2)
        axis++;
    return axis;
}

/* Space for a view's elements, without gaps, that nothing else uses. */
static struct view staging_for(const struct view *view, int64_t pe)
{
    struct view staging = view_without_gaps(view);
    staging.memory = store_staging();
    staging.offset = allocator_staging((uint32_t)pe, STAGING_OF_DEFECTS, view_bytes_of(view));
    return staging;
}

static struct view bytes_of(const struct view *view)
{
    return view_bytes(view->memory, view->offset, view_span(view));
}

/* ---- the operations before one, by PE */

enum { RECENT = 8 };

struct before {
    struct recent {
        uint64_t id;
        struct view to;                                 /* rank 0: none */
    } received, wrote[RECENT];
    unsigned newest;
};

/* ---- which operations a kind fits: sets the operand and the earlier operation */

static bool skipped_fits(struct op *op, const struct before *before, struct defect *defect)
{
    (void)before, (void)defect;
    return !receives(op);
}

static bool can_shift(const struct view *view)
{
    unsigned axis = first_axis(view);
    return axis < VIEW_RANK && view->stride[axis] &&
           view->offset + view_span(view) + view->stride[axis] * dtype_bytes[view->dtype] <= store_bytes(view->memory);
}

static bool shifted_fits(struct op *op, const struct before *before, struct defect *defect)
{
    struct view *views[READS];
    unsigned count = reads_of(op, views), can = 0, fit[READS];
    (void)before;
    for (unsigned i = 0; i < count; i++)
        if (can_shift(views[i]))
            fit[can++] = i;
    if (can)
        defect->operand = fit[defect->random % can];
    return can > 0;
}

static bool k_tile_fits(struct op *op, const struct before *before, struct defect *defect)
{
    (void)before, (void)defect;
    return op->kind == OPKIND_gemm && op->gemm.tile_k && op->gemm.a.shape[1] > op->gemm.tile_k;
}

/* The axis along which a result has several tiles, and their size along it. A result of one tile is cut in two. */
static unsigned tiles_of(const struct op *op, const struct view *to, uint64_t *size)
{
    uint64_t tile[2] = {0};
    if (op->kind == OPKIND_gemm)
        tile[0] = op->gemm.tile_m, tile[1] = op->gemm.tile_n;
    if (op->kind == OPKIND_math)
        tile[0] = op->math.tile_m, tile[1] = op->math.tile_n;
    for (unsigned axis = 0; axis < 2; axis++)
        if ((*size = tile[axis]) && to->shape[axis] >= 2 * tile[axis])
            return axis;
    unsigned axis = first_axis(to);
    *size = axis < VIEW_RANK ? to->shape[axis] / 2 : 0;
    return axis;
}

static bool swapped_fits(struct op *op, const struct before *before, struct defect *defect)
{
    uint64_t size;
    (void)before, (void)defect;
    return tiles_of(op, written_by(op), &size) < VIEW_RANK;
}

static bool lost_fits(struct op *op, const struct before *before, struct defect *defect)
{
    (void)before, (void)defect;
    return receives(op);
}

static bool doubled_fits(struct op *op, const struct before *before, struct defect *defect)
{
    const struct view *to = &op->copy.to, *first = &before->received.to;
    if (!receives(op) || !first->rank || to->dtype != first->dtype || memcmp(to->shape, first->shape, sizeof to->shape))
        return false;
    defect->earlier = before->received.id;
    return true;
}

static bool changed_fits(struct op *op, const struct before *before, struct defect *defect)
{
    (void)before, (void)defect;
    return view_elements(written_by(op)) > 0;
}

static bool shortened_fits(struct op *op, const struct before *before, struct defect *defect)
{
    (void)before, (void)defect;
    if (op->kind == OPKIND_math)
        return op->math.axis != NO_AXIS && op->math.operand[0].shape[op->math.axis] > 1;
    return op->kind == OPKIND_gemm && op->gemm.a.shape[1] > 1;
}

static bool holds(const struct view *to, const struct view *part)
{
    return to->rank && to->memory == part->memory && to->offset <= part->offset &&
           to->offset + view_span(to) >= part->offset + view_span(part);
}

static bool stale_fits(struct op *op, const struct before *before, struct defect *defect)
{
    struct view *views[READS];
    unsigned count = reads_of(op, views);
    for (unsigned i = 0; i < count; i++) {
        defect->operand = (unsigned)((defect->random + i) % count);
        for (unsigned age = 0; age < RECENT; age++) {
            const struct recent *wrote = &before->wrote[(before->newest + RECENT - age) % RECENT];
            if (holds(&wrote->to, views[defect->operand])) {
                defect->earlier = wrote->id;
                return true;
            }
        }
    }
    return false;
}

/* ---- what a kind makes of them */

/* The records of the operation that the data pass gets instead of the one of the log. */
enum { MOST_RECORDS = 5 };

static struct {
    const struct defect *defect;
    struct op *made[MOST_RECORDS];
    unsigned count, taken;
    struct view staging;                                /* what the earlier operation has left for the later one, */
    uint64_t staged_from;                               /* and where that was */
} put_in;

static void give(struct op *op)
{
    put_in.made[put_in.count++] = op;
}

/* Another record in the name of an operation. */
static struct op *record_like(const struct op *op, enum op_kind kind)
{
    struct op *made = calloc(1, sizeof *made);
    if (!made)
        die("no memory for a defect:");
    *made = *op;
    made->kind = kind;
    made->afters = 0;
    made->after = NULL;
    return made;
}

static void give_copy(const struct op *op, const struct view *to, const struct view *from)
{
    struct op *made = record_like(op, OPKIND_memory);
    made->copy = (struct copy){.from = *from, .to = *to};
    give(made);
}

static void give_math(const struct op *op, uint16_t code, const struct view *to, const struct view *x,
                      const struct view *y, double scalar)
{
    struct op *made = record_like(op, OPKIND_math);
    made->math = (struct math){.op = code, .operands = 2, .axis = NO_AXIS, .to = *to, .operand = {*x},
                               .has_scalar = !y, .scalar = scalar};
    if (y)
        made->math.operand[1] = *y;
    give(made);
}

static void skipped_edit(struct op *op)
{
    free(op);
}

static void shifted_edit(struct op *op)
{
    struct view *views[READS];
    reads_of(op, views);
    struct view *view = views[put_in.defect->operand];
    view->offset += view->stride[first_axis(view)] * dtype_bytes[view->dtype];
    give(op);
}

static void gemm_drop(struct gemm *gemm, bool first, uint64_t terms)
{
    if (first) {
        gemm->a.offset += terms * gemm->a.stride[1] * dtype_bytes[gemm->a.dtype];
        gemm->b.offset += terms * gemm->b.stride[0] * dtype_bytes[gemm->b.dtype];
    }
    gemm->a.shape[1] -= terms;
    gemm->b.shape[0] -= terms;
}

static void k_tile_edit(struct op *op)
{
    struct gemm *gemm = &op->gemm;
    bool first = put_in.defect->random & 1;
    uint64_t last = (gemm->a.shape[1] - 1) % gemm->tile_k + 1;
    gemm_drop(gemm, first, first ? gemm->tile_k : last);
    give(op);
}

static void swapped_edit(struct op *op)
{
    struct view one = *written_by(op), other;
    uint64_t size;
    unsigned axis = tiles_of(op, &one, &size);
    uint64_t tile = put_in.defect->random % (one.shape[axis] / size - 1);
    uint64_t step = one.stride[axis] * dtype_bytes[one.dtype];
    one.shape[axis] = size;
    one.offset += tile * size * step;
    other = one;
    other.offset += size * step;
    struct view staging = staging_for(&one, op->pe);
    give(op);
    give_copy(op, &staging, &one);
    give_copy(op, &one, &other);
    give_copy(op, &other, &staging);
}

static void lost_edit(struct op *op)
{
    free(op);
}

static void doubled_earlier(struct op *op)
{
    put_in.staging = staging_for(&op->copy.to, op->pe);
    give_copy(op, &put_in.staging, &op->copy.from);
    give(op);
}

static void doubled_edit(struct op *op)
{
    op->copy.from = put_in.staging;
    give(op);
}

static void changed_edit(struct op *op)
{
    struct view one = *written_by(op);
    uint64_t element = put_in.defect->random % view_elements(&one);
    for (unsigned axis = VIEW_RANK; axis-- > 0;) {
        one.offset += element % one.shape[axis] * one.stride[axis] * dtype_bytes[one.dtype];
        element /= one.shape[axis];
        one.shape[axis] = 1;
    }
    give(op);
    if (dtype_is_float(one.dtype)) {
        give_math(op, OP_mul, &one, &one, NULL, 1.125);
        return;
    }
    struct view eighth = staging_for(&one, op->pe);     /* of an integer, at least 1 */
    give_math(op, OP_div, &eighth, &one, NULL, 8);
    give_math(op, OP_max, &eighth, &eighth, NULL, 1);
    give_math(op, OP_add, &one, &one, &eighth, 0);
}

static void shortened_edit(struct op *op)
{
    if (op->kind == OPKIND_gemm)
        gemm_drop(&op->gemm, put_in.defect->random & 1, 1);
    else
        op->math.operand[0].shape[op->math.axis]--;
    give(op);
}

static void stale_earlier(struct op *op)
{
    struct view old = bytes_of(written_by(op));
    put_in.staging = staging_for(&old, op->pe);
    put_in.staged_from = old.offset;
    give_copy(op, &put_in.staging, &old);
    give(op);
}

static void stale_edit(struct op *op)
{
    struct view *views[READS];
    reads_of(op, views);
    struct view *view = views[put_in.defect->operand];
    view->memory = put_in.staging.memory;
    view->offset += put_in.staging.offset - put_in.staged_from;
    give(op);
}

static const struct {
    bool (*fits)(struct op *op, const struct before *before, struct defect *defect);
    void (*earlier)(struct op *op);                     /* NULL: there is only one operation */
    void (*edit)(struct op *op);
} kinds[DEFECTS] = {
    [DEFECT_skipped] = {skipped_fits, NULL, skipped_edit},
    [DEFECT_shifted] = {shifted_fits, NULL, shifted_edit},
    [DEFECT_k_tile] = {k_tile_fits, NULL, k_tile_edit},
    [DEFECT_swapped] = {swapped_fits, NULL, swapped_edit},
    [DEFECT_lost] = {lost_fits, NULL, lost_edit},
    [DEFECT_doubled] = {doubled_fits, doubled_earlier, doubled_edit},
    [DEFECT_changed] = {changed_fits, NULL, changed_edit},
    [DEFECT_shortened] = {shortened_fits, NULL, shortened_edit},
    [DEFECT_stale] = {stale_fits, stale_earlier, stale_edit},
};

const char *const defect_names[DEFECTS] = {
#define DEFECT(name, words) #name,
    DEFECT_KINDS(DEFECT)
#undef DEFECT
};

const char *const defect_words[DEFECTS] = {
#define DEFECT(name, words) words,
    DEFECT_KINDS(DEFECT)
#undef DEFECT
};

/* ---- finding */

static void remember(struct before *before, struct op *op)
{
    const struct view *to = written_by(op);
    if (receives(op))
        before->received = (struct recent){op->id, *to};
    if (!view_is_dense(to))
        return;
    before->newest = (before->newest + 1) % RECENT;
    before->wrote[before->newest] = (struct recent){op->id, *to};
}

static void set_place(struct defect *defect, const struct op *op)
{
    defect->op = op->id;
    defect->name = op->name;
    defect->kernel = op->kernel;
    defect->file = op->file;
    defect->line = op->line;
    defect->pe = op->pe;
}

void defects_find(uint64_t counts[DEFECTS], struct defect *defects, uint64_t count)
{
    struct before *before = calloc(pe_count(), sizeof *before);
    struct oplog_reader reader;
    uint64_t next[DEFECTS] = {0};
    if (!before)
        die("no memory to look for places of defects:");
    memset(counts, 0, DEFECTS * sizeof *counts);
    for (unsigned kind = 0; kind < DEFECTS; kind++)
        while (next[kind] < count && defects[next[kind]].kind < kind)
            next[kind]++;
    oplog_read(&reader);
    for (struct op *op; (op = oplog_next(&reader)); free(op)) {
        if (op->pe == OP_OF_HOST)
            continue;
        for (unsigned kind = 0; kind < DEFECTS; kind++) {
            struct defect probe = {0};
            if (!kinds[kind].fits(op, &before[op->pe], &probe))
                continue;
            for (uint64_t *i = &next[kind]; *i < count && defects[*i].kind == kind && defects[*i].place == counts[kind];
                 ++*i) {
                kinds[kind].fits(op, &before[op->pe], &defects[*i]);
                set_place(&defects[*i], op);
            }
            counts[kind]++;
        }
        remember(&before[op->pe], op);
    }
    free(before);
}

/* ---- the data pass */

static struct op *next_with_defect(struct oplog_reader *reader)
{
    const struct defect *defect = put_in.defect;
    while (put_in.taken == put_in.count) {
        struct op *op = oplog_next(reader);
        put_in.taken = put_in.count = 0;
        if (op && op->id == defect->op)
            kinds[defect->kind].edit(op);
        else if (op && kinds[defect->kind].earlier && op->id == defect->earlier)
            kinds[defect->kind].earlier(op);
        else
            return op;
    }
    return put_in.made[put_in.taken++];
}

void defect_put_in(const struct defect *defect)
{
    put_in.defect = defect;
    exec_next = next_with_defect;
}
