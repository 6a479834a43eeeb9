/* temporary.h: files and folders that are removed when the program ends, whether it exits or is ended by a signal. */
#ifndef KB_TEMPORARY_H
#define KB_TEMPORARY_H

/* Removes a path when the program ends; what was added last goes first, so a folder is added before its files. A process
 * removes only what it added itself. The text must stay. */
void temporary_add(const char *path);

/* The path is no longer temporary: it has been renamed or removed. */
void temporary_forget(const char *path);

/* Removes all of them now. May be called by a signal handler. */
void temporary_remove_all(void);

/* Calls a function before anything is removed when the program ends. It may call only what signal handlers may. */
void temporary_set_before(void (*before)(void));

#endif
