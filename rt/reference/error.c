/* error.c: what the analysis of rounding errors knows of dtypes, and how errors are joined. */
#include "error.h"

#include <string.h>

#include "common/fail.h"

enum error_mode error_mode;

const double error_unit[DTYPES] = {[DTYPE_f32] = 0x1p-24, [DTYPE_f16] = 0x1p-11, [DTYPE_bf16] = 0x1p-8,
                                    [DTYPE_f8e4m3] = 0x1p-4, [DTYPE_f8e5m2] = 0x1p-3};
const double error_least[DTYPES] = {[DTYPE_f32] = 0x1p-150, [DTYPE_f16] = 0x1p-25, [DTYPE_bf16] = 0x1p-134,
                                     [DTYPE_f8e4m3] = 0x1p-10, [DTYPE_f8e5m2] = 0x1p-17};

void error_mode_option(const char *text)
{
    static const char *const words[] = {
        [ERRORS_STATISTICAL] = "bounds", [ERRORS_WORST] = "worst", [ERRORS_PLAIN] = "plain"};
    unsigned mode = ERRORS_STATISTICAL;
    while (mode <= ERRORS_PLAIN && strcmp(text, words[mode]))
        mode++;
    if (mode > ERRORS_PLAIN)
        usage_error("--tolerance %s: bounds, worst or plain is needed", text);
    error_mode = (enum error_mode)mode;
}
