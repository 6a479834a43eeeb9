/* record_log.h: a log of records, as CSV with a line of names or as JSON lines, read into nodes.
 *
 * A record is a mapping of names to values. In CSV, an empty cell is a value that is not there; a cell that begins with {
 * or [ is read as JSON, in which words need no quotes. In JSON, null is a value that is not there. Blank lines and lines
 * that begin with # are left out, in both. */
#ifndef KB_RECORD_LOG_H
#define KB_RECORD_LOG_H

#include "common/node.h"

/* Calls `each` for each record in the order of the log. Nodes hold until it returns. Reports all errors at their places;
 * `each` is called for records without errors. */
void record_log_read(const struct source *log, void (*each)(const struct node *record, void *arg), void *arg);

/* Reads a text that is one JSON value, over any number of lines. Returns NULL after an error. */
const struct node *json_read(const struct source *text);

/* Whether a log has JSON, whatever comes in it. */
bool record_log_is_json(const struct source *log);

#endif
