/* plan_dump.h: the plans of composites, as JSON lines: each shape of composite once, its tiles and their stages. */
#ifndef KB_PLAN_DUMP_H
#define KB_PLAN_DUMP_H

#include "sim/observer.h"

extern struct observer plan_observer;

#endif
