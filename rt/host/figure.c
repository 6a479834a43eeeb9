/* figure.c: figures that a bench has of its own, for the summary and the result. */
#include "figure.h"

#include "base/human.h"
#include "kb/measure.h"
#include "launch/launch.h"
#include "common/fail.h"
#include "common/arena.h"

struct figure {
    const char *name;
    uint64_t value;
    enum kb_unit unit;
    struct figure *next;
};

static struct figure *figures, **last = &figures;

void kb_figure(const char *name, uint64_t value, enum kb_unit unit)
{
    struct figure *figure = arena_alloc(1, sizeof *figure);
    *figure = (struct figure){arena_printf("%s", name), value, unit, NULL};
    *last = figure;
    last = &figure->next;
}

uint64_t kb_kernels_ps_at(kb_future future, const char *file, uint32_t line)
{
    if (!future)
        misuse(file, line, "kb_kernels_ps: there is no launch");
    uint64_t end_ps = future->start_ps;
    for (const struct kernel_run *run = future->runs; run < future->runs + future->count; run++) {
        if (!run->ended)
            return 0;
        end_ps = run->end_ps > end_ps ? run->end_ps : end_ps;
    }
    return end_ps - future->start_ps;
}

static const char *human(const struct figure *figure)
{
    switch (figure->unit) {
    case KB_PS: return human_time(figure->value);
    case KB_BYTES_PER_S: return human_count((double)figure->value, "B/s");
    default: return arena_printf("%.1f %%", (double)figure->value / 10);
    }
}

void figures_print(FILE *out)
{
    for (const struct figure *figure = figures; figure; figure = figure->next)
        fprintf(out, "%-12s %s\n", figure->name, human(figure));
}

void figures_write(struct json *json)
{
    static const char *const suffixes[] = {
        [KB_PS] = "ps", [KB_BYTES_PER_S] = "bytes_per_s", [KB_PERMILLE] = "permille"};
    if (!figures)
        return;
    json_object(json, "figures");
    for (const struct figure *figure = figures; figure; figure = figure->next)
        json_u64(json, arena_printf("%s_%s", figure->name, suffixes[figure->unit]), figure->value);
    json_object_end(json);
}

void figures_reset(void)
{
    figures = NULL;
    last = &figures;
}
