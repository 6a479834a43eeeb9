/* info.h: `SIM info`. */
#ifndef KB_INFO_H
#define KB_INFO_H

#include <stdio.h>

void info_print(FILE *out);

#endif
