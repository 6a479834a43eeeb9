/* misuse.c: a bench that asks for what cannot be. */
#include "misuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void misuse(const char *file, uint32_t line, const char *format, ...)
{
    fflush(stdout);
    fprintf(stderr, "%s:%u: error: ", file, (unsigned)line);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}
