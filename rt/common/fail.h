/* fail.h: how a program ends that cannot go on, and where its messages go.
 *
 * Every failure ends in fail_exit, and every message goes through message. A program leaves both as they are: it exits,
 * and writes to standard error. A library sets both: the caller is told the status and goes on, and gets the text.
 *
 *     status 1  the run failed          run_failed
 *            2  wrong input or use      usage_error, misuse, errors_end (diag.h)
 *            3  the host system failed  die
 */
#ifndef KB_FAIL_H
#define KB_FAIL_H

#include <stdarg.h>
#include <stdint.h>

enum { STATUS_GOOD, STATUS_RUN_FAILED, STATUS_WRONG_USE, STATUS_HOST_FAILED };

extern const char *program_name;

/* Each prints "PROGRAM: MESSAGE" and ends. A message that ends in ':' is followed by strerror(errno). */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void run_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A call of the API, by its place in a bench or kernel. */
struct call_site {
    const char *name;                                   /* "kb_read" */
    const char *file;
    uint32_t line;
};

/* A bench asks for something impossible: prints "FILE:LINE: error: MESSAGE", or "FILE:LINE: error: NAME: MESSAGE", and
 * ends. */
_Noreturn void misuse_of(struct call_site call, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void misuse(const char *file, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Ends with a status; whoever calls it has said why. */
_Noreturn void fail_exit(int status);

/* Calls `leave` instead of exit(), on the thread and the stack that failed; it must not return: it may longjmp. NULL:
 * exit() again. */
void fail_set_exit(void (*leave)(int status, void *arg), void *arg);

/* Writes text to standard error, or hands it on: without the control characters of what it quotes, except line breaks. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_list(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Calls a function before each message. */
void message_set_before(void (*before)(void));

/* Hands all text of messages to `take`, piece by piece, instead of writing it. NULL: standard error again. */
void message_set_take(void (*take)(const char *text, void *arg), void *arg);

#endif
