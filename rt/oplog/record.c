/* record.c: the records of the op log, packed and unpacked. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "machine/command.h"
#include "machine/emitted.h"
#include "machine/tiling.h"
#include "common/diag.h"

static const uint64_t most_elements = UINT64_C(1) << 60;

/* ---- views */

static void pack_view(struct packed *to, const struct view *view)
{
    pack_u64(to, view->memory);
    pack_u64(to, view->dtype << 3 | view->rank);
    pack_u64(to, view->offset);
    for (uint32_t axis = 0; axis < view->rank; axis++) {
        pack_u64(to, view->shape[axis]);
        pack_u64(to, view->stride[axis]);
    }
}

/* Whether all of it lies in its memory. */
static bool view_is_within(const struct view *view)
{
    uint64_t size = store_bytes(view->memory);
    uint64_t elements = 1, last = 0, way, bytes;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++) {
        if (__builtin_mul_overflow(elements, view->shape[axis], &elements) || elements > most_elements)
            return false;
        if (elements && (__builtin_mul_overflow(view->shape[axis] - 1, view->stride[axis], &way)
                         || __builtin_add_overflow(last, way, &last)))
            return false;
    }
    return last < most_elements && !__builtin_add_overflow(view->offset, (last + 1) * dtype_bytes[view->dtype], &bytes)
        && (bytes <= size || elements == 0);
}

static struct view unpack_view(struct unpacking *from)
{
    struct view view = {.memory = (uint32_t)unpack_below(from, store_count()),
                        .shape = {1, 1, 1, 1}};
    uint64_t form = unpack_below(from, DTYPES << 3);
    view.dtype = (enum dtype)(form >> 3);
    view.rank = form & 7;
    view.offset = unpack_u64(from);
    from->bad |= view.rank > VIEW_RANK;
    for (uint32_t axis = 0; axis < view.rank && !from->bad; axis++) {
        view.shape[axis] = unpack_u64(from);
        view.stride[axis] = unpack_u64(from);
    }
    from->bad |= !from->bad && !view_is_within(&view);
    return view;
}

/* ---- what operations do */

static void pack_gemm(struct packed *to, const struct gemm *gemm)
{
    pack_view(to, &gemm->a);
    pack_view(to, &gemm->b);
    pack_view(to, &gemm->c);
    pack_u64(to, gemm->tile_m);
    pack_u64(to, gemm->tile_k);
    pack_u64(to, gemm->tile_n);
    for (uint32_t i = 0; i < gemm->epilogues; i++) {
        const struct gemm_epilogue *e = &gemm->epilogue[i];
        pack_u64(to, e->op);
        pack_u64(to, (uint64_t)e->scope << 2 | e->has_operand << 1 | e->has_scalar);
        if (e->has_operand)
            pack_view(to, &e->operand);
        if (e->has_scalar)
            pack_double(to, e->scalar);
    }
}

static void unpack_gemm(struct unpacking *from, struct gemm *gemm, struct gemm_epilogue *epilogue)
{
    gemm->a = unpack_view(from);
    gemm->b = unpack_view(from);
    gemm->c = unpack_view(from);
    gemm->tile_m = unpack_u64(from);
    gemm->tile_k = unpack_u64(from);
    gemm->tile_n = unpack_u64(from);
    gemm->epilogue = epilogue;
    for (uint32_t i = 0; i < gemm->epilogues; i++) {
        struct gemm_epilogue *e = &epilogue[i];
        *e = (struct gemm_epilogue){.op = (uint16_t)unpack_below(from, kb_shape.ops)};
        uint64_t form = unpack_below(from, SCOPES << 2);
        e->scope = (uint8_t)(form >> 2);
        e->has_operand = form & 2;
        e->has_scalar = form & 1;
        if (e->has_operand)
            e->operand = unpack_view(from);
        if (e->has_scalar)
            e->scalar = unpack_double(from);
    }
    from->bad |= !gemm->tile_m || !gemm->tile_k || !gemm->tile_n;
}

static void pack_math(struct packed *to, const struct math *math)
{
    pack_u64(to, math->op);
    pack_u64(to, math->operands);
    pack_u64(to, math->relation);
    pack_i64(to, math->axis);
    pack_u64(to, math->has_scalar);
    pack_u64(to, math->tile_m);
    pack_u64(to, math->tile_n);
    pack_view(to, &math->to);
    for (unsigned i = 0; i < math_views(math); i++)
        pack_view(to, &math->operand[i]);
    if (math->has_scalar)
        pack_double(to, math->scalar);
}

static void unpack_math(struct unpacking *from, struct math *math)
{
    *math = (struct math){.op = (uint16_t)unpack_below(from, kb_shape.ops)};
    math->operands = (uint8_t)unpack_below(from, MATH_OPERANDS + 1);
    math->relation = (uint8_t)unpack_below(from, RELATIONS);
    math->axis = (int8_t)unpack_i64(from);
    math->has_scalar = unpack_below(from, 2);
    math->tile_m = unpack_u64(from);
    math->tile_n = unpack_u64(from);
    math->to = unpack_view(from);
    from->bad |= math->operands == 0;
    for (unsigned i = 0; !from->bad && i < math_views(math); i++)
        math->operand[i] = unpack_view(from);
    if (math->has_scalar)
        math->scalar = unpack_double(from);
}

static void pack_fill(struct packed *to, uint64_t tensor, const struct fill *fill)
{
    pack_u64(to, tensor);
    pack_u64(to, fill->kind);
    pack_double(to, fill->x);
    pack_double(to, fill->y);
}

static void unpack_fill(struct unpacking *from, const struct names *names, struct fill *fill)
{
    uint64_t number = unpack_below(from, names->tensors);
    fill->tensor = from->bad ? NULL : names->tensor[number];
    fill->kind = (enum kb_fill_kind)unpack_below(from, KB_GIVEN + 1);
    fill->x = unpack_double(from);
    fill->y = unpack_double(from);
    from->bad |= !fill->tensor;
}

/* ---- operations */

enum op_form { FORM_copy, FORM_fill, FORM_gemm, FORM_math, FORMS };

static enum op_form form_of(const struct op *op)
{
    return op->kind == OPKIND_gemm ? FORM_gemm : op->kind == OPKIND_math ? FORM_math
           : op->pe == OP_OF_HOST ? FORM_fill : FORM_copy;
}

void record_op(struct packed *to, struct names *names, struct record_state *state, const struct op *op)
{
    enum op_form form = form_of(op);
    uint64_t site = names_site(names, &(struct site){op->name, op->kernel, op->file, op->line}, to);
    uint64_t tensor = form == FORM_fill ? names_tensor(names, op->fill.tensor, to) : 0;
    pack_u64(to, RECORD_op);
    pack_u64(to, form);
    pack_u64(to, form == FORM_gemm ? op->gemm.epilogues : 0);
    pack_u64(to, op->afters);
    pack_u64(to, site);
    pack_u64(to, (uint64_t)(op->pe + 1));
    pack_i64(to, (int64_t)(op->at_ps - state->t_ps));
    pack_u64(to, op->serial);
    pack_u64(to, op->command);
    pack_u64(to, op->sent ? state->id + 1 - op->sent : 0);
    for (uint32_t i = 0; i < op->afters; i++)
        pack_u64(to, op->command - op->after[i]);
    switch (form) {
    case FORM_copy:
        pack_view(to, &op->copy.from);
        pack_view(to, &op->copy.to);
        break;
    case FORM_fill: pack_fill(to, tensor, &op->fill); break;
    case FORM_gemm: pack_gemm(to, &op->gemm); break;
    default: pack_math(to, &op->math);
    }
    state->t_ps = op->at_ps;
    state->id++;
}

/* How far back another operation lies; 0: there is none. Gives 1 + its id, or 0. */
static uint64_t unpack_earlier(struct unpacking *from, const struct record_state *state)
{
    uint64_t back = unpack_below(from, state->id + 1);
    return back ? state->id + 1 - back : 0;
}

static uint64_t given_bytes(const struct op *op)
{
    const struct tensor *tensor = op->fill.tensor;
    return op->fill.kind == KB_GIVEN ? tensor->elements * dtype_bytes[tensor->dtype] : 0;
}

/* The operation with room behind it. */
static void *op_grow(struct op **op, uint64_t bytes)
{
    uint64_t size = (sizeof **op + 15) & ~UINT64_C(15);
    struct op *larger = bytes > SIZE_MAX / 2 ? NULL : realloc(*op, size + bytes);
    if (!larger)
        die("no memory for a record of the op log:");
    *op = larger;
    return (uint8_t *)larger + size;
}

static struct op *unpack_op(struct unpacking *from, const struct names *names, struct record_state *state)
{
    enum op_form form = (enum op_form)unpack_below(from, FORMS);
    uint64_t epilogues = unpack_count(from), afters = unpack_count(from);
    struct op *op = NULL;
    struct gemm_epilogue *epilogue = op_grow(&op, epilogues * sizeof *epilogue + afters * sizeof *op->after);
    uint32_t *after = (uint32_t *)(epilogue + epilogues);
    uint64_t site = unpack_below(from, names->sites);
    const struct site *from_site = from->bad ? &(struct site){0} : &names->site[site];
    *op = (struct op){.id = state->id, .name = from_site->name, .kernel = from_site->kernel, .file = from_site->file,
                      .line = from_site->line, .afters = (uint32_t)afters, .after = after};
    op->pe = (int64_t)unpack_below(from, pe_count() + UINT64_C(1)) - 1;
    op->at_ps = state->t_ps += (uint64_t)unpack_i64(from);
    op->serial = (uint32_t)unpack_u64(from);
    op->command = (uint32_t)unpack_u64(from);
    op->sent = unpack_earlier(from, state);
    for (uint64_t i = 0; i < afters; i++)
        after[i] = op->command - (uint32_t)unpack_below(from, op->command + UINT64_C(1));
    op->kind = form == FORM_gemm ? OPKIND_gemm : form == FORM_math ? OPKIND_math : OPKIND_memory;
    from->bad |= (op->pe == OP_OF_HOST) != (form == FORM_fill);
    op->gemm.epilogues = (uint32_t)epilogues;
    if (form == FORM_gemm)
        unpack_gemm(from, &op->gemm, epilogue);
    else if (form == FORM_math)
        unpack_math(from, &op->math);
    else if (form == FORM_copy)
        op->copy.from = unpack_view(from), op->copy.to = unpack_view(from);
    else
        unpack_fill(from, names, &op->fill);
    if (form == FORM_fill && !from->bad) {
        void *given = op_grow(&op, given_bytes(op));
        op->fill.given = given;
    }
    state->id++;
    return op;
}

/* ---- all others */

void record_services(struct packed *to, struct record_state *state, const struct services *s)
{
    pack_u64(to, RECORD_services);
    pack_u64(to, s->id);
    pack_i64(to, (int64_t)(s->start_ps - state->t_ps));
    pack_u64(to, s->end_ps - s->start_ps);
    pack_u64(to, s->node);
    pack_u64(to, s->services);
}

void record_tile(struct packed *to, struct record_state *state, const struct tile_stage *t)
{
    pack_u64(to, RECORD_tile);
    pack_u64(to, t->id);
    pack_u64(to, t->tile);
    pack_u64(to, t->stage);
    pack_u64(to, t->node);
    pack_i64(to, (int64_t)(t->start_ps - state->t_ps));
    pack_u64(to, t->end_ps - t->start_ps);
    state->t_ps = t->start_ps;
}

void record_content(struct packed *to, struct names *names, const struct content *content)
{
    uint64_t tensor = names_tensor(names, (struct tensor *)content->tensor, to);
    pack_u64(to, RECORD_content);
    pack_u64(to, tensor);
    pack_bytes(to, &content->hash, sizeof content->hash);
}

void record_bytes(struct packed *to, const void *bytes, size_t count)
{
    pack_u64(to, RECORD_bytes);
    pack_u64(to, count);
    pack_bytes(to, bytes, count);
}

void record_end(struct packed *to, const struct ending *ending)
{
    pack_u64(to, RECORD_end);
    pack_u64(to, ending->ops);
    pack_u64(to, ending->good);
}

static void unpack_services(struct unpacking *from, const struct record_state *state, struct services *s)
{
    s->id = unpack_below(from, state->id);
    s->start_ps = state->t_ps + (uint64_t)unpack_i64(from);
    s->end_ps = s->start_ps + unpack_u64(from);
    s->node = (uint32_t)unpack_below(from, node_count());
    s->services = (uint32_t)unpack_u64(from);
}

static void unpack_tile(struct unpacking *from, struct record_state *state, struct tile_stage *t)
{
    t->id = unpack_below(from, state->id);
    t->tile = unpack_u64(from);
    t->stage = (uint32_t)unpack_u64(from);
    t->node = (uint32_t)unpack_below(from, node_count());
    t->start_ps = state->t_ps += (uint64_t)unpack_i64(from);
    t->end_ps = t->start_ps + unpack_u64(from);
}

static void unpack_content(struct unpacking *from, const struct names *names, struct content *content)
{
    uint64_t number = unpack_below(from, names->tensors);
    const void *hash = unpack_bytes(from, sizeof content->hash);
    content->tensor = from->bad ? NULL : names->tensor[number];
    from->bad |= !content->tensor;
    if (hash)
        memcpy(&content->hash, hash, sizeof content->hash);
}

static void read_fields(struct unpacking *from, struct names *names, struct record_state *state, struct record *record)
{
    switch (record->kind) {
    case RECORD_text: names_read_text(names, from); break;
    case RECORD_site: names_read_site(names, from); break;
    case RECORD_tensor: names_read_tensor(names, from); break;
    case RECORD_op: record->op = unpack_op(from, names, state); break;
    case RECORD_services: unpack_services(from, state, &record->services); break;
    case RECORD_tile: unpack_tile(from, state, &record->tile); break;
    case RECORD_content: unpack_content(from, names, &record->content); break;
    case RECORD_end:
        record->ending.ops = unpack_u64(from);
        record->ending.good = unpack_below(from, 2);
        break;
    case RECORD_bytes: {
        uint64_t count = unpack_u64(from);
        record->bytes.at = unpack_bytes(from, count);
        record->bytes.end = record->bytes.at ? record->bytes.at + count : NULL;
        break;
    }
    default: from->bad = true;
    }
}

bool record_read(struct unpacking *from, struct names *names, struct record_state *state, struct record *record)
{
    do {
        if (from->at == from->end || from->bad)
            return false;
        *record = (struct record){.kind = (enum record_kind)unpack_below(from, RECORDS)};
        read_fields(from, names, state, record);
    } while (record->kind <= RECORD_tensor && !from->bad);
    if (from->bad && record->kind == RECORD_op)
        free(record->op);
    return !from->bad;
}
