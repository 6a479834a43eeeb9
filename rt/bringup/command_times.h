/* command_times.h: when the commands of a run were issued and complete: simulated, or measured on a device. */
#ifndef KB_COMMAND_TIMES_H
#define KB_COMMAND_TIMES_H

#include "command_record.h"
#include "common/array.h"

struct command_times {
    uint32_t pe, launch, number;                        /* launch: that of the PE, from 0 on */
    const char *word, *id;                              /* "load"; NULL: not known */
    bool has_start, has_took;                           /* a time that is not known is 0 */
    int64_t start_ps, took_ps;
    unsigned line;                                      /* of the log, or 0 */
};

struct command_list ARRAY(struct command_times);

static inline int64_t command_done_ps(const struct command_times *times)
{
    return times->start_ps + times->took_ps;
}

/* Adds those of the run that has ended; command_rows_observer has watched it. They are in the order of PE, launch and
 * number. */
void command_list_of_run(struct command_list *list);

/* Adds those of a file: of a trace (--trace), a result (--json), or a firmware log. Reports errors. Times of a log are
 * since its first one. */
void command_list_read(struct command_list *list, const struct source *file, uint64_t clock_khz);

/* Finds the number of a command by the id that the program of a launch of a PE has for it. Returns UINT32_MAX if there is
 * none. */
typedef uint32_t number_of_id(uint32_t pe, uint32_t launch, const char *id);

/* Reads a firmware log whose commands are those of `simulated`, which is in order, if anything: by launch and number, by
 * id, or the next of the PE. number_of_id may be NULL. Reports errors. */
void command_list_read_measured(struct command_list *list, const struct source *file, uint64_t clock_khz,
                                const struct command_list *simulated, number_of_id *find);

/* The command of a sorted list; NULL if there is none. */
const struct command_times *command_list_find(const struct command_list *list, const struct command_times *key);

#endif
