/* points.h: `SIM run BENCH --points FILE`: a sweep in one process. */
#ifndef KB_POINTS_H
#define KB_POINTS_H

/* Runs the bench that was taken for each point of a file of JSON lines, and answers each with a line of JSON, in that
 * order, flushed. "-" is standard input or output. All lines of a file are checked before the first run; those of
 * standard input as they come. Returns the exit status: 0 good, 1 a run failed, 2 a line was wrong. Misuse by a bench
 * ends the sweep with its own status: what was answered on standard output stays, a file does not appear. */
int points_run(const char *from, const char *to);

#endif
