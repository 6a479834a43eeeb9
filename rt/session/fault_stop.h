/* fault_stop.h: tells whoever drives a run of each fault of a kernel, in its event. */
#ifndef KB_FAULT_STOP_H
#define KB_FAULT_STOP_H

struct tl;

/* Calls failed(tl) from now on; NULL: no more. */
void fault_stop_set(void (*failed)(const struct tl *tl));

extern struct observer fault_stop_observer;

#endif
