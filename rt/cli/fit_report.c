/* fit_report.c: the answer of a fit, as text and as JSON. */
#include "fit_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/human.h"
#include "common/arena.h"
#include "common/diag.h"

static double shown_number(const struct constant *c, double x)
{
    return c->key.shown ? x * (double)c->key.shown->down / (double)c->key.shown->up : x;
}


static const char *value_text(const struct constant *c, double x)
{
    if (c->is_rate && x == 0)
        return "no limit";
    return c->key.shown ? arena_printf("%.6g %s", shown_number(c, x), c->key.shown->name) : arena_printf("%.6g", x);
}

/* The option that sets a constant, in the unit that needs no name: decimal factors keep all digits. */
static const char *set_option(const struct constant *c)
{
    double x = fit_number(c, c->u);
    if (c->is_rate && x == 0)
        return arena_printf("%s=~", c->key.path);
    if (c->key.dimension == DIMENSION_size)
        return arena_printf("%s=%.0fB", c->key.path, x);
    return arena_printf("%s=%.15g", c->key.path, shown_number(c, x));
}

static const char *note_on(const struct constant *c)
{
    if (!c->is_found)
        return "no measured time depends on it";
    if (c->collinear_with)
        return arena_printf("the times do not tell it from %s", c->collinear_with);
    if (c->plateau)
        return c->plateau;
    if (c->is_undetermined)
        return "the times do not determine it";
    return c->alternatives ? arena_printf("explained as well by %s", c->alternatives) : "";
}

static bool is_changed(const struct constant *c)
{
    return c->is_found && fit_number(c, c->u) != fit_number(c, c->start);
}

void fit_print(const struct fit *fit, FILE *out)
{
    fprintf(out, "\nfit of %zu times in %" PRIu64 " runs: mean error %s before, %s after\n", fit->observations.count, fit->runs,
            human_time((uint64_t)fit->before_ps), human_time((uint64_t)(fit->after_ps + 0.5)));
    if (!fit->count) {
        fprintf(out, "  no number of the topology explains more than there is noise\n");
        return;
    }
    fprintf(out, "\n%14s    %-14s %12s  %s\n", "topology", "fitted", "error", "key");
    for (unsigned j = 0; j < fit->count; j++) {
        const struct constant *c = &fit->constants.at[fit->chosen[j]];
        const char *note = note_on(c), *error = c->error < HUGE_VAL ? arena_printf("+- %.2g", shown_number(c, c->error)) : "";
        fprintf(out, "%14s -> %-14s %12s  %s%s%s\n", value_text(c, fit_number(c, c->start)), value_text(c, fit_number(c, c->u)), error, c->key.path,
                *note ? "; " : "", note);
    }
    const char *options = "";
    for (unsigned j = 0; j < fit->count; j++)
        if (is_changed(&fit->constants.at[fit->chosen[j]]))
            options = arena_printf("%s --set %s", options, set_option(&fit->constants.at[fit->chosen[j]]));
    if (*options)
        fprintf(out, "\n %s\n", options);
}

void fit_write(struct json *json, const struct fit *fit)
{
    json_object(json, "fit");
    json_u64(json, "times", fit->observations.count);
    json_u64(json, "runs", fit->runs);
    json_double(json, "mean_error_before_ps", fit->before_ps);
    json_double(json, "mean_error_after_ps", fit->after_ps);
    json_array(json, "constants");
    for (unsigned j = 0; j < fit->count; j++) {
        const struct constant *c = &fit->constants.at[fit->chosen[j]];
        const char *note = note_on(c);
        json_object(json, NULL);
        json_string(json, "key", c->key.path);
        json_string(json, "place", c->key.place);
        json_string(json, "value", value_text(c, fit_number(c, c->start)));
        json_string(json, "fitted", value_text(c, fit_number(c, c->u)));
        json_double(json, "number", shown_number(c, fit_number(c, c->u)));
        if (c->error < HUGE_VAL)
            json_double(json, "standard_error", shown_number(c, c->error));
        json_bool(json, "determined", !c->is_undetermined);
        if (*note)
            json_string(json, "note", note);
        json_string(json, "set", set_option(c));
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}
