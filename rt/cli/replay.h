/* replay.h: `SIM replay`. */
#ifndef KB_REPLAY_H
#define KB_REPLAY_H

/* Runs the subcommand; argv[0] is its name. Returns the exit status. */
int replay_main(int argc, char **argv);

#endif
