/* saved.h: the state of an instance as bytes, and back. */
#ifndef KB_EMBED_SAVED_H
#define KB_EMBED_SAVED_H

#include "image.h"

void saved_begin(const struct image_host *host);

/* kb_sim_save and kb_sim_restore, which takes all of the state, the visitor of a trace included. */
enum kb_status saved_write(char *buffer, uint64_t size, uint64_t *needed);
enum kb_status saved_restore(const char *buffer, uint64_t size);

#endif
