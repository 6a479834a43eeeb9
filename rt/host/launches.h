/* launches.h: launches that a bench makes. */
#ifndef KB_LAUNCHES_H
#define KB_LAUNCHES_H

/* Waits for all launches that the bench has not waited for; ends the run if one does not end well. */
void launches_wait(void);

#endif
