/* array.h: memory that benches ask for. */
#ifndef KB_BENCH_ARRAY_H
#define KB_BENCH_ARRAY_H

/* All of it is given back. */
void arrays_reset(void);

#endif
