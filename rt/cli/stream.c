/* stream.c: reads a command stream: launches, their parts and targets. */
#include "stream.h"

#include <stdio.h>
#include <string.h>

#include "machine/emitted.h"
#include "host/glob.h"
#include "common/arena.h"
#include "common/read.h"
#include "common/yaml.h"

/* ---- targets: globs over PE ids */

bool pe_find(const char *id, uint32_t *pe)
{
    unsigned sip, cube, number;
    if (sscanf(id, "sip%3u.cube%3u.pe%3u", &sip, &cube, &number) != 3 || sip >= kb_shape.sips || cube >= kb_shape.cubes
        || number >= kb_shape.pes)
        return false;
    *pe = (sip * kb_shape.cubes + cube) * kb_shape.pes + number;
    return !strcmp(id, pe_name(&kb_pe[*pe]));           /* in no other spelling */
}

/* `taken`: per PE, the part of this launch that has it, from 1. */
static void targets_read(const struct node *node, uint32_t part, uint32_t *taken, struct stream_part *out)
{
    const char *glob;
    if (!node_is(node, NODE_SEQUENCE, "targets"))
        return;
    if (!node->count)
        error_at(node->where, "targets must name at least one PE");
    for (size_t i = 0; i < node->count; i++) {
        bool matched = false;
        if (!node_string(node->items[i], "a target", &glob))
            continue;
        for (uint32_t pe = 0; pe < pe_count(); pe++) {
            const char *id = pe_name(&kb_pe[pe]);
            if (!glob_matches(glob, id))
                continue;
            matched = true;
            if (taken[pe] && taken[pe] != part)
                error_at(node->items[i]->where, "%s is in two parts of the launch", id);
            taken[pe] = part;
        }
        if (!matched)
            error_at(node->items[i]->where, "no PE matches '%s'; ids are like sip0.cube0.pe0", glob);
    }
    out->pes = arena_alloc(pe_count(), sizeof *out->pes);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        if (taken[pe] == part)
            out->pes[out->count++] = pe;
}

/* ---- launches */

const struct node *required(const struct node *mapping, const char *key)
{
    const struct node *value = node_get(mapping, key);
    if (!value)
        error_at(mapping->where, "'%s' is missing", key);
    return value;
}

void number_read(const struct node *mapping, const char *key, uint64_t least, uint64_t *out)
{
    const struct node *value = required(mapping, key);
    if (value)
        node_u64(value, key, least, UINT64_MAX, out);
}

static void program_find(const struct node *node, const struct stream *stream, const struct program **out)
{
    const char *name, **names = arena_alloc(stream->program_count + 1, sizeof *names);
    if (!node_string(node, "program", &name))
        return;
    for (uint32_t i = 0; i < stream->program_count; i++) {
        names[i] = stream->programs[i].name;
        if (!strcmp(names[i], name))
            *out = &stream->programs[i];
    }
    if (*out)
        return;
    const char *near = nearest_name(name, names, stream->program_count);
    error_at(node->where, "there is no program '%s'", name);
    if (near)
        note_at(node->where, "did you mean '%s'?", near);
}

static void part_read(const struct node *node, const struct stream *stream, uint32_t part, uint32_t *taken,
                      struct stream_part *out)
{
    const struct node *program = required(node, "program"), *targets = required(node, "targets");
    if (program)
        program_find(program, stream, &out->program);
    if (targets)
        targets_read(targets, part, taken, out);
}

static void options_read(const struct node *launch, struct launch_options *options)
{
    static const char *const policies[] = {"drain", "fail_fast"};
    const struct node *policy = node_get(launch, "on_failure"), *timeout = node_get(launch, "timeout_ns");
    unsigned chosen = 0;
    if (policy && node_choice(policy, "on_failure", policies, COUNT_OF(policies), &chosen))
        options->fail_fast = chosen;
    if (timeout)
        options->timed = node_ps(timeout, "timeout_ns", UINT64_MAX, &options->timeout_ps);
}

static void launch_read(const struct node *node, const struct stream *stream, struct stream_launch *launch)
{
    static const char *const keys[] = {"program", "targets", "parts", "timeout_ns", "on_failure"};
    static const char *const part_keys[] = {"program", "targets"};
    if (!node_is(node, NODE_MAPPING, "a launch"))
        return;
    node_check_keys(node, "a launch", keys, COUNT_OF(keys));
    options_read(node, &launch->options);
    uint32_t *taken = arena_alloc(pe_count(), sizeof *taken);
    const struct node *parts = node_get(node, "parts");
    if (!parts) {
        launch->parts = arena_alloc(1, sizeof *launch->parts);
        launch->count = 1;
        part_read(node, stream, 1, taken, launch->parts);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(part_keys); i++)
        if (node_get(node, part_keys[i]))
            error_at(node_get(node, part_keys[i])->where, "'%s' stands beside 'parts'; it belongs into one of them",
                     part_keys[i]);
    if (!node_is(parts, NODE_SEQUENCE, "parts"))
        return;
    if (!parts->count)
        error_at(parts->where, "parts must have at least one entry");
    launch->parts = arena_alloc(parts->count + 1, sizeof *launch->parts);
    for (size_t i = 0; i < parts->count; i++) {
        if (!node_is(parts->items[i], NODE_MAPPING, "a part"))
            continue;
        node_check_keys(parts->items[i], "a part", part_keys, COUNT_OF(part_keys));
        part_read(parts->items[i], stream, i + 1, taken, &launch->parts[launch->count++]);
    }
}

static void programs_read(const struct node *node, struct stream *stream)
{
    if (!node_is(node, NODE_MAPPING, "programs"))
        return;
    stream->programs = arena_alloc(node->count + 1, sizeof *stream->programs);
    for (size_t i = 0; i < node->count; i++) {
        struct program *program = &stream->programs[stream->program_count++];
        program->name = node->entries[i].key->text;
        program_read(node->entries[i].value, program);
    }
}

struct stream *stream_read(const char *path)
{
    static const char *const keys[] = {"name", "mmu", "memory", "launches", "programs"};
    struct stream *stream = arena_alloc(1, sizeof *stream);
    const struct node *root = yaml_read(path);
    if (!root || !node_is(root, NODE_MAPPING, "a command stream")) {
        errors_end();
        return stream;
    }
    node_check_keys(root, "a command stream", keys, COUNT_OF(keys));
    const char *name;
    if (node_get(root, "name"))
        node_string(node_get(root, "name"), "name", &name);
    if (node_get(root, "mmu"))
        maps_read(node_get(root, "mmu"), stream);
    if (node_get(root, "memory"))
        memory_read_all(node_get(root, "memory"), stream);
    const struct node *programs = required(root, "programs"), *listed = required(root, "launches");
    if (programs)
        programs_read(programs, stream);
    if (listed && node_is(listed, NODE_SEQUENCE, "launches")) {
        stream->launches = arena_alloc(listed->count + 1, sizeof *stream->launches);
        for (size_t i = 0; i < listed->count; i++)
            launch_read(listed->items[i], stream, &stream->launches[stream->launch_count++]);
    }
    errors_end();
    return stream;
}
