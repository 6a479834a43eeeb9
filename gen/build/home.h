/* home.h: where kbgen finds what it needs beside itself. */
#ifndef GEN_HOME_H
#define GEN_HOME_H

#include "../words.h"

/* The folders with templates/ and rt/, and with libkb.a, libcommon.a and kernels/. They are looked for in $KBGEN_HOME if
 * it is set, a source tree or an installation; else around kbgen itself. Absolute; without one, kbgen dies. */
const char *home_sources(void);
const char *home_archives(void);

/* kbgen's own file, and a hash over it. */
const char *home_program(void);
const char *home_identity(void);

/* The objects and archives that every simulator is linked with, in their order. */
struct words home_objects(void);

#endif
