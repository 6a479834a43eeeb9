/* misuse.h: a bench that asks for what cannot be. */
#ifndef KB_MISUSE_H
#define KB_MISUSE_H

#include <stdint.h>

/* Prints "FILE:LINE: error: message" and ends the run with status 2. */
_Noreturn void misuse(const char *file, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
