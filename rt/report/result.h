/* result.h: what a run gives, as JSON: memory requests, launches, PEs and commands. */
#ifndef KB_RESULT_H
#define KB_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/output.h"
#include "common/json.h"

struct tl;

/* Keeps a row for each command. It has to watch a run whose result is written. */
extern struct observer command_rows_observer;

/* Whether every memory request and launch ended well. */
bool result_good(void);

/* Writes "system", "end_ps", "memory" if there were memory requests, and "launches" into an open object; of
 * each, with_ids: the number of the request and the answers to it. */
void result_write(struct json *json, uint64_t end_ps, bool with_ids);

/* Write the i-th element of its lists `launches` and `memory`, if there is one. */
void result_write_launch(struct json *json, uint64_t i, bool with_ids);
void result_write_memory(struct json *json, uint64_t i, bool with_ids);

/* The row of a command. */
struct command_row_read {
    const struct tl *tl;                                /* the kernel that submitted it */
    uint32_t number;
    uint8_t kind;
    bool complete;
    uint64_t submitted_ps, complete_ps;
};

/* Calls `each` for each row, by launch, PE and number. */
void result_commands(void (*each)(const struct command_row_read *row, void *arg), void *arg);

/* Removes all rows of commands. */
void command_rows_reset(void);

/* "interrupted" and "ended_by", if the run was ended from outside. */
void result_write_interruption(struct json *json);

/* Writes one object; `fill` gets it open. */
void json_write_file(FILE *file, void (*fill)(struct json *, void *), void *arg);

/* Writes one object into an output that was opened before the run, and completes it. `fill` gets the open object. */
void json_write_output(struct output *output, void (*fill)(struct json *, void *), void *arg);

/* Writes one object as a line, and flushes it. Ends the program with status 3 if a write fails. */
void json_write_line(const struct output *output, void (*fill)(struct json *, void *), void *arg);

#endif
