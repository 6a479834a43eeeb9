/* submission.c: what a PE refuses when it is submitted: what an engine lacks, addresses outside the TCM's Allocatable
 * region, tiles that are too large. A check that refuses a command fills `why` and returns true. */
#include "submission.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/ops.h"
#include "base/rates.h"
#include "common/arena.h"
#include "ipcq.h"
#include "plan_generator.h"
#include "tiling.h"

__attribute__((format(printf, 4, 5))) static bool refuse(struct refusal *why, enum fault code, enum node_kind part,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    why->code = code;
    why->part = part;
    return true;
}

static bool gemm_lacks(enum dtype dtype, struct refusal *why)
{
    return !kb_gemm_k_per_cycle[dtype]
           && refuse(why, FAULT_KERNEL_ERROR, NODE_pe_cpu, "pe_gemm has no k_per_cycle for %s", dtype_words[dtype]);
}

static bool math_lacks(uint16_t op, enum dtype dtype, struct refusal *why)
{
    if (!op_known(op))
        return refuse(why, FAULT_KERNEL_ERROR, NODE_pe_cpu, "pe_math has no op '%s'", op_name(op));
    return !kb_math_lanes[dtype]
           && refuse(why, FAULT_KERNEL_ERROR, NODE_pe_cpu, "pe_math has no lanes for %s", dtype_words[dtype]);
}

static bool ring_lacks(const struct command *command, struct refusal *why)
{
    const char *lack = ipcq_refusal(command);
    return lack && refuse(why, FAULT_KERNEL_ERROR, NODE_pe_cpu, "%s", lack);
}

enum need { NEEDS_NOTHING, NEEDS_GEMM, NEEDS_MATH, NEEDS_RING };
enum { ANYWHERE, IN_TCM };

static const struct {
    uint8_t need;
    bool in_tcm;
} rules[COMMANDS] = {
#define COMMAND(name, word, stage, needs, tcm) [COMMAND_##name] = {NEEDS_##needs, tcm == IN_TCM},
#include "kb/commands.def"
#undef COMMAND
};

static bool engine_lacks(const struct command *command, struct refusal *why)
{
    const struct request *ask = &command->ask;
    switch ((enum need)rules[ask->kind].need) {
    case NEEDS_GEMM:
        return gemm_lacks(ask->dtype, why);
    case NEEDS_MATH:
        return math_lacks(ask->op, ask->dtype, why);
    case NEEDS_RING:
        return ring_lacks(command, why);
    case NEEDS_NOTHING:
        return false;
    }
    return false;
}

static bool epilogue_lacks(const struct request *ask, struct refusal *why)
{
    for (uint32_t i = 0; i < ask->epilogues; i++)
        if (math_lacks(ask->epilogue[i].op, ask->out_dtype, why))
            return true;
    return false;
}

static bool outside_tcm(const struct request *ask, struct refusal *why)
{
    uint64_t size = kb_attrs.pe_tcm_size_bytes, reserved = kb_attrs.pe_tcm_reserved_bytes;
    if (!rules[ask->kind].in_tcm || (ask->tcm >= reserved && ask->tcm <= size && ask->bytes <= size - ask->tcm))
        return false;
    return refuse(why, FAULT_BAD_ADDRESS, NODE_pe_dma,
                  "bytes 0x%" PRIx64 " to 0x%" PRIx64 " lie outside the TCM's Allocatable region, 0x%" PRIx64
                  " to 0x%" PRIx64,
                  ask->tcm, sum(ask->tcm, ask->bytes), reserved, size);
}

/* Where the plan of a composite comes from: "" if it is built in. */
static const char *plan_place(void)
{
    const struct kb_plan *plan = plan_generator();
    return plan ? arena_printf("plan %s, %s:%" PRIu32 ": ", plan->name, plan->file, plan->line) : "";
}

static bool plan_is_wrong(const char *wrong, struct refusal *why)
{
    return wrong && refuse(why, FAULT_KERNEL_ERROR, NODE_pe_scheduler, "%s%s", plan_place(), wrong);
}

/* The largest tile of a built-in plan is the first one, or the first one that stores. */
static bool tile_too_large(const struct command *command, struct refusal *why)
{
    uint64_t last = command->tiles_k - 1, count = command->planned ? command->tiles : last ? 2 : 1;
    for (uint64_t i = 0; i < count; i++) {
        struct tile tile = tiling_tile(command, command->planned || !i ? i : last);
        uint64_t bytes = tile.shape->buffer_bytes;
        if (bytes > kb_attrs.pe_tcm_reserved_bytes)
            return refuse(why, FAULT_TILE_TOO_LARGE, NODE_pe_scheduler,
                          "%stile %" PRIu64 " needs buffers of %" PRIu64
                          " bytes, the scheduler's region of the TCM has %" PRIu64,
                          plan_place(), tile.id, bytes, kb_attrs.pe_tcm_reserved_bytes);
    }
    return false;
}

bool submission_refused(const struct command *command, const char *plan_wrong, struct refusal *why)
{
    const struct request *ask = &command->ask;
    return engine_lacks(command, why) || epilogue_lacks(ask, why) || outside_tcm(ask, why)
           || (command_is_composite(ask->kind) && (plan_is_wrong(plan_wrong, why) || tile_too_large(command, why)));
}
