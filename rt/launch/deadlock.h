/* deadlock.h: launches that can never end. */
#ifndef KB_DEADLOCK_H
#define KB_DEADLOCK_H

/* Called when nothing is due any more: prints which PE waits for which, and ends the launches that wait. */
void launches_deadlocked(void);

#endif
