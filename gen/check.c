/* check.c: errors that several keys make together.
 *
 * Requires: the values that fill.c read. A value that could not be read has no key and takes part in no comparison, so
 * one mistake gives one error. Leaves: a model whose every number is within its bounds. */
#include <inttypes.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/yaml.h"
#include "check.h"
#include "fill.h"

/* The place to report: the first of two values that the user has given. */
static struct where place_of(struct where first, struct where second)
{
    return first.file ? first : second;
}

static void check_router(const struct model *model, const struct router_at *at)
{
    const struct value *rows = &model->noc_rows, *cols = &model->noc_cols;
    if (!rows->key || !cols->key || (at->row < rows->n && at->col < cols->n))
        return;
    struct where grid = at->row < rows->n ? cols->where : rows->where;
    error_at(place_of(at->where, grid), "%s: [%" PRIu64 ", %" PRIu64 "] is outside the grid of %" PRIu64 " x %" PRIu64
             " routers", at->key, at->row, at->col, rows->n, cols->n);
    if (!at->where.file)
        note_at(grid, "that is the default: give one of these routers");
}

static void check_layout(const struct model *model)
{
    if (!model->pe_at)
        return;
    if (model->pes.key && model->pe_at_count != model->pes.n)
        error_at(model->layout_where, "cube.pe_layout.explicit: %u routers for the %" PRIu64 " PEs of a cube",
                 model->pe_at_count, model->pes.n);
    for (unsigned i = 0; i < model->pe_at_count; i++)
        check_router(model, &model->pe_at[i]);
}

static bool has_neighbour(const struct model *model, const struct model_attachment *at)
{
    uint64_t rows = model->cube_rows.n, cols = model->cube_cols.n, row = at->cube / cols, col = at->cube % cols;
    bool neighbour[] = { row > 0, col + 1 < cols, row + 1 < rows, col > 0 };   /* n e s w */
    return neighbour[at->side];
}

static void check_attachment(const struct model *model, const struct model_attachment *at)
{
    uint64_t cubes = model->cube_rows.n * model->cube_cols.n;
    if (!model->cube_rows.key || !model->cube_cols.key)
        return;
    if (at->cube >= cubes)
        error_at(at->where, "sip.io.attach: there is no cube %" PRIu64 "; they are 0 to %" PRIu64, at->cube, cubes - 1);
    else if (has_neighbour(model, at))
        error_at(at->where, "sip.io.attach: side %c of cube %" PRIu64 " has a neighbour", "nesw"[at->side], at->cube);
}

static void check_attachments(const struct model *model)
{
    enum { CUBES_MOST = 256, SIDES = 4 };
    const struct model_attachment *seen[CUBES_MOST][SIDES] = { { NULL } };
    for (unsigned i = 0; i < model->attach_count; i++) {
        const struct model_attachment *at = &model->attach[i], **first = &seen[at->cube][at->side];
        if (*first) {
            error_at(at->where, "sip.io.attach: cube %" PRIu64 ", side %c is listed twice", at->cube, "nesw"[at->side]);
            note_at((*first)->where, "it is first given here");
        } else {
            *first = at;
            check_attachment(model, at);
        }
    }
}

static void check_reserved(const struct model *model)
{
    const struct value *size = &model->attr[ATTR_pe_tcm_size_bytes];
    const struct value *reserved = &model->attr[ATTR_pe_tcm_reserved_bytes];
    if (!reserved->key || !size->key || reserved->n <= size->n)
        return;
    struct where where = place_of(reserved->where, size->where);
    error_at(where, "%s: %" PRIu64 " bytes are more than %s, %" PRIu64 " bytes", reserved->key, reserved->n, size->key,
             size->n);
    if (!reserved->where.file || !size->where.file)
        note_at(where, "the %s is the default", reserved->where.file ? "size" : "reserved part");
    else
        note_at(size->where, "the size is given here");
}

static void check_ipcq(const struct model *model)
{
    const struct value *overhead = &model->attr[ATTR_pe_ipcq_overhead_ps];
    const char *impl = model->impl[COMPONENT_pe_ipcq].text;
    if (!overhead->key || !overhead->n || !impl || !strchr(impl, '.'))
        return;
    error_at(overhead->where, "%s: the built-in pe_ipcq takes no time, and no message passes through it", overhead->key);
    note_at(overhead->where, "the overhead of pe_dma delays messages; a model of your own (impl) can delay sends, "
            "receives and credits");
}

/* Raises the latency of every fabric link to at least 1 ps. */
static void raise_latencies(struct model *model)
{
#define LINK(name, bw, latency) \
    if (model->attr[ATTR_##latency].n == 0) \
        model->attr[ATTR_##latency].n = 1;
#include "../rt/kb/links.def"
#undef LINK
}

/* Derives values from others; from wrong ones, values that nobody uses. */
static void resolve(struct model *model)
{
    model->name = model->system_name.text;
    const char *gemm = model->gemm_resource.text, *math = model->math_resource.text;
    model->accel_shared = gemm && math && !strcmp(gemm, math);
    raise_latencies(model);
}

void check_model(struct model *model, bool whole)
{
    if (whole) {
        for (enum cube_single i = 0; i < CUBE_SINGLES; i++)
            check_router(model, &model->single_at[i]);
        check_layout(model);
        check_attachments(model);
        check_reserved(model);
        check_ipcq(model);
    }
    resolve(model);
}

struct model *check_topology(const char *path, struct topology_text *text, const struct impl_files *impls)
{
    struct model *model = arena_alloc(1, sizeof(*model));
    model->path = strcmp(path, "-") ? path : STANDARD_INPUT;
    model->text = text;
    model->layers = load_topology(path, text);
    model->top = merge_layers(&model->layers);
    fill_model(model, model->top, NULL);
    check_model(model, model->layers.whole);
    if (model->layers.whole && impls)
        match_impls(model, impls);
    return error_count() ? NULL : model;
}
