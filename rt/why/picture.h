/* picture.h: the critical path and the accounts in the forms that pictures are made of, small for any machine. */
#ifndef KB_PICTURE_H
#define KB_PICTURE_H

#include "common/json.h"
#include "path.h"

/* Writes "columns": what takes most of each of equal parts of the path's time, as a letter. */
void picture_write_columns(struct json *json, const struct path *path);

/* Writes "pes": for each reason a list of the times of all PEs, each summed over its kernels. */
void picture_write_pes(struct json *json);

/* Writes the path as a track of the timeline that is open. */
void picture_write_track(const struct path *path);

#endif
