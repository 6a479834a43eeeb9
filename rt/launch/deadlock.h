/* deadlock.h: launches that can never end. */
#ifndef KB_DEADLOCK_H
#define KB_DEADLOCK_H

/* Nothing is due any more: prints who waits for whom, and ends the launches that wait. */
void launches_deadlocked(void);

#endif
