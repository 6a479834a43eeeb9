/* manual.h: the manual page of a program, made of the tables of its options. */
#ifndef KB_MANUAL_H
#define KB_MANUAL_H

struct program;

/* Prints the page of section 1, in mdoc(7). */
void manual_print(const struct program *program);

#endif
