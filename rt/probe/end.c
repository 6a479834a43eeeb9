/* end.c: the ends of transfers by name and number. */
#include "end.h"

#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "common/quantity.h"
#include "machine/emitted.h"

const char *const end_words[END_KINDS] = {
#define END(name, word, what) [END_##name] = word,
#include "end.def"
}, *const end_phrases[END_KINDS] = {
#define END(name, word, what) [END_##name] = what,
#include "end.def"
};

bool end_is_memory(enum end_kind kind)
{
    return kind == END_HBM || kind == END_SRAM || kind == END_TCM;
}

bool end_is_processor(enum end_kind kind)
{
    return kind == END_M_CPU || kind == END_IO_CPU || kind == END_HOST;
}

uint32_t end_count(enum end_kind kind)
{
    switch (kind) {
    case END_HOST: return 1;
    case END_IO_CPU: return kb_shape.sips;
    case END_M_CPU: return cube_count();
    case END_SRAM: return sram_count();
    case END_HBM: return slice_count();
    default: return pe_count();
    }
}

struct end end_make(enum end_kind kind, uint32_t number)
{
    return (struct end){kind, number, kind == END_TCM ? kb_attrs.pe_tcm_reserved_bytes : 0};
}

struct end end_of_cube(uint32_t cube)
{
    enum end_kind kind = kb_shape.srams ? END_SRAM : kb_shape.slices ? END_HBM : END_TCM;
    return end_make(kind, end_count(kind) / cube_count() * cube);
}

uint32_t end_cube(struct end end)
{
    switch (end.kind) {
    case END_HOST:
    case END_IO_CPU: return UINT32_MAX;
    case END_M_CPU:
    case END_SRAM: return end.number;
    case END_HBM: return end.number / kb_shape.slices;
    default: return end.number / kb_shape.pes;
    }
}

uint32_t end_sip(struct end end)
{
    if (end.kind == END_HOST)
        return UINT32_MAX;
    return end.kind == END_IO_CPU ? end.number : end_cube(end) / kb_shape.cubes;
}

struct place end_place(struct end end)
{
    uint32_t sip = end_sip(end), cube = end_cube(end) % kb_shape.cubes;
    switch (end.kind) {
    case END_HOST: return place_host();
    case END_IO_CPU: return place_io_cpu(sip);
    case END_M_CPU: return place_m_cpu(sip, cube);
    case END_SRAM: return (struct place){sip, cube, cube_sram()};
    case END_HBM: return slice_place(end.number);
    case END_TCM: return place_pe(end.number, NODE_pe_tcm);
    default: return place_pe(end.number, NODE_pe_cpu);
    }
}

const char *end_name(struct end end)
{
    const char *name = end.kind == END_PE ? pe_name(&kb_pe[end.number]) : place_name(end_place(end));
    return arena_text(name, strlen(name));
}

static uint32_t end_memory(struct end memory)
{
    return memory.kind == END_HBM ? memory_hbm(memory.number)
           : memory.kind == END_TCM ? memory_tcm(memory.number) : memory_sram(memory.number);
}

uint64_t end_address(struct end memory, uint64_t past)
{
    return memory_address(end_memory(memory), memory.offset + past);
}

/* ---- reading */

/* The offset in "sram+0x1000", which begins at its '+'. */
static uint64_t read_offset(const char *text, const char *plus, struct end end)
{
    uint64_t offset = 0;
    const char *unit, *why;
    mpq_t value;
    mpq_init(value);
    if (!end_is_memory(end.kind))
        usage_error("%s: only a memory has an offset", text);
    why = quantity_lex(plus + 1, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, DIMENSION_size, unit_named("B"));
    if (why || mpq_sgn(value) < 0 || mpz_cmp_ui(mpq_denref(value), 1))
        usage_error("%s: a whole number of bytes is needed behind '+', such as 0x1000", text);
    uint64_t size = memory_size(end_memory(end));
    if (!quantity_whole(value, &offset) || offset >= size)
        usage_error("%s is past the end of the memory, which has %" PRIu64 " bytes", text, size);
    mpq_clear(value);
    return offset;
}

/* Ends with the nearest name of an end. */
static _Noreturn void refuse(const char *text, const char *name)
{
    size_t count = 0;
    for (unsigned kind = 0; kind < END_KINDS; kind++)
        count += end_count(kind);
    const char **names = arena_alloc(count, sizeof *names);
    count = 0;
    for (unsigned kind = 0; kind < END_KINDS; kind++)
        for (uint32_t number = 0; number < end_count(kind); number++)
            names[count++] = end_name(end_make(kind, number));
    const char *near = nearest_name(name, names, count);
    if (near)
        usage_error("%s has no end '%s' of a transfer; did you mean '%s'?", kb_machine_name, text, near);
    usage_error("%s has no end '%s' of a transfer; ends are host, sip0.io_cpu, sip0.cube0.m_cpu, sip0.cube0.sram,"
                " sip0.cube0.hbm_ctrl.pe0, sip0.cube0.pe0 and sip0.cube0.pe0.pe_tcm", kb_machine_name, text);
}

struct end end_read(const char *text)
{
    const char *plus = strchr(text, '+');
    const char *name = plus ? arena_text(text, (size_t)(plus - text)) : text;
    struct arena_mark mark = arena_mark();
    for (unsigned kind = 0; kind < END_KINDS; kind++)
        for (uint32_t number = 0; number < end_count(kind); number++) {
            struct end end = end_make(kind, number);
            bool is_it = !strcmp(end_name(end), name);
            arena_release(mark);
            if (!is_it)
                continue;
            if (plus)
                end.offset = read_offset(text, plus, end);
            return end;
        }
    refuse(text, name);
}
