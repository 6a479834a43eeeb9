/* command_log.h: the commands of a run as records of a firmware log (bringup/command_record.h), as JSON lines in the order
 * in which they are complete: what the firmware of such a device could print. */
#ifndef KB_COMMAND_LOG_H
#define KB_COMMAND_LOG_H

#include "sim/observer.h"

extern struct observer command_log_observer;

/* Opens the file ("-": standard output), and watches the run from now on. */
void command_log_open(const char *path);

/* Ends the log, if there is one: the file appears under its name. */
void command_log_close(void);

#endif
