/* race_report.c: what the race check found, for people and as JSON. */
#include <inttypes.h>

#include "base/address.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "race.h"

static void print_side(FILE *out, const struct raced *side)
{
    const struct origin *op = side->origin;
    fprintf(out, "               %s by %s, command %" PRIu32 " of kernel %s on %s, called at %" PRIu64 " ps",
            side->writes ? "written" : "read", op->name, op->command, op->kernel, pe_name(&kb_pe[op->pe]), side->at_ps);
    if (op->end_ps)
        fprintf(out, ", complete at %" PRIu64 " ps", op->end_ps);
    fprintf(out, ", at %s:%" PRIu32 "\n", op->file, op->line);
}

void races_print(FILE *out)
{
    for (const struct race *race = races; race; race = race->next) {
        fprintf(out, "RACE         %" PRIu64 " bytes from %s on are used in no order:\n", race->end - race->first,
                address_name(memory_address(race->memory, race->first)));
        print_side(out, &race->side[0]);
        print_side(out, &race->side[1]);
    }
}

static void write_side(struct json *json, const struct raced *side)
{
    const struct origin *op = side->origin;
    json_object(json, NULL);
    json_string(json, "op", op->name);
    json_string(json, "access", side->writes ? "write" : "read");
    json_string(json, "pe", pe_name(&kb_pe[op->pe]));
    json_string(json, "kernel", op->kernel);
    json_u64(json, "n", op->command);
    json_string(json, "file", op->file);
    json_u64(json, "line", op->line);
    json_u64(json, "called_ps", side->at_ps);
    if (op->end_ps)
        json_u64(json, "complete_ps", op->end_ps);
    json_object_end(json);
}

void races_write(struct json *json)
{
    if (!races_on)
        return;
    json_array(json, "races");
    for (const struct race *race = races; race; race = race->next) {
        json_object(json, NULL);
        json_string(json, "first", address_name(memory_address(race->memory, race->first)));
        json_u64(json, "bytes", race->end - race->first);
        json_array(json, "ops");
        write_side(json, &race->side[0]);
        write_side(json, &race->side[1]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}
