/* processors.h: how many processors there are. */
#ifndef KB_PROCESSORS_H
#define KB_PROCESSORS_H

/* Those that this process may run on, at least 1. */
unsigned processor_count(void);

#endif
