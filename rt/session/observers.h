/* observers.h: all observers of the machine. */
#ifndef KB_OBSERVERS_H
#define KB_OBSERVERS_H

/* Registers them, and switches on those that watch every run. Call it before options are read, which switch on
 * others. */
void observers_init(void);

#endif
