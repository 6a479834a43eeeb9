/* tap.h: what the unit tests share: a TAP line for each test, and random numbers. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int tests;

/* Prints whether a test passed, with its name as printf prints it; returns whether it did. */
__attribute__((format(printf, 2, 3))) static inline bool expect(bool good, const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    printf("%s %d - ", good ? "ok" : "not ok", ++tests);
    vprintf(name, arguments);
    putchar('\n');
    va_end(arguments);
    return good;
}

/* Prints the plan; the exit status of the program. */
static inline int tests_end(void)
{
    printf("1..%d\n", tests);
    return 0;
}

static inline uint64_t below(uint64_t n)
{
    return (uint64_t)rand() % n;
}

#endif
