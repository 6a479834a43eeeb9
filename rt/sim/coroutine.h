/* coroutine.h: stackful coroutines with a guard below each stack. */
#ifndef KB_CORO_H
#define KB_CORO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coro;

/* A coroutine that will run body(arg) on a stack of its own of at least `stack_bytes`; it starts at its first
 * resumption. Stacks of ended coroutines are used again. */
struct coro *coro_new(void (*body)(void *), void *arg, size_t stack_bytes);

/* Runs it until it suspends or returns; true while it has not returned. Coroutines do not resume each other. */
bool coro_resume(struct coro *coro);

/* How often any coroutine was resumed. */
uint64_t coro_resumed(void);

/* Back to whoever resumed this coroutine. */
void coro_suspend(struct coro *coro);

/* How large its stack is, and whether an address is in the guard below it. */
size_t coro_stack_bytes(const struct coro *coro);
bool coro_guards(const struct coro *coro, const void *address);

/* Whether switches are announced to an address sanitizer, which handles traps itself. */
bool coro_announced(void);

/* Gives back the stack of a coroutine that has returned. */
void coro_free(struct coro *coro);

/* Gives back the stacks of all coroutines, returned or not: none of them is resumed again. */
void coro_reset(void);

#endif
