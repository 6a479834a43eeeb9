/* heap.h: the system backs the heap by huge pages, if a simulator is a process of its own. */
#ifndef KB_HEAP_H
#define KB_HEAP_H

/* Asks the system for huge pages for the heap, before the first malloc. A run that takes 40 MB of small pages spends a fifth of
 * its time in faults. Changes nothing where the system, its C library or a limit on address space does not allow it. */
void heap_begin(void);

/* Keeps huge pages for the first 32 MiB of the heap alone. A run that needs little more would use a part of its last one. */
void heap_is_small(void);

#endif
