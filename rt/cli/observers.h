/* observers.h: all observers of the machine. */
#ifndef KB_OBSERVERS_H
#define KB_OBSERVERS_H

/* Makes them known, and switches on those that watch every run. Before options are read, which switch on others. */
void observers_init(void);

#endif
