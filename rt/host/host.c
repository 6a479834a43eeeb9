/* host.c: the host library, but for tensors (tensor.c), references (ref.c) and expectations (expect.c): sets of PEs,
 * fills. */
#include "kb/host.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "base/dtype.h"
#include "machine/emitted.h"
#include "datapass/exec.h"
#include "glob.h"
#include "host_program.h"
#include "common/fail.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "sim/loop.h"
#include "store/tensor.h"
#include "common/arena.h"

enum kb_dtype kb_dtype_at(const char *name, const char *file, uint32_t line)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (!strcmp(name, dtype_words[i]))
            return (enum kb_dtype)i;
    misuse(file, line, "kb_dtype: there is no dtype '%s'", name);
}

/* ---- sets of PEs */

struct kb_pes kb_pes_at(const char *glob, bool machine, const char *file, uint32_t line)
{
    uint32_t in_sip = kb_shape.cubes * kb_shape.pes, first = 0, end = kb_shape.sips * in_sip, count = 0;
    if (bench_current->per_sip && !machine) {
        first = sim_rank() * in_sip;
        end = first + in_sip;
    }
    uint32_t *pes = arena_alloc(end - first, sizeof *pes);
    for (uint32_t pe = first; pe < end; pe++)
        if (glob_matches(glob, pe_name(&kb_pe[pe])))
            pes[count++] = pe;
    if (count == 0)
        misuse(file, line, "kb_pes: no PE is like '%s'; the last one is %s", glob, pe_name(&kb_pe[end - 1]));
    return (struct kb_pes){pes, count};
}

/* ---- what tensors hold */

bool kb_has_data(void)
{
    return oplog_on;
}

void kb_fill_at(kb_tensor tensor, enum kb_fill_kind kind, double x, double y, const char *file, uint32_t line)
{
    host_only("kb_fill", file, line);
    tensor_check(tensor, "kb_fill", file, line);
    if (kind == KB_UNIFORM && !(x <= y))
        misuse(file, line, "kb_fill_uniform: tensor '%s': low is %g, high is %g", tensor->name, x, y);
    struct op op = {.kind = OPKIND_memory, .name = "fill", .pe = OP_OF_HOST, .file = file, .line = line,
                    .fill = {.tensor = tensor, .kind = kind, .x = x, .y = y}};
    oplog_add(&op);
}
