/* coroutine.h: stackful coroutines, each with a guard below its stack. */
#ifndef KB_COROUTINE_H
#define KB_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coroutine;

/* A coroutine that runs body(arg) from its first resumption on, with a stack of at least `stack_bytes`. Takes the stack
 * of one that was freed if the size is the same. */
struct coroutine *coroutine_new(void (*body)(void *), void *arg, size_t stack_bytes);

/* Runs it until it suspends itself or returns. A coroutine must not resume another. LOST: it has jumped to the stack of
 * another coroutine, or suspended another one, or another one has jumped to its stack; it cannot go on. */
enum coroutine_end { COROUTINE_SUSPENDED, COROUTINE_RETURNED, COROUTINE_LOST };
enum coroutine_end coroutine_resume(struct coroutine *coro);

/* The coroutine that runs; NULL: none. */
struct coroutine *coroutine_current(void);

/* Whether the coroutine that runs is on the stack of another one. */
bool coroutine_strayed(void);

/* From now on a coroutine that is suspended or returns ends the process with status 1: for a child process, which must
 * not go on with its copy of the simulation. */
void coroutines_close(void);

/* How often any coroutine was resumed. */
uint64_t coroutine_resumed(void);

/* Suspends a coroutine, the one that runs: its coroutine_resume returns. */
void coroutine_suspend(struct coroutine *coro);

/* The size of its stack, and whether an address lies in the guard below. */
size_t coroutine_stack_bytes(const struct coroutine *coro);
bool coroutine_guards(const struct coroutine *coro, const void *address);

/* Guards are made by mprotect from now on, which can open them: before the first stack. */
void coroutines_protect(void);

/* Makes the guards of all stacks inaccessible again. Returns false if the system refuses. */
bool coroutines_guard(void);

/* Whether this build has the address sanitizer, which is told of switches and reports traps itself. */
bool coroutine_announced(void);

/* Frees the stack of a coroutine that has returned, or that nobody resumes any more. */
void coroutine_free(struct coroutine *coro);

/* Frees the stacks of all coroutines, also of those that have not returned. */
void coroutine_reset(void);

#endif
