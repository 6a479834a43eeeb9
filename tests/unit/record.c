/* record.c: records of the op log: every kind there and back, and what is wrong in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/command.h"
#include "machine/emitted.h"
#include "oplog/log.h"
#include "machine/tiling.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cube_rows = 1, .cube_cols = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1,
                               .cube_nodes = 60, .ops = KNOWN_OPS};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

static bool same_view(const struct view *a, const struct view *b)
{
    return a->memory == b->memory && a->dtype == b->dtype && a->rank == b->rank && a->offset == b->offset
        && !memcmp(a->shape, b->shape, sizeof a->shape) && !memcmp(a->stride, b->stride, sizeof a->stride);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_head(const struct op *a, const struct op *b)
{
    bool good = a->id == b->id && a->kind == b->kind && a->pe == b->pe && a->at_ps == b->at_ps
        && a->serial == b->serial && a->command == b->command && a->line == b->line && a->sent == b->sent
        && a->afters == b->afters
        && same_text(a->name, b->name) && same_text(a->kernel, b->kernel) && same_text(a->file, b->file);
    for (uint32_t i = 0; good && i < a->afters; i++)
        good = a->after[i] == b->after[i];
    return good;
}

/* ---- operations, and what comes out of them */

static struct shard shards[2] = {{.memory = 0, .offset = 128, .elements = 6, .view = {.shape = {2, 3, 1, 1}}},
                                 {.memory = 1, .offset = 64, .elements = 9,
                                  .view = {.shape = {3, 3, 1, 1}, .first = {2}}}};
static struct tensor tensor = {.name = "given", .dtype = DTYPE_f16, .dims = {2, {5, 3}}, .place = {.split = KB_ROWS},
                               .number = 3, .elements = 15, .shard = shards, .shards = 2};
static struct gemm_epilogue epilogues[2];
static const uint32_t after[] = {0, 3};
static struct op ops[8];
enum { OPS = 6, FIRST = 7 };

static void ops_make(void)
{
    struct view strided = {.memory = 2, .dtype = DTYPE_f32, .rank = 4, .offset = 4096, .shape = {2, 3, 4, 5},
                           .stride = {1000, 0, 20, 2}};
    struct view row = {.memory = 3, .dtype = DTYPE_f32, .rank = 2, .offset = 64, .shape = {9, 8, 1, 1},
                       .stride = {0, 1}};
    for (uint64_t i = 0; i < OPS; i++)
        ops[i] = (struct op){.id = FIRST + i, .kind = OPKIND_memory, .name = "copy", .pe = (int64_t)i % 4,
                             .at_ps = 1000000 - i * i, .serial = 1000, .command = (uint32_t)i + 4,
                             .kernel = "kernel", .file = "file.c", .line = (uint32_t)(10 + i)};
    ops[0].copy = (struct copy){view_bytes(0, 8, 100), view_bytes(store_messages(), 1 << 20, 100)};
    ops[1].copy = (struct copy){strided, strided};
    ops[1].sent = 1 + FIRST;
    ops[1].after = after;
    ops[1].afters = 2;
    ops[2].kind = OPKIND_gemm;
    ops[2].gemm = (struct gemm){.a = view_matrix(0, DTYPE_i8, 0, 9, 7, 16), .b = view_matrix(1, DTYPE_i8, 0, 7, 8, 8),
                                .c = view_matrix(2, DTYPE_i32, 64, 9, 8, 8), .tile_m = 4, .tile_k = 3, .tile_n = 2,
                                .epilogue = epilogues, .epilogues = 2};
    epilogues[0] = (struct gemm_epilogue){.op = OP_bias, .scope = SCOPE_ONCE, .has_operand = true, .operand = row};
    epilogues[1] = (struct gemm_epilogue){.op = OP_scale, .scope = SCOPE_K_TILE, .has_scalar = true, .scalar = -0.1};
    ops[3].kind = OPKIND_math;
    ops[3].math = (struct math){.op = OP_cmp, .operands = 2, .relation = RELATION_ge, .axis = NO_AXIS,
                                .has_scalar = true, .scalar = 1e300, .tile_m = 5, .tile_n = 6, .to = row,
                                .operand = {strided}};
    ops[4].pe = OP_OF_HOST;
    ops[4].fill = (struct fill){.tensor = &tensor, .kind = KB_NORMAL, .x = -1, .y = 0.5};
    ops[5].pe = OP_OF_HOST;
    ops[5].kernel = NULL;
    ops[5].fill = (struct fill){.tensor = &tensor, .kind = KB_GIVEN};
}

static bool same_gemm(const struct gemm *a, const struct gemm *b)
{
    bool good = same_view(&a->a, &b->a) && same_view(&a->b, &b->b) && same_view(&a->c, &b->c)
        && a->tile_m == b->tile_m && a->tile_k == b->tile_k && a->tile_n == b->tile_n && a->epilogues == b->epilogues;
    for (uint32_t i = 0; good && i < a->epilogues; i++) {
        const struct gemm_epilogue *x = &a->epilogue[i], *y = &b->epilogue[i];
        good = x->op == y->op && x->scope == y->scope && x->has_operand == y->has_operand
            && x->has_scalar == y->has_scalar && x->scalar == y->scalar && same_view(&x->operand, &y->operand);
    }
    return good;
}

static bool same_math(const struct math *a, const struct math *b)
{
    return a->op == b->op && a->operands == b->operands && a->relation == b->relation && a->axis == b->axis
        && a->has_scalar == b->has_scalar && a->scalar == b->scalar && a->tile_m == b->tile_m
        && a->tile_n == b->tile_n && same_view(&a->to, &b->to) && same_view(&a->operand[0], &b->operand[0]);
}

static bool same_tensor(const struct tensor *a, const struct tensor *b)
{
    bool good = !strcmp(a->name, b->name) && a->dtype == b->dtype && a->number == b->number && a->shards == b->shards
        && a->elements == b->elements && a->place.split == b->place.split && a->dims.rank == b->dims.rank;
    for (uint32_t i = 0; good && i < a->shards; i++) {
        struct tensor_row run = tensor_row(a, &a->shard[i], 1), other = tensor_row(b, &b->shard[i], 1);
        good = run.memory == other.memory && run.offset == other.offset && run.position == other.position
            && run.count == other.count && a->shard[i].elements == b->shard[i].elements;
    }
    return good;
}

static bool same_op(const struct op *a, const struct op *b)
{
    if (!same_head(a, b))
        return false;
    if (a->kind == OPKIND_gemm)
        return same_gemm(&a->gemm, &b->gemm);
    if (a->kind == OPKIND_math)
        return same_math(&a->math, &b->math);
    if (a->pe != OP_OF_HOST)
        return same_view(&a->copy.from, &b->copy.from) && same_view(&a->copy.to, &b->copy.to);
    return a->fill.kind == b->fill.kind && a->fill.x == b->fill.x && a->fill.y == b->fill.y
        && same_tensor(a->fill.tensor, b->fill.tensor);
}

/* ---- there and back */

static const struct services services = {FIRST + 2, 500, 2000000, 17, 1234};
static const struct tile_stage tile = {FIRST + 2, UINT64_C(1) << 40, 5, 18, 999, 1001};
static const struct content content = {&tensor, UINT64_C(0xfedcba9876543210)};

static void write_all(struct encoder *to, struct interned *interned)
{
    struct record_state state = {.id = FIRST};
    for (int i = 0; i < OPS; i++)
        record_op(to, interned, &state, &ops[i]);
    record_bytes(to, "given bytes", 11);
    record_services(to, &state, &services);
    record_tile(to, &state, &tile);
    record_content(to, interned, &content);
    record_end(to, &(struct ending){FIRST + OPS, true});
}

static bool next_is(struct decoder *from, struct interned *interned, struct record_state *state, enum record_kind kind,
                    struct record *record)
{
    return record_read(from, interned, state, record) && record->kind == kind;
}

/* As another process reads it: with names interned anew; or as its writer. */
static void there_and_back(struct interned *interned, const struct encoder *encoded, const char *what)
{
    struct decoder from = {.at = encoded->bytes, .end = encoded->bytes + encoded->count};
    struct record_state state = {.id = FIRST};
    struct record r;
    bool good = true;
    for (int i = 0; i < OPS; i++) {
        good = good && next_is(&from, interned, &state, RECORD_op, &r);
        if (good) {
            good = same_op(&ops[i], r.op);
            free(r.op);
        }
    }
    expect(good, "%s", what);
    good = next_is(&from, interned, &state, RECORD_bytes, &r) && r.bytes.count == 11
        && !memcmp(r.bytes.at, "given bytes", 11);
    good &= next_is(&from, interned, &state, RECORD_services, &r) && !memcmp(&r.services, &services, sizeof services);
    good &= next_is(&from, interned, &state, RECORD_tile, &r) && !memcmp(&r.tile, &tile, sizeof tile);
    good &= next_is(&from, interned, &state, RECORD_content, &r) && r.content.hash == content.hash
        && same_tensor(r.content.tensor, &tensor);
    good &= next_is(&from, interned, &state, RECORD_end, &r) && r.ending.ops == FIRST + OPS && r.ending.good;
    expect(good && !record_read(&from, interned, &state, &r) && !from.bad,
           "records of all other kinds are read to the end of the log");
}

/* Any byte changed and any end: an error or other values, nothing worse. */
static void damage(const struct encoder *encoded)
{
    bool good = true;
    for (int i = 0; i < 20000; i++) {
        size_t count = i % 2 ? encoded->count : (size_t)rand() % encoded->count;
        uint8_t *bytes = malloc(count + 1);
        memcpy(bytes, encoded->bytes, count);
        if (i % 2)
            bytes[(size_t)rand() % count] ^= (uint8_t)(1 + rand() % 255);
        struct decoder from = {.at = bytes, .end = bytes + count};
        struct interned interned = {0};
        struct record_state state = {.id = FIRST};
        struct record r;
        while (record_read(&from, &interned, &state, &r))
            if (r.kind == RECORD_op)
                free(r.op);
        good &= from.bad || from.at == from.end;
        free(bytes);
    }
    expect(good, "damaged records are errors, or others");
}

int main(void)
{
    struct encoder encoded = {0};
    struct interned interned = {0}, other = {0};
    ops_make();
    write_all(&encoded, &interned);
    there_and_back(&other, &encoded, "another process reads records of every kind as they were written");
    there_and_back(&interned, &encoded, "the writer reads records of every kind as they were written");
    damage(&encoded);
    free(encoded.bytes);
    return tests_end();
}
