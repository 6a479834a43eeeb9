/* resource.h: names of what is reserved: nodes, links, channels of memories. */
#ifndef KB_RESOURCE_H
#define KB_RESOURCE_H

#include "common/json.h"
#include "sim/observer.h"

/* Writes the name of a resource into an open object: its node under `key`; of a link also where it leads, as "to"; of a
 * memory also its "channel". */
void resource_write(struct json *json, const char *key, enum resource_kind kind, uint64_t number);

#endif
