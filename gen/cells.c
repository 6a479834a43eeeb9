/* cells.c: a plan as rows of texts; every number that a template prints is made here.
 *
 * cells.def lists the tables and holes. One function fills each table, its cells in the order of cells.def. */
#include "cells.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "impl.h"
#include "numbers.h"
#include "words.h"

#define HOLE(name, stub) #name,
#define CONDITION(name)
#define TABLE(name, ...) static const char *const columns_##name[] = {__VA_ARGS__};
#include "cells.def"
#undef TABLE

enum {
#define TABLE(name, ...) TABLE_##name,
#include "cells.def"
#undef TABLE
    TABLES
};

static const struct table empty_tables[TABLES] = {
#define TABLE(name, ...) {#name, columns_##name, COUNT_OF(columns_##name), NULL, 0},
#include "cells.def"
#undef TABLE
};
#undef HOLE
#undef CONDITION

#define text arena_printf

/* ---- texts and rows */

const char *comment_text(const char *from)
{
    char *to = arena_printf("%s", from);
    for (char *c = to; *c; c++) {
        bool ends = (c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*');
        if (ends || *c < ' ' || *c > '~')
            *c = '?';
    }
    return to;
}

/* Bytes as they are written in a string literal. */
static const char *literal_text(const char *bytes, size_t length)
{
    char *text = arena_alloc(length + 1, sizeof "\\000"), *to = text;
    for (; length > 0; length--, bytes++)
        if (*bytes == '\n')
            to += sprintf(to, "\\n");
        else if (*bytes < ' ' || *bytes > '~' || strchr("\"\\?", *bytes))
            to += sprintf(to, "\\%03o", (unsigned char)*bytes);
        else
            *to++ = *bytes;
    return text;
}

static const char *place_text(struct where where, const char *key)
{
    if (!where.file)
        return text("default %s", key);
    if (!strcmp(where.file->path, "--set"))
        return text("--set %s", key);
    return comment_text(text("%s:%u %s", base_name(where.file->path), where.line, key));
}

static const char *number_text(uint64_t n)
{
    return text("%llu", (unsigned long long)n);
}

static void add_row(struct table *table, ...)
{
    table->cells = arena_grow(table->cells, table->rows, table->width * sizeof *table->cells);
    va_list cells;
    va_start(cells, table);
    for (size_t i = 0; i < table->width; i++)
        table->cells[table->rows * table->width + i] = va_arg(cells, const char *);
    va_end(cells);
    table->rows++;
}

static size_t column_of(const struct table *table, const char *column)
{
    size_t i = 0;
    while (i < table->width && strcmp(table->columns[i], column))
        i++;
    return i;
}

static bool has_column(const struct table *table, const char *column)
{
    return column_of(table, column) < table->width;
}

static void set_cell(struct table *once, const char *column, const char *cell)
{
    size_t i = column_of(once, column);
    assert(i < once->width && !once->cells[i]);
    once->cells[i] = cell;
}

/* ---- attributes */

/* For each suffix of an attribute's name, its units, largest first, and how 0 is printed: a bandwidth of 0 is
 * unlimited. */
static const struct suffix {
    const char *suffix, *zero;
    struct unit_text { const char *name; uint64_t size; } units[4];
} suffixes[] = {
    {"_ps", "0", {{"MS", 1000000000}, {"US", 1000000}, {"NS", 1000}, {"PS", 1}}},
    {"_bps", "UNLIMITED", {{"GB_PER_S", 1000000000}, {"MB_PER_S", 1000000}, {"KB_PER_S", 1000}, {"B_PER_S", 1}}},
    {"_khz", "0", {{"GHZ", 1000000}, {"MHZ", 1000}, {"KHZ", 1}, {"", 1}}},
    {"_bytes", "0", {{"GIB", 1 << 30}, {"MIB", 1 << 20}, {"KIB", 1 << 10}, {"BYTES", 1}}},
};

/* An attribute as an expression: "350 * NS", "UNLIMITED". */
static const char *attr_text(const char *attr, uint64_t n)
{
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        const struct suffix *s = &suffixes[i];
        size_t length = strlen(attr), end = strlen(s->suffix);
        if (length < end || strcmp(attr + length - end, s->suffix))
            continue;
        if (n == 0)
            return s->zero;
        const struct unit_text *unit = s->units;
        while (n % unit->size)
            unit++;
        return text("%llu * %s", (unsigned long long)(n / unit->size), unit->name);
    }
    return text("%llu", (unsigned long long)n);
}

/* ---- rows */

static void *arena_copy(const void *bytes, size_t length)
{
    return memcpy(arena_alloc(1, length), bytes, length);
}

static const char *or_none(unsigned n, const char *none)
{
    return n == 0xffff ? none : number_text(n);
}

static const char *value_place(const struct value *value)
{
    return value->key ? place_text(value->where, value->key) : "default";
}

static void fill_attrs(struct table *table, const struct model *model)
{
    static const char *const names[ATTRS] = {
#define ATTR(name) #name,
#include "../rt/kb/attrs.def"
#undef ATTR
    };
    for (enum attr i = 0; i < ATTRS; i++) {
        assert(model->attr[i].key);                     /* schema.def sets every attribute */
        add_row(table, names[i], attr_text(names[i], model->attr[i].n), value_place(&model->attr[i]));
    }
}

static void fill_dtypes(struct table *table, const struct model *model)
{
    static const char *const names[DTYPES] = {
#define DTYPE(name, bytes, is_float) "DTYPE_" #name,
#include "../rt/kb/dtypes.def"
#undef DTYPE
    };
    for (enum dtype i = 0; i < DTYPES; i++)
        add_row(table, names[i], number_text(model->k_per_cycle[i].n), value_place(&model->k_per_cycle[i]),
                number_text(model->lanes[i].n), value_place(&model->lanes[i]));
}

static void fill_ops(struct table *table, const struct model *model)
{
    for (unsigned i = 0; i < model->ops_count; i++)
        add_row(table, model->ops[i].name, number_text(model->ops[i].cost.n), value_place(&model->ops[i].cost));
}

/* The topology itself as string literals, one a line of it. */
static void fill_topology(struct table *table, const struct model *model)
{
    const struct number kept = topology_number(model);
    const char *end = kept.bytes + kept.length;
    while (end > kept.bytes && !end[-1])
        end--;
    for (const char *at = kept.bytes; at < end;) {
        const char *line = at;
        while (at < end && *at && *at != '\n')
            at++;
        at += at < end;
        add_row(table, literal_text(line, (size_t)(at - line)));
    }
}

static const char *node_key(const struct plan *plan, const struct plan_node *node)
{
    const struct layout *slices = &plan->model->hbm_layout;
    if (node->kind < NODE_router)
        return plan->model->single_at[node->kind - NODE_m_cpu].key;
    if (node->kind == NODE_hbm_ctrl && (slices->at || slices->word != HBM_LAYOUT_PES))
        return slices->at ? "cube.hbm_layout.explicit" : NULL;
    return plan->model->pe_layout.at ? "cube.pe_layout.explicit" : NULL;
}

static void fill_nodes(struct table *table, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->node_count; i++) {
        const struct plan_node *n = &plan->nodes[i];
        const char *key = n->router == NO_NODE || n->kind == NODE_port ? NULL : node_key(plan, n);
        add_row(table, text("NODE_%s", node_kind_names[n->kind]), number_text(n->index),
                or_none(n->target, "NO_TARGET"), or_none(n->up, "NO_LINK"), or_none(n->down, "NO_LINK"),
                number_text(i), node_name(plan, i), key ? text(", %s", place_text(n->where, key)) : "");
    }
}

/* How fast a link is, as an expression. */
static const char *link_text(const struct plan_link *link)
{
    static const char *const speeds[LINK_SPEEDS] = {
#define LINK(name, bw, latency) [LINK_##name] = "LINK_" #name,
#define WRAP(name, bw, latency) [SPEED_##name] = "SPEED_" #name,
#include "../rt/kb/links.def"
    };
    return speeds[link->speed];
}

static void fill_links(struct table *table, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->link_count; i++) {
        const struct plan_link *l = &plan->links[i];
        add_row(table, link_text(l), number_text(l->from), or_none(l->to, "NO_NODE"),
                number_text(i), text("%s to %s", node_name(plan, l->from), l->to != NO_NODE ? node_name(plan, l->to)
                                : l->class == LINK_ucie ? "the next cube" : "io_cpu"));
    }
}

static void fill_attachments(struct table *table, struct table *nearest, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->model->attach_count; i++) {
        const struct model_attachment *a = &plan->model->attach[i];
        add_row(table, number_text(a->cube), text("SIDE_%c", side_letters[a->side] - 'a' + 'A'),
                place_text(a->where, "sip.io.attach"));
    }
    for (unsigned i = 0; i < plan->cubes; i++)
        add_row(nearest, number_text(plan->nearest[i]));
}

/* ---- routes: one row a target, with an entry for every place where a message may be */

static const char *const direction_names[DIRECTIONS] = {"request", "response"};

static void fill_routes(struct table *table, const struct plan *plan)
{
    for (unsigned row = 0; row < plan->planes * DIRECTIONS * plan->target_count; row++) {
        const unsigned *next = plan->routes + row * plan->routers;
        unsigned plane = row / plan->target_count / DIRECTIONS, direction = row / plan->target_count % DIRECTIONS;
        char *entries = arena_alloc(plan->routers, sizeof "NO_LINK, "), *end = entries;
        for (unsigned i = 0; i < plan->routers; i++)
            end += sprintf(end, next[i] == NO_LINK ? "%sNO_LINK" : "%s%u", i ? ", " : "", next[i]);
        unsigned target = plan_router(plan, plane * plan->routers + plan->targets[row % plan->target_count]);
        add_row(table, entries, text("%s to %s", direction_names[direction], node_name(plan, target)));
    }
}

/* The ends of links between chips, and the next one on the way from each SIP to another. */
static void fill_chips(struct table *links, struct table *routes, struct table *numbers, const struct plan *plan)
{
    const struct model *m = plan->model;
    for (unsigned number = 0; number < m->chip_link_count; number++) {
        const struct model_chip_link *l = &m->chip_links[number];
        const char *ends[COUNT_OF(l->end)];
        for (size_t i = 0; i < COUNT_OF(l->end); i++)
            ends[i] = text("{%u, %u, SIDE_%c}", (unsigned)l->end[i].sip, (unsigned)l->end[i].cube,
                           side_letters[l->end[i].side] - 'a' + 'A');
        add_row(links, ends[0], ends[1], place_text(l->where, "system.links"));
        add_row(numbers, attr_text("bw_bps", l->bw.n), attr_text("latency_ps", l->latency.n),
                place_text(l->where, "system.links"));
    }
    for (unsigned row = 0; m->chip_link_count && row < DIRECTIONS * plan->sips; row++) {
        const unsigned *next = plan->chip_routes + row * plan->sips;
        char *entries = arena_alloc(plan->sips, sizeof "NO_CHIP_LINK, "), *end = entries;
        for (unsigned i = 0; i < plan->sips; i++)
            end += sprintf(end, next[i] == NO_CHIP_LINK ? "%sNO_CHIP_LINK" : "%s%u", i ? ", " : "", next[i]);
        add_row(routes, entries, text("%s to sip%u", direction_names[row / plan->sips], row % plan->sips));
    }
}

static void fill_cube_routes(struct table *table, const struct plan *plan)
{
    static const char *const sides[] = {"SIDE_N", "SIDE_E", "SIDE_S", "SIDE_W", "HERE"};
    for (unsigned row = 0; row < DIRECTIONS * plan->cubes; row++) {
        char *entries = arena_alloc(plan->cubes, sizeof "SIDE_N, "), *end = entries;
        for (unsigned i = 0; i < plan->cubes; i++)
            end += sprintf(end, "%s%s", i ? ", " : "", sides[plan->cube_routes[row * plan->cubes + i]]);
        add_row(table, entries, text("%s to cube%u", direction_names[row / plan->cubes], row % plan->cubes));
    }
}

/* ---- component models: built in, or the user's */

static const struct impl *own_impl(const struct model *model, enum component part)
{
    for (unsigned i = 0; i < model->impls_count; i++)
        if (model->impls[i].part == part)
            return &model->impls[i];
    return NULL;
}

/* Names the functions of each component's model where the table has cells for them. Templates do not use those of a
 * built-in model that has no such functions. */
static void fill_services(struct table *once, const struct model *model)
{
    static const char *const functions[] = {"service", "next", "state"};
    for (enum component part = 0; part < COMPONENTS; part++) {
        const struct impl *own = own_impl(model, part);
        const char *of = impl_forms[part].part, *name = own ? own->name : arena_printf("builtin_%s", of);
        for (size_t i = 0; i < COUNT_OF(functions); i++) {
            const char *column = arena_printf("%s_%s", of, functions[i]);
            if (has_column(once, column))
                set_cell(once, column, arena_printf("%s_%s", name, functions[i]));
        }
    }
}

/* How many nodes of a kind the machine has. */
static uint64_t node_total(const struct plan *plan, enum component part)
{
    switch (part) {
    case COMPONENT_host: case COMPONENT_switch: return 1;
    case COMPONENT_pcie_ep: case COMPONENT_io_cpu: return plan->sips;
    case COMPONENT_m_cpu: return plan->all_cubes;
    case COMPONENT_sram: return plan->all_cubes * plan->srams;
    case COMPONENT_hbm_ctrl: return plan->all_slices;
    case COMPONENT_router: return plan->all_cubes * plan->planes * plan->routers;
    case COMPONENT_port: return plan->all_cubes * SIDES;
    default: return plan->all_pes;
    }
}

static void fill_own(struct table *tables, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->model->impls_count; i++) {
        const struct impl *impl = &plan->model->impls[i];
        const struct impl_form *form = &impl_forms[impl->part];
        const char *kind = arena_printf("NODE_%s", form->part);
        add_row(&tables[TABLE_own], impl->name, kind, place_text(impl->named->where, impl->named->key),
                impl_prototype(impl));
        if (form->queue)
            add_row(&tables[TABLE_own_queue], impl_next_prototype(impl));
        if (form->is_fabric)
            add_row(&tables[TABLE_own_fabric], impl->name, kind, arena_printf("%s_service", impl->name),
                    arena_printf("%s_next", impl->name), arena_printf("%s_state", impl->name),
                    arena_printf("%s_blank", impl->name));
        if (form->has_state)
            add_row(&tables[TABLE_own_state], impl->name, number_text(node_total(plan, impl->part)));
    }
}

static void fill_param(struct table *params, struct table *ratios, const char *of, const struct impl_param *p)
{
    const char *place = place_text(p->where, p->key);
    if (p->whole)
        add_row(params, of, p->name, number_text(p->n), p->unit ? arena_printf("%s; ", p->unit) : "", place);
    if (!p->unit)
        add_row(ratios, of, p->name, number_text(p->num), number_text(p->den), place);
}

static void fill_own_params(struct table *params, struct table *ratios, const struct model *model)
{
    for (unsigned i = 0; i < model->impls_count; i++) {
        const struct impl *impl = &model->impls[i];
        for (unsigned j = 0; j < impl->params->count; j++)
            fill_param(params, ratios, impl->name, &impl->params->list[j]);
    }
}

/* ---- columns that occur once */

/* Sets a count that the topology gives, and its place in the file. */
static void set_value(struct table *once, const char *column, const struct value *value)
{
    set_cell(once, column, number_text(value->n));
    set_cell(once, text("%s_place", column), value_place(value));
}

static void fill_counts(struct table *once, const struct plan *plan)
{
    const struct model *m = plan->model;
    set_value(once, "sips", &m->sips);
    set_value(once, "cube_rows", &m->cube_rows);
    set_value(once, "cube_cols", &m->cube_cols);
    set_value(once, "noc_rows", &m->noc_rows);
    set_value(once, "noc_cols", &m->noc_cols);
    set_value(once, "pes", &m->pes);
    set_value(once, "slices", &m->slices);
    set_value(once, "pcs", &m->attr[ATTR_hbm_ctrl_pcs]);
    set_value(once, "rd_engines", &m->attr[ATTR_pe_dma_rd_engines]);
    set_value(once, "wr_engines", &m->attr[ATTR_pe_dma_wr_engines]);
    set_cell(once, "planes", number_text(plan->planes));
    set_cell(once, "plane_links", number_text(plan->plane_links));
    set_cell(once, "cubes", number_text(plan->cubes));
    set_cell(once, "chip_links", number_text(m->chip_link_count));
    set_cell(once, "plane_of_read", number_text(m->plane_of[PLANE_OF_read].n));
    set_cell(once, "plane_of_write", number_text(m->plane_of[PLANE_OF_write].n));
    set_cell(once, "plane_of_message", number_text(m->plane_of[PLANE_OF_message].n));
    set_cell(once, "attachments", number_text(m->attach_count));
    set_cell(once, "targets", number_text(plan->target_count));
    set_cell(once, "cube_nodes", number_text(plan->node_count));
    set_cell(once, "cube_links", number_text(plan->link_count));
    set_cell(once, "ops", number_text(m->ops_count));
    set_cell(once, "all_cubes", number_text(plan->all_cubes));
    set_cell(once, "srams", number_text(plan->srams));
    set_cell(once, "all_slices", number_text(plan->all_slices));
    set_cell(once, "all_pes", number_text(plan->all_pes));
    set_cell(once, "all_nodes", number_text(plan->all_nodes));
    set_cell(once, "all_links", number_text(plan->all_links));
    set_cell(once, "own_models", plan->model->impls_count ? "true" : "false");
    set_cell(once, "state_bytes", number_text(plan->state_bytes));
}

/* The lengths of the lists that kbgen was built with. The emitted code asserts that the runtime has the same. */
static void fill_lists(struct table *once)
{
    enum {
#define OP(name, ...) OP_##name,
#include "../rt/kb/ops.def"
        KNOWN_OPS
    };
    set_cell(once, "attrs", number_text(ATTRS));
    set_cell(once, "dtypes", number_text(DTYPES));
    set_cell(once, "known_ops", number_text(KNOWN_OPS));
    set_cell(once, "node_kinds", number_text(NODE_KINDS));
    set_cell(once, "link_classes", number_text(LINK_CLASSES));
}

static void fill_once(struct table *once, const struct plan *plan, const char *version)
{
    once->cells = arena_alloc(once->width, sizeof *once->cells);
    once->rows = 1;
    set_cell(once, "name", plan->model->name);
    set_cell(once, "version", version);
    set_cell(once, "name_room", number_text(name_room(plan->model)));
    set_cell(once, "topology_hash", topology_hash(plan));
    set_cell(once, "topology_room", number_text(topology_number(plan->model).length));
    fill_counts(once, plan);
    fill_lists(once);
    fill_services(once, plan->model);
    for (size_t i = 0; i < once->width; i++)
        assert(once->cells[i]);
}

static void fill_engines(struct table *table, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        add_row(table, number_text(i));
}

const struct cells *fill_cells(const struct plan *plan, const char *version)
{
    const struct model *model = plan->model;
    const bool accel_shared = model->accel_shared;
    const bool own_answers = model->response.n, closed_rows = model->cube_wrap.n & WRAP_ROWS;
    const bool closed_cols = model->cube_wrap.n & WRAP_COLS, chips = model->chip_link_count > 0;
    const bool ports_2 = model->attr[ATTR_pe_fetch_store_ports].n == 2;
    const bool own_hbm_ctrl = own_impl(model, COMPONENT_hbm_ctrl), own_sram = own_impl(model, COMPONENT_sram);
    const bool own_pe_cpu = own_impl(model, COMPONENT_pe_cpu), own_pe_dma = own_impl(model, COMPONENT_pe_dma);
    const bool own_pe_tcm = own_impl(model, COMPONENT_pe_tcm), own_pe_mmu = own_impl(model, COMPONENT_pe_mmu);
    const bool own_pe_gemm = own_impl(model, COMPONENT_pe_gemm), own_pe_math = own_impl(model, COMPONENT_pe_math);
    const bool own_pe_fetch_store = own_impl(model, COMPONENT_pe_fetch_store);
    const bool own_pe_ipcq = own_impl(model, COMPONENT_pe_ipcq), own_transfers = own_pe_dma || own_pe_ipcq;
    const struct condition conditions[] = {
#define TABLE(name, ...)
#define CONDITION(name) {#name, name},
#include "cells.def"
#undef TABLE
#undef CONDITION
    };
    struct table *tables = arena_copy(empty_tables, sizeof empty_tables);
    fill_once(&tables[TABLE_once], plan, version);
    fill_attrs(&tables[TABLE_attr], model);
    fill_dtypes(&tables[TABLE_dtype], model);
    fill_ops(&tables[TABLE_op], model);
    fill_topology(&tables[TABLE_topology_line], model);
    fill_nodes(&tables[TABLE_node], plan);
    fill_links(&tables[TABLE_link], plan);
    fill_attachments(&tables[TABLE_attachment], &tables[TABLE_nearest], plan);
    fill_routes(&tables[TABLE_route], plan);
    fill_cube_routes(&tables[TABLE_cube_route], plan);
    fill_chips(&tables[TABLE_chip_link], &tables[TABLE_chip_route], &tables[TABLE_chip_number], plan);
    fill_own(tables, plan);
    fill_own_params(&tables[TABLE_param], &tables[TABLE_ratio], model);
    fill_engines(&tables[TABLE_rd_engine], model->attr[ATTR_pe_dma_rd_engines].n);
    fill_engines(&tables[TABLE_wr_engine], model->attr[ATTR_pe_dma_wr_engines].n);

    struct cells *cells = arena_alloc(1, sizeof *cells);
    *cells = (struct cells){
        tables[TABLE_once], tables, TABLES, arena_copy(conditions, sizeof conditions), COUNT_OF(conditions),
    };
    return cells;
}
