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

/* The number of PEs is known: a wrong number of slices, which it follows, makes no further error. */
static bool knows_pes(const struct model *model)
{
    return model->pes.key && (model->pes.where.file || model->slices.key);
}

static void check_pes(const struct model *model)
{
    const struct value *pes = &model->pes, *slices = &model->slices;
    if (knows_pes(model) && !pes->n)
        error_at(slices->where, "%s: a cube without HBM needs a number of PEs: give %s", slices->key, pes->key);
}

/* `what`: "PEs"; `all`: how many, or NULL if that is not known. */
static void check_layout(const struct model *model, const char *key, const struct layout *layout, const char *what,
                         const struct value *all)
{
    if (!layout->at)
        return;
    if (all && layout->count != all->n)
        error_at(layout->where, "%s: %u routers for the %" PRIu64 " %s of a cube", key, layout->count, all->n, what);
    for (unsigned i = 0; i < layout->count; i++)
        check_router(model, &layout->at[i]);
}

static void check_layouts(const struct model *model)
{
    const struct value *pes = knows_pes(model) ? &model->pes : NULL, *slices = model->slices.key ? &model->slices : NULL;
    const struct layout *hbm = &model->hbm_layout;
    check_layout(model, "cube.pe_layout.explicit", &model->pe_layout, "PEs", pes);
    check_layout(model, "cube.hbm_layout.explicit", hbm, "HBM slices", slices);
    if (hbm->at || hbm->word != HBM_LAYOUT_PES || !pes || !slices || slices->n <= pes->n)
        return;
    struct where where = hbm->where.file ? hbm->where : place_of(pes->where, slices->where);
    error_at(where, "cube.hbm_layout: 'pes' places each slice "
             "at a PE, and %" PRIu64 " slices are more than %" PRIu64 " PEs", slices->n, pes->n);
    if (!hbm->where.file)
        note_at(where, "that is the default: give 'corners', or a router for each slice");
}

enum { SIPS_MOST = 256, CUBES_MOST = 256, CUBE_SIDES = 4 };      /* what schema.def allows, and n e s w */

/* Whether the grid has a neighbour there; a wrap link does not count. */
static bool has_neighbour(const struct model *model, uint64_t cube, unsigned side)
{
    uint64_t rows = model->cube_rows.n, cols = model->cube_cols.n, row = cube / cols, col = cube % cols;
    bool neighbour[] = { row > 0, col + 1 < cols, row + 1 < rows, col > 0 };   /* n e s w */
    return neighbour[side];
}

static void check_attachment(const struct model *model, const struct model_attachment *at)
{
    uint64_t cubes = model->cube_rows.n * model->cube_cols.n;
    if (!model->cube_rows.key || !model->cube_cols.key)
        return;
    if (at->cube >= cubes)
        error_at(at->where, "%s: there is no cube %" PRIu64 "; they are 0 to %" PRIu64, at->key, at->cube, cubes - 1);
    else if (has_neighbour(model, at->cube, at->side))
        error_at(at->where, "%s: side %c of cube %" PRIu64 " has a neighbour", at->key, "nesw"[at->side], at->cube);
}

static void check_attachments(const struct model *model)
{
    const struct model_attachment *seen[CUBES_MOST][CUBE_SIDES] = { { NULL } };
    for (unsigned i = 0; i < model->attach_count; i++) {
        const struct model_attachment *at = &model->attach[i], **first = &seen[at->cube][at->side];
        if (*first) {
            error_at(at->where, "%s: cube %" PRIu64 ", side %c is listed twice", at->key, at->cube, "nesw"[at->side]);
            note_at((*first)->where, "it is first given here");
        } else {
            *first = at;
            check_attachment(model, at);
        }
    }
}

/* ---- rings and planes */

/* Rows or columns that are closed have at least 3 places. `across` is their length; `lines` and `needed` are words for the
 * message. */
static void check_ring(const struct value *wrap, enum wrap closes, const struct value *across, const char *lines,
                       const char *needed)
{
    if (!wrap->key || !across->key || !(wrap->n & closes) || across->n >= 3)
        return;
    error_at(place_of(wrap->where, across->where), "%s: a closed %s needs at least 3 %s; there are %" PRIu64, wrap->key,
             lines, needed, across->n);
}

static void check_rings(const struct model *model)
{
    check_ring(&model->noc_wrap, WRAP_ROWS, &model->noc_cols, "row", "columns");
    check_ring(&model->noc_wrap, WRAP_COLS, &model->noc_rows, "column", "rows");
    check_ring(&model->cube_wrap, WRAP_ROWS, &model->cube_cols, "row", "columns");
    check_ring(&model->cube_wrap, WRAP_COLS, &model->cube_rows, "column", "rows");
}

/* A plane of one direction reaches all routers of a line only if that is closed, or has one router. */
static void check_plane(const struct model *model, const struct model_plane *plane)
{
    static const char *const words[] = {
        [RING_SHORTEST] = "shortest", [RING_PLUS] = "plus", [RING_MINUS] = "minus"
    };
    const struct value *wrap = &model->noc_wrap, *rows = &model->noc_rows, *cols = &model->noc_cols;
    if (plane->direction == RING_SHORTEST || !wrap->key || !rows->key || !cols->key)
        return;
    bool open_rows = cols->n > 1 && !(wrap->n & WRAP_ROWS), open_cols = rows->n > 1 && !(wrap->n & WRAP_COLS);
    if (!open_rows && !open_cols)
        return;
    error_at(plane->where, "%s: direction %s needs closed %s", plane->key, words[plane->direction],
             open_rows && open_cols ? "rows and columns" : open_rows ? "rows" : "columns");
    if (wrap->where.file)
        note_at(wrap->where, "cube.noc.wrap is given here");
    else
        note_at(plane->where, "cube.noc.wrap is none by default");
}

static void check_planes(const struct model *model)
{
    for (unsigned i = 0; i < model->plane_count; i++)
        check_plane(model, &model->planes[i]);
    for (enum plane_of i = 0; i < PLANES_OF; i++) {
        const struct value *plane = &model->plane_of[i];
        if (plane->key && plane->n && model->plane_count && plane->n >= model->plane_count)
            error_at(plane->where, "%s: there is no plane %" PRIu64 "; %s", plane->key, plane->n,
                     model->plane_count == 1 ? "there is plane 0 alone"
                     : arena_printf("they are 0 to %u", model->plane_count - 1));
    }
}

/* ---- links between chips */

/* Whether the end of a link is a free side of a cube that exists. */
static bool check_chip_end(const struct model *model, const struct model_chip_link *link, const struct model_chip_end *end)
{
    uint64_t cubes = model->cube_rows.n * model->cube_cols.n;
    if (!model->sips.key || !model->cube_rows.key || !model->cube_cols.key)
        return false;
    if (end->sip >= model->sips.n)
        error_at(link->where, "%s: there is no SIP %" PRIu64 "; they are 0 to %" PRIu64, link->key, end->sip,
                 model->sips.n - 1);
    else if (end->cube >= cubes)
        error_at(link->where, "%s: there is no cube %" PRIu64 "; they are 0 to %" PRIu64, link->key, end->cube, cubes - 1);
    else if (has_neighbour(model, end->cube, end->side))
        error_at(link->where, "%s: side %c of cube %" PRIu64 " has a neighbour", link->key, "nesw"[end->side], end->cube);
    else
        return true;
    return false;
}

static void check_chip_links(const struct model *model)
{
    if (!model->chip_link_count)
        return;
    const struct model_chip_link *(*used)[CUBES_MOST][CUBE_SIDES] = arena_alloc(SIPS_MOST, sizeof(*used));
    for (unsigned i = 0; i < model->chip_link_count; i++) {
        const struct model_chip_link *link = &model->chip_links[i];
        if (link->end[0].sip == link->end[1].sip)
            error_at(link->where, "%s: both ends are in SIP %" PRIu64, link->key, link->end[0].sip);
        for (const struct model_chip_end *end = link->end; end < link->end + COUNT_OF(link->end); end++) {
            if (!check_chip_end(model, link, end))
                continue;
            const struct model_chip_link **first = &used[end->sip][end->cube][end->side];
            if (*first) {
                error_at(link->where, "%s: SIP %" PRIu64 ", cube %" PRIu64 ", side %c is used twice", link->key, end->sip,
                         end->cube, "nesw"[end->side]);
                note_at((*first)->where, "it is first used here");
            }
            *first = link;
            for (unsigned at = 0; at < model->attach_count; at++) {
                if (model->attach[at].cube != end->cube || model->attach[at].side != end->side)
                    continue;
                error_at(link->where, "%s: the io_cpu is attached to side %c of cube %" PRIu64, link->key,
                         "nesw"[end->side], end->cube);
                if (model->attach[at].where.file)
                    note_at(model->attach[at].where, "it is attached here");
                else
                    note_at(link->where, "that is the default of sip.io.attach");
            }
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

static void raise_wrap(struct model *model, enum wrap closes, enum attr latency)
{
    if (model->noc_wrap.n & closes && model->attr[latency].n == 0)
        model->attr[latency].n = 1;
}

/* Raises the latency of every fabric link to at least 1 ps. */
static void raise_latencies(struct model *model)
{
#define LINK(name, bw, latency) \
    if (model->attr[ATTR_##latency].n == 0) \
        model->attr[ATTR_##latency].n = 1;
#include "../rt/kb/links.def"
    raise_wrap(model, WRAP_ROWS, ATTR_noc_row_wrap_ps);
    raise_wrap(model, WRAP_COLS, ATTR_noc_col_wrap_ps);
    for (unsigned i = 0; i < model->chip_link_count; i++)
        if (model->chip_links[i].latency.n == 0)
            model->chip_links[i].latency.n = 1;
}

/* The latency of the wrap links of a cube, which are as long as the row or column that they close. */
static void resolve_wraps(struct model *model)
{
    const struct value *pitch = &model->attr[ATTR_noc_pitch_ps];
    struct value *row = &model->attr[ATTR_noc_row_wrap_ps], *col = &model->attr[ATTR_noc_col_wrap_ps];
    *row = *col = (struct value){ 0, pitch->where, pitch->key };
    if (model->noc_wrap.n & WRAP_ROWS && model->noc_cols.n)
        row->n = fill_length(model, "cube.noc.pitch_mm", model->noc_cols.n - 1);
    if (model->noc_wrap.n & WRAP_COLS && model->noc_rows.n)
        col->n = fill_length(model, "cube.noc.pitch_mm", model->noc_rows.n - 1);
}

/* Derives defaults from the values of other keys. */
static void derive_defaults(struct model *model)
{
    struct value *pes = &model->pes;
    if (pes->key && !pes->where.file)
        pes->n = model->slices.n;
}

/* Derives values from others; from wrong ones, values that nobody uses. */
static void resolve(struct model *model)
{
    model->name = model->system_name.text;
    const char *gemm = model->gemm_resource.text, *math = model->math_resource.text;
    model->accel_shared = gemm && math && !strcmp(gemm, math);
    resolve_wraps(model);
    raise_latencies(model);
}

void check_model(struct model *model, bool whole)
{
    derive_defaults(model);
    if (whole) {
        for (enum cube_single i = 0; i < CUBE_SINGLES; i++)
            check_router(model, &model->single_at[i]);
        check_pes(model);
        check_layouts(model);
        check_attachments(model);
        check_rings(model);
        check_planes(model);
        check_chip_links(model);
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
