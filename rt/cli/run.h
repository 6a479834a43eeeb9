/* run.h: `SIM run`. */
#ifndef KB_RUN_H
#define KB_RUN_H

/* Runs the subcommand; argv[0] is its name. Returns the exit status. */
int run_main(int argc, char **argv);

#endif
