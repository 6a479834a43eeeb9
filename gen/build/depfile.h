/* depfile.h: what a simulator was made of, as make and ninja read it. */
#ifndef GEN_DEPFILE_H
#define GEN_DEPFILE_H

#include "../words.h"

/* Writes a rule by which a simulator or library is made of `files`, and an empty rule for each of these, so that one that is
 * gone is no error. Also gives the simulator the present time: it may be equal to what it was, but is up to date from now
 * on. */
void depfile_write(const char *path, const char *simulator, const struct words *files);

#endif
