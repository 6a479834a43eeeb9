/* fit_report.h: the answer of a fit. */
#ifndef KB_FIT_REPORT_H
#define KB_FIT_REPORT_H

#include <stdio.h>

#include "bringup/fit.h"
#include "common/json.h"

void fit_print(const struct fit *fit, FILE *out);

/* Writes the object "fit". */
void fit_write(struct json *json, const struct fit *fit);

#endif
