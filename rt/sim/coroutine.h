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

/* Runs it until it suspends itself or returns. Returns false if it has returned. A coroutine must not resume
 * another. */
bool coroutine_resume(struct coroutine *coro);

/* How often any coroutine was resumed. */
uint64_t coroutine_resumed(void);

/* Returns to whoever resumed this coroutine. */
void coroutine_suspend(struct coroutine *coro);

/* The size of its stack, and whether an address lies in the guard below. */
size_t coroutine_stack_bytes(const struct coroutine *coro);
bool coroutine_guards(const struct coroutine *coro, const void *address);

/* Whether an address sanitizer, which handles traps itself, is told of switches. */
bool coroutine_announced(void);

/* Frees the stack of a coroutine that has returned. */
void coroutine_free(struct coroutine *coro);

/* Frees the stacks of all coroutines, also of those that have not returned. */
void coroutine_reset(void);

#endif
