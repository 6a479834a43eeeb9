/* home.h: where kbgen finds its own files. */
#ifndef GEN_HOME_H
#define GEN_HOME_H

#include "../words.h"

/* The folder with templates/ and rt/, and the folder with libkb.a, libcommon.a and kernels/; absolute. $KBGEN_HOME, if
 * set, names a source tree or an installation; else they are looked for around kbgen itself. kbgen dies if it finds
 * none. */
const char *home_sources(void);
const char *home_archives(void);

/* The path of kbgen's own program, and a hash over it. */
const char *home_program(void);
const char *home_identity(void);

/* The objects and archives that every simulator is linked with, in link order. */
struct words home_objects(void);

#endif
