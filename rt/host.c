/* host.c: the host library, but for tensors (tensor.c), references (ref.c) and expectations (expect.c): sets of PEs,
 * fills, peeks, launches. */
#include "kb/host.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "dtype.h"
#include "emitted.h"
#include "exec.h"
#include "glob.h"
#include "launch.h"
#include "misuse.h"
#include "pe.h"
#include "plan.h"
#include "tensor.h"
#include "text/base.h"

enum kb_dtype kb_dtype_at(const char *name, const char *file, uint32_t line)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (!strcmp(name, dtype_words[i]))
            return (enum kb_dtype)i;
    misuse(file, line, "kb_dtype: there is no dtype '%s'", name);
}

/* ---- sets of PEs */

static const char *pe_id(uint32_t pe, char id[48])
{
    uint32_t cube = pe / kb_shape.pes;
    sprintf(id, "sip%u.cube%u.pe%u", (unsigned)(cube / kb_shape.cubes), (unsigned)(cube % kb_shape.cubes),
            (unsigned)(pe % kb_shape.pes));
    return id;
}

struct kb_pes kb_pes_at(const char *glob, const char *file, uint32_t line)
{
    uint32_t all = kb_shape.sips * kb_shape.cubes * kb_shape.pes, count = 0;
    uint32_t *pes = arena_alloc(all, sizeof *pes);
    char id[48];
    for (uint32_t pe = 0; pe < all; pe++)
        if (glob_matches(glob, pe_id(pe, id)))
            pes[count++] = pe;
    if (count == 0)
        misuse(file, line, "kb_pes: no PE is like '%s'; the last one is %s", glob, pe_id(all - 1, id));
    return (struct kb_pes){pes, count};
}

/* ---- what tensors hold */

void kb_fill_at(kb_tensor tensor, enum kb_fill_kind kind, double x, double y, const char *file, uint32_t line)
{
    tensor_check(tensor, "kb_fill", file, line);
    if (kind == KB_UNIFORM && !(x <= y))
        misuse(file, line, "kb_fill_uniform: tensor '%s': low is %g, high is %g", tensor->name, x, y);
    struct op op = {.kind = OPKIND_memory, .name = "fill", .pe = OP_OF_HOST, .file = file, .line = line,
                    .fill = {tensor, kind, x, y}};
    oplog_add(&op);
}

static struct run run_of(const struct tensor *tensor, uint64_t position)
{
    uint32_t shards = tensor->place.split == KB_COPIES ? 1 : tensor->shards;
    for (uint32_t i = 0; i < shards; i++)
        for (uint64_t row = 0; row < tensor_rows(&tensor->shard[i]); row++) {
            struct run run = tensor_row(tensor, &tensor->shard[i], row);
            if (position >= run.position && position - run.position < run.count)
                return run;
        }
    return (struct run){0};                             /* not reached: the shards hold every position */
}

double kb_peek_at(kb_tensor tensor, uint64_t position, const char *file, uint32_t line)
{
    tensor_check(tensor, "kb_peek", file, line);
    if (position >= tensor->elements)
        misuse(file, line, "kb_peek: tensor '%s' has %" PRIu64 " elements, there is no %" PRIu64, tensor->name,
               tensor->elements, position);
    struct run run = run_of(tensor, position);
    uint64_t size = dtype_bytes[tensor->dtype], offset = run.offset + (position - run.position) * size, at;
    oplog_settle(true, OP_OF_HOST);
    if (store_pending(run.memory, offset, size, &at)) {
        if (!oplog_on)
            misuse(file, line, "kb_peek: tensor '%s' holds results there, which --data off does not compute",
                   tensor->name);
        exec_data_pass();
    }
    store_reach(VIEW_NOW, run.memory, offset + size);
    return dtype_value(tensor->dtype, store_at(VIEW_NOW, run.memory, offset));
}

/* ---- launches */

static bool holds(struct kb_pes pes, uint32_t pe)
{
    uint32_t low = 0, high = pes.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pes.pe[middle] < pe)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pes.count && pes.pe[low] == pe;
}

/* A PE runs one kernel at a time. */
static void check_free(const struct kb_kernel *kernel, struct kb_pes pes, const char *file, uint32_t line)
{
    char id[48];
    for (const struct launch *launch = launches; launch; launch = launch->next)
        for (uint32_t i = 0; launch->status == LAUNCH_RUNNING && i < launch->count; i++) {
            uint32_t pe = pe_number(launch->runs[i].tl.pe);
            if (!launch->runs[i].ended && holds(pes, pe))
                misuse(file, line, "kb_launch: %s still runs kernel %s and cannot run %s yet", pe_id(pe, id),
                       launch->program, kernel->name);
        }
}

kb_future kb_launch_at(const struct kb_kernel *kernel, struct kb_pes pes, const void *arg, const char *file,
                       uint32_t line)
{
    if (pes.count == 0)
        misuse(file, line, "kb_launch: kernel %s is launched on no PE", kernel->name);
    check_free(kernel, pes, file, line);
    struct device_program *program = arena_alloc(1, sizeof *program);
    void *copy = arena_alloc(1, kernel->arg_bytes);
    memcpy(copy, arg, kernel->arg_bytes);
    *program = (struct device_program){kernel, copy};
    struct launch_part part = {kernel->name, device_run, program, pes.pe, pes.count};
    return launch_submit(&part, 1, &(struct launch_options){0});
}

void kb_wait_at(kb_future future, const char *file, uint32_t line)
{
    if (!future)
        misuse(file, line, "kb_wait: there is no launch to wait for");
    launch_wait(future);
}
