/* home.h: where kbgen finds its own files. */
#ifndef GEN_HOME_H
#define GEN_HOME_H

#include "../words.h"

/* The folder with templates/ and rt/, absolute. $KBGEN_HOME, if set, names a source tree or an installation; else they are
 * looked for around kbgen itself. kbgen dies if it finds none. */
const char *home_sources(void);

/* The object of the runtime and the library's kernels, with which every simulator is linked; found likewise. */
const char *home_runtime(void);

/* The objects of which libraries are linked: the runtime as it is in an instance, and what has the calls. */
const char *home_image(void);
const char *home_front(void);

/* The folder of the cache entries that were made together with kbgen; there may be none. */
const char *home_prebuilt(void);

/* The path of kbgen's own program, and a hash over it. */
const char *home_program(void);
const char *home_identity(void);

#endif
