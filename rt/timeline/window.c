/* window.c: the part of a run that is shown. */
#include "window.h"

#include "host/glob.h"
#include "machine/emitted.h"
#include "machine/pe.h"

struct window window = {0, INT64_MAX, NULL, WINDOW_SLICES};

bool window_has_pe(uint32_t pe)
{
    return !window.pes || glob_matches(window.pes, pe_name(&kb_pe[pe]));
}
