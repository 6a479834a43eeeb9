/* figure.c: the measurements that a bench reports. */
#include "figure.h"

#include "base/human.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "kb/measure.h"
#include "launch/launch.h"

static struct ARRAY(struct figure {
    const char *name;
    uint64_t value;
    enum kb_unit unit;
}) figures;

void kb_figure(const char *name, uint64_t value, enum kb_unit unit)
{
    *array_add(&figures) = (struct figure){arena_printf("%s", name), value, unit};
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

static const char *figure_text(const struct figure *figure)
{
    switch (figure->unit) {
    case KB_PS: return human_time(figure->value);
    case KB_BYTES_PER_S: return human_count((double)figure->value, "B/s");
    default: return arena_printf("%.1f %%", (double)figure->value / 10);
    }
}

void figures_print(FILE *out)
{
    for (size_t i = 0; i < figures.count; i++)
        fprintf(out, "%-12s %s\n", figures.at[i].name, figure_text(&figures.at[i]));
}

void figures_write(struct json *json)
{
    static const char *const suffixes[] = {
        [KB_PS] = "ps", [KB_BYTES_PER_S] = "bytes_per_s", [KB_PERMILLE] = "permille"};
    if (!figures.count)
        return;
    json_object(json, "figures");
    for (size_t i = 0; i < figures.count; i++)
        json_u64(json, arena_printf("%s_%s", figures.at[i].name, suffixes[figures.at[i].unit]), figures.at[i].value);
    json_object_end(json);
}

void figures_reset(void)
{
    array_free(&figures);
}
