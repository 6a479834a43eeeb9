/* show_summary.h: an op log, summed up. */
#ifndef KB_SHOW_SUMMARY_H
#define KB_SHOW_SUMMARY_H

#include "oplog/log.h"

/* Reads all of it, and prints tables: by name, and by line of a kernel or bench. */
void show_summary(struct log_reader *reader, const struct log_head *head);

#endif
