/* record.c: the records of the op log, encoded and decoded; each encoder is followed by its decoder. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/hash.h"
#include "machine/command.h"
#include "machine/emitted.h"
#include "machine/tiling.h"

/* ---- interning: texts, sites, tensors */

static uint64_t text_number(struct interned *interned, const char *text, struct encoder *to)
{
    if (!text)
        return 0;
    for (uint64_t i = 0; i < interned->texts; i++)      /* few, and searched only for a new site */
        if (interned->text[i] == text)
            return 1 + i;
    interned->text = arena_grow(interned->text, interned->texts, sizeof *interned->text);
    interned->text[interned->texts++] = text;
    encode_u64(to, RECORD_text);
    encode_u64(to, interned->texts - 1);
    encode_u64(to, strlen(text));
    encode_bytes(to, text, strlen(text));
    return interned->texts;
}

static void decode_text(struct interned *interned, struct decoder *from)
{
    uint64_t number = decode_below(from, interned->texts + 1), length = decode_u64(from);
    const char *text = decode_bytes(from, length);
    if (!text || number < interned->texts)
        return;
    interned->text = arena_grow(interned->text, interned->texts, sizeof *interned->text);
    interned->text[interned->texts++] = arena_text(text, length);
}

static const char *decode_text_number(const struct interned *interned, struct decoder *from)
{
    uint64_t number = decode_below(from, interned->texts + 1);
    return number ? interned->text[number - 1] : NULL;
}

static bool same_site(const struct site *a, const struct site *b)
{
    return a->name == b->name && a->kernel == b->kernel && a->file == b->file && a->line == b->line;
}

/* The slot of a site, or the free slot where it belongs. */
static uint32_t *site_slot(const struct interned *interned, const struct site *site)
{
    unsigned bits = (unsigned)__builtin_ctzll(interned->slots);
    uint64_t key = (uintptr_t)site->name * 3 ^ (uintptr_t)site->kernel * 5 ^ (uintptr_t)site->file ^ site->line;
    for (uint64_t i = hash_bits(key, bits);; i++) {
        uint32_t *slot = &interned->slot[i & (interned->slots - 1)];
        if (!*slot || same_site(&interned->site[*slot - 1], site))
            return slot;
    }
}

static void slots_grow(struct interned *interned)
{
    interned->slots = interned->slots ? 2 * interned->slots : 64;
    interned->slot = arena_alloc(interned->slots, sizeof *interned->slot);
    for (uint64_t i = 0; i < interned->sites; i++)
        *site_slot(interned, &interned->site[i]) = (uint32_t)i + 1;
}

static void site_add(struct interned *interned, const struct site *site)
{
    if (2 * interned->sites >= interned->slots)
        slots_grow(interned);
    interned->site = arena_grow(interned->site, interned->sites, sizeof *interned->site);
    interned->site[interned->sites++] = *site;
    *site_slot(interned, site) = (uint32_t)interned->sites;
}

static uint64_t intern_site(struct interned *interned, const struct site *site, struct encoder *to)
{
    uint32_t *slot = interned->slots ? site_slot(interned, site) : NULL;
    if (slot && *slot)
        return *slot - 1;
    uint64_t name = text_number(interned, site->name, to), kernel = text_number(interned, site->kernel, to);
    uint64_t file = text_number(interned, site->file, to);
    site_add(interned, site);
    encode_u64(to, RECORD_site);
    encode_u64(to, interned->sites - 1);
    encode_u64(to, name);
    encode_u64(to, kernel);
    encode_u64(to, file);
    encode_u64(to, site->line);
    return interned->sites - 1;
}

static void decode_site(struct interned *interned, struct decoder *from)
{
    uint64_t number = decode_below(from, interned->sites + 1);
    struct site site = {.name = decode_text_number(interned, from)};
    site.kernel = decode_text_number(interned, from);
    site.file = decode_text_number(interned, from);
    site.line = (uint32_t)decode_u64(from);
    from->bad |= !site.name;
    if (!from->bad && number == interned->sites)
        site_add(interned, &site);
}

static void tensor_add(struct interned *interned, uint64_t number, struct tensor *tensor)
{
    while (interned->tensors <= number) {
        interned->tensor = arena_grow(interned->tensor, interned->tensors, sizeof *interned->tensor);
        interned->tensor[interned->tensors++] = NULL;
    }
    interned->tensor[number] = tensor;
}

static void encode_tensor(struct encoder *to, const struct tensor *t)
{
    encode_u64(to, RECORD_tensor);
    encode_u64(to, t->number);
    encode_u64(to, strlen(t->name));
    encode_bytes(to, t->name, strlen(t->name));
    encode_u64(to, t->dtype);
    encode_u64(to, t->place.split);
    encode_u64(to, t->dims.rank);
    for (uint32_t axis = 0; axis < t->dims.rank; axis++)
        encode_u64(to, t->dims.size[axis]);
    encode_u64(to, t->shards);
    for (uint32_t i = 0; i < t->shards; i++) {
        const struct shard *s = &t->shard[i];
        encode_u64(to, s->memory);
        encode_u64(to, s->offset);
        for (uint32_t axis = 0; axis < t->dims.rank; axis++) {
            encode_u64(to, s->view.first[axis]);
            encode_u64(to, s->view.shape[axis]);
        }
    }
}

static uint64_t intern_tensor(struct interned *interned, struct tensor *tensor, struct encoder *to)
{
    if (tensor->number >= interned->tensors || interned->tensor[tensor->number] != tensor) {
        tensor_add(interned, tensor->number, tensor);
        encode_tensor(to, tensor);
    }
    return tensor->number;
}

static void decode_shard(struct decoder *from, const struct tensor *t, struct shard *shard)
{
    struct tl_shard *view = &shard->view;
    *view = (struct tl_shard){.dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->dims.rank, .shape = {1, 1, 1, 1}};
    shard->memory = (uint32_t)decode_below(from, memory_count());
    shard->offset = decode_u64(from);
    shard->elements = 1;
    for (uint32_t axis = 0; axis < t->dims.rank; axis++) {
        view->first[axis] = decode_u64(from);
        view->shape[axis] = decode_u64(from);
        from->bad |= view->shape[axis] > t->dims.size[axis];
        from->bad |= view->first[axis] > t->dims.size[axis] - view->shape[axis];
        from->bad |= __builtin_mul_overflow(shard->elements, view->shape[axis], &shard->elements);
    }
    uint64_t size = from->bad ? 0 : memory_size(shard->memory), bytes;
    from->bad |= __builtin_mul_overflow(shard->elements, dtype_bytes[t->dtype], &bytes);
    from->bad |= shard->offset > size || bytes > size - shard->offset;
}

static void decode_tensor(struct interned *interned, struct decoder *from)
{
    enum { MOST = 1 << 20 };                            /* tensors: more than any run makes */
    struct tensor *t = arena_alloc(1, sizeof *t);
    t->number = (uint32_t)decode_below(from, MOST);
    uint64_t length = decode_count(from);
    const char *name = decode_bytes(from, length);
    t->name = name ? arena_text(name, length) : "";
    t->dtype = (enum dtype)decode_below(from, DTYPES);
    t->place.split = (enum kb_split)decode_below(from, KB_COPIES + 1);
    t->dims.rank = (uint32_t)decode_below(from, KB_RANK + 1);
    from->bad |= t->dims.rank < 1;
    t->elements = 1;
    for (uint32_t axis = 0; axis < t->dims.rank; axis++) {
        t->dims.size[axis] = decode_u64(from);
        from->bad |= __builtin_mul_overflow(t->elements, t->dims.size[axis], &t->elements);
    }
    t->shards = (uint32_t)decode_count(from);
    t->shard = arena_alloc(t->shards, sizeof *t->shard);
    for (uint32_t i = 0; i < t->shards && !from->bad; i++)
        decode_shard(from, t, &t->shard[i]);
    if (!from->bad && (t->number >= interned->tensors || !interned->tensor[t->number]))
        tensor_add(interned, t->number, t);
}

/* ---- views */

static const uint64_t most_elements = UINT64_C(1) << 60;

static void encode_view(struct encoder *to, const struct view *view)
{
    encode_u64(to, view->memory);
    encode_u64(to, view->dtype << 3 | view->rank);
    encode_u64(to, view->offset);
    for (uint32_t axis = 0; axis < view->rank; axis++) {
        encode_u64(to, view->shape[axis]);
        encode_u64(to, view->stride[axis]);
    }
}

/* Whether every element lies in the memory, without overflow on the way. */
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

static struct view decode_view(struct decoder *from)
{
    struct view view = {.memory = (uint32_t)decode_below(from, store_count()), .shape = {1, 1, 1, 1}};
    uint64_t form = decode_below(from, DTYPES << 3);
    view.dtype = (enum dtype)(form >> 3);
    view.rank = form & 7;
    view.offset = decode_u64(from);
    from->bad |= view.rank > VIEW_RANK;
    for (uint32_t axis = 0; axis < view.rank && !from->bad; axis++) {
        view.shape[axis] = decode_u64(from);
        view.stride[axis] = decode_u64(from);
    }
    from->bad |= !from->bad && !view_is_within(&view);
    return view;
}

/* ---- what operations do */

static void encode_gemm(struct encoder *to, const struct gemm *gemm)
{
    encode_view(to, &gemm->a);
    encode_view(to, &gemm->b);
    encode_view(to, &gemm->c);
    encode_u64(to, gemm->tile_m);
    encode_u64(to, gemm->tile_k);
    encode_u64(to, gemm->tile_n);
    for (uint32_t i = 0; i < gemm->epilogues; i++) {
        const struct gemm_epilogue *e = &gemm->epilogue[i];
        encode_u64(to, e->op);
        encode_u64(to, (uint64_t)e->scope << 2 | e->has_operand << 1 | e->has_scalar);
        if (e->has_operand)
            encode_view(to, &e->operand);
        if (e->has_scalar)
            encode_double(to, e->scalar);
    }
}

static void decode_gemm(struct decoder *from, struct gemm *gemm, struct gemm_epilogue *epilogue)
{
    gemm->a = decode_view(from);
    gemm->b = decode_view(from);
    gemm->c = decode_view(from);
    gemm->tile_m = decode_u64(from);
    gemm->tile_k = decode_u64(from);
    gemm->tile_n = decode_u64(from);
    gemm->epilogue = epilogue;
    for (uint32_t i = 0; i < gemm->epilogues; i++) {
        struct gemm_epilogue *e = &epilogue[i];
        *e = (struct gemm_epilogue){.op = (uint16_t)decode_below(from, KNOWN_OPS)};
        uint64_t form = decode_below(from, SCOPES << 2);
        e->scope = (uint8_t)(form >> 2);
        e->has_operand = form & 2;
        e->has_scalar = form & 1;
        if (e->has_operand)
            e->operand = decode_view(from);
        if (e->has_scalar)
            e->scalar = decode_double(from);
    }
    from->bad |= !gemm->tile_m || !gemm->tile_k || !gemm->tile_n;
}

static void encode_math(struct encoder *to, const struct math *math)
{
    encode_u64(to, math->op);
    encode_u64(to, math->operands);
    encode_u64(to, math->relation);
    encode_i64(to, math->axis);
    encode_u64(to, math->has_scalar);
    encode_u64(to, math->tile_m);
    encode_u64(to, math->tile_n);
    encode_view(to, &math->to);
    for (unsigned i = 0; i < math_views(math); i++)
        encode_view(to, &math->operand[i]);
    if (math->has_scalar)
        encode_double(to, math->scalar);
}

static void decode_math(struct decoder *from, struct math *math)
{
    *math = (struct math){.op = (uint16_t)decode_below(from, KNOWN_OPS)};
    math->operands = (uint8_t)decode_below(from, MATH_OPERANDS + 1);
    math->relation = (uint8_t)decode_below(from, RELATIONS);
    math->axis = (int8_t)decode_i64(from);
    math->has_scalar = decode_below(from, 2);
    math->tile_m = decode_u64(from);
    math->tile_n = decode_u64(from);
    math->to = decode_view(from);
    from->bad |= math->operands == 0;
    for (unsigned i = 0; !from->bad && i < math_views(math); i++)
        math->operand[i] = decode_view(from);
    if (math->has_scalar)
        math->scalar = decode_double(from);
}

static void encode_fill(struct encoder *to, uint64_t tensor, const struct fill *fill)
{
    encode_u64(to, tensor);
    encode_u64(to, fill->kind);
    encode_double(to, fill->x);
    encode_double(to, fill->y);
}

static void decode_fill(struct decoder *from, const struct interned *interned, struct fill *fill)
{
    uint64_t number = decode_below(from, interned->tensors);
    fill->tensor = from->bad ? NULL : interned->tensor[number];
    fill->kind = (enum kb_fill_kind)decode_below(from, KB_GIVEN + 1);
    fill->x = decode_double(from);
    fill->y = decode_double(from);
    from->bad |= !fill->tensor;
}

/* ---- operations */

enum op_form { FORM_copy, FORM_fill, FORM_gemm, FORM_math, FORMS };

static enum op_form form_of(const struct op *op)
{
    return op->kind == OPKIND_gemm ? FORM_gemm : op->kind == OPKIND_math ? FORM_math
           : op->pe == OP_OF_HOST ? FORM_fill : FORM_copy;
}

void record_op(struct encoder *to, struct interned *interned, struct record_state *state, const struct op *op)
{
    enum op_form form = form_of(op);
    uint64_t site = intern_site(interned, &(struct site){op->name, op->kernel, op->file, op->line}, to);
    uint64_t tensor = form == FORM_fill ? intern_tensor(interned, op->fill.tensor, to) : 0;
    encode_u64(to, RECORD_op);
    encode_u64(to, form);
    encode_u64(to, form == FORM_gemm ? op->gemm.epilogues : 0);
    encode_u64(to, op->afters);
    encode_u64(to, site);
    encode_u64(to, (uint64_t)(op->pe + 1));
    encode_i64(to, (int64_t)(op->at_ps - state->t_ps));
    encode_u64(to, op->serial);
    encode_u64(to, op->request);
    encode_u64(to, op->command);
    encode_u64(to, op->sent ? state->id + 1 - op->sent : 0);
    for (uint32_t i = 0; i < op->afters; i++)
        encode_u64(to, op->command - op->after[i]);
    switch (form) {
    case FORM_copy:
        encode_view(to, &op->copy.from);
        encode_view(to, &op->copy.to);
        break;
    case FORM_fill: encode_fill(to, tensor, &op->fill); break;
    case FORM_gemm: encode_gemm(to, &op->gemm); break;
    default: encode_math(to, &op->math);
    }
    state->t_ps = op->at_ps;
    state->id++;
}

/* Encoded: how many operations back the other one is, or 0. Returns 1 + its id, or 0. */
static uint64_t decode_earlier(struct decoder *from, const struct record_state *state)
{
    uint64_t back = decode_below(from, state->id + 1);
    return back ? state->id + 1 - back : 0;
}

static uint64_t given_bytes(const struct op *op)
{
    const struct tensor *tensor = op->fill.tensor;
    return op->fill.kind == KB_GIVEN ? tensor->elements * dtype_bytes[tensor->dtype] : 0;
}

/* Reallocates the operation with `bytes` behind it, and returns where these begin. */
static void *op_grow(struct op **op, uint64_t bytes)
{
    uint64_t size = (sizeof **op + 15) & ~UINT64_C(15);
    struct op *larger = bytes > SIZE_MAX / 2 ? NULL : realloc(*op, size + bytes);
    if (!larger)
        die("no memory for a record of the op log:");
    *op = larger;
    return (uint8_t *)larger + size;
}

static struct op *decode_op(struct decoder *from, const struct interned *interned, struct record_state *state)
{
    enum op_form form = (enum op_form)decode_below(from, FORMS);
    uint64_t epilogues = decode_count(from), afters = decode_count(from);
    struct op *op = NULL;
    struct gemm_epilogue *epilogue = op_grow(&op, epilogues * sizeof *epilogue + afters * sizeof *op->after);
    uint32_t *after = (uint32_t *)(epilogue + epilogues);
    uint64_t site = decode_below(from, interned->sites);
    const struct site *from_site = from->bad ? &(struct site){0} : &interned->site[site];
    *op = (struct op){.id = state->id, .name = from_site->name, .kernel = from_site->kernel, .file = from_site->file,
                      .line = from_site->line, .afters = (uint32_t)afters, .after = after};
    op->pe = (int64_t)decode_below(from, pe_count() + UINT64_C(1)) - 1;
    op->at_ps = state->t_ps += (uint64_t)decode_i64(from);
    op->serial = (uint32_t)decode_u64(from);
    op->request = decode_u64(from);
    op->command = (uint32_t)decode_u64(from);
    op->sent = decode_earlier(from, state);
    for (uint64_t i = 0; i < afters; i++)
        after[i] = op->command - (uint32_t)decode_below(from, op->command + UINT64_C(1));
    op->kind = form == FORM_gemm ? OPKIND_gemm : form == FORM_math ? OPKIND_math : OPKIND_memory;
    from->bad |= (op->pe == OP_OF_HOST) != (form == FORM_fill);
    from->bad |= form == FORM_fill && afters > 0;       /* the given bytes take their place */
    op->gemm.epilogues = (uint32_t)epilogues;
    if (form == FORM_gemm)
        decode_gemm(from, &op->gemm, epilogue);
    else if (form == FORM_math)
        decode_math(from, &op->math);
    else if (form == FORM_copy)
        op->copy.from = decode_view(from), op->copy.to = decode_view(from);
    else
        decode_fill(from, interned, &op->fill);
    if (form == FORM_fill && !from->bad) {
        void *given = op_grow(&op, given_bytes(op));
        op->fill.given = given;
    }
    state->id++;
    return op;
}

/* ---- all other records */

void record_services(struct encoder *to, struct record_state *state, const struct services *s)
{
    encode_u64(to, RECORD_services);
    encode_u64(to, s->id);
    encode_i64(to, (int64_t)(s->start_ps - state->t_ps));
    encode_u64(to, s->end_ps - s->start_ps);
    encode_u64(to, s->node);
    encode_u64(to, s->services);
}

static void decode_services(struct decoder *from, const struct record_state *state, struct services *s)
{
    s->id = decode_below(from, state->id);
    s->start_ps = state->t_ps + (uint64_t)decode_i64(from);
    s->end_ps = s->start_ps + decode_u64(from);
    s->node = (uint32_t)decode_below(from, node_count());
    s->services = (uint32_t)decode_u64(from);
}

void record_tile(struct encoder *to, struct record_state *state, const struct tile_stage *t)
{
    encode_u64(to, RECORD_tile);
    encode_u64(to, t->id);
    encode_u64(to, t->tile);
    encode_u64(to, t->stage);
    encode_u64(to, t->node);
    encode_i64(to, (int64_t)(t->start_ps - state->t_ps));
    encode_u64(to, t->end_ps - t->start_ps);
    state->t_ps = t->start_ps;
}

static void decode_tile(struct decoder *from, struct record_state *state, struct tile_stage *t)
{
    t->id = decode_below(from, state->id);
    t->tile = decode_u64(from);
    t->stage = (uint32_t)decode_u64(from);
    t->node = (uint32_t)decode_below(from, node_count());
    t->start_ps = state->t_ps += (uint64_t)decode_i64(from);
    t->end_ps = t->start_ps + decode_u64(from);
}

void record_reservation(struct encoder *to, struct record_state *state, const struct reservation *p)
{
    encode_u64(to, RECORD_reservation);
    encode_u64(to, p->cause.kernel);
    encode_u64(to, p->cause.number);
    encode_u64(to, p->resource);
    encode_u64(to, p->number);
    encode_u64(to, p->bytes);
    encode_i64(to, (int64_t)(p->start_ps - state->t_ps));
    encode_u64(to, p->end_ps - p->start_ps);
    state->t_ps = p->start_ps;
}

static void decode_reservation(struct decoder *from, struct record_state *state, struct reservation *p)
{
    p->cause.kernel = (uint32_t)decode_u64(from);
    p->cause.number = (uint32_t)decode_u64(from);
    p->resource = (enum resource_kind)decode_below(from, RESOURCE_KINDS);
    p->number = decode_u64(from);
    p->bytes = decode_u64(from);
    p->start_ps = state->t_ps += (uint64_t)decode_i64(from);
    p->end_ps = p->start_ps + decode_u64(from);
}

void record_content(struct encoder *to, struct interned *interned, const struct content *content)
{
    uint64_t tensor = intern_tensor(interned, (struct tensor *)content->tensor, to);
    encode_u64(to, RECORD_content);
    encode_u64(to, tensor);
    encode_bytes(to, &content->hash, sizeof content->hash);
}

static void decode_content(struct decoder *from, const struct interned *interned, struct content *content)
{
    uint64_t number = decode_below(from, interned->tensors);
    const void *hash = decode_bytes(from, sizeof content->hash);
    content->tensor = from->bad ? NULL : interned->tensor[number];
    from->bad |= !content->tensor;
    if (hash)
        memcpy(&content->hash, hash, sizeof content->hash);
}

void record_bytes(struct encoder *to, const void *bytes, size_t count)
{
    encode_u64(to, RECORD_bytes);
    encode_u64(to, count);
    encode_bytes(to, bytes, count);
}

void record_end(struct encoder *to, const struct ending *ending)
{
    encode_u64(to, RECORD_end);
    encode_u64(to, ending->ops);
    encode_u64(to, ending->good);
}

static void decode_fields(struct decoder *from, struct interned *interned, struct record_state *state,
                          struct record *record)
{
    switch (record->kind) {
    case RECORD_text: decode_text(interned, from); break;
    case RECORD_site: decode_site(interned, from); break;
    case RECORD_tensor: decode_tensor(interned, from); break;
    case RECORD_op: record->op = decode_op(from, interned, state); break;
    case RECORD_services: decode_services(from, state, &record->services); break;
    case RECORD_tile: decode_tile(from, state, &record->tile); break;
    case RECORD_reservation: decode_reservation(from, state, &record->reservation); break;
    case RECORD_content: decode_content(from, interned, &record->content); break;
    case RECORD_end:
        record->ending.ops = decode_u64(from);
        record->ending.good = decode_below(from, 2);
        break;
    case RECORD_bytes:
        record->bytes.count = decode_u64(from);
        record->bytes.at = decode_bytes(from, record->bytes.count);
        break;
    default: from->bad = true;
    }
}

bool record_read(struct decoder *from, struct interned *interned, struct record_state *state, struct record *record)
{
    do {
        if (from->at == from->end || from->bad)
            return false;
        *record = (struct record){.kind = (enum record_kind)decode_below(from, RECORDS)};
        decode_fields(from, interned, state, record);
    } while (record->kind <= RECORD_tensor && !from->bad);
    if (from->bad && record->kind == RECORD_op)
        free(record->op);
    return !from->bad;
}
