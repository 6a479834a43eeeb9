/* oplog_dump.h: `SIM oplog FILE`: an op log for people and programs. */
#ifndef KB_SHOW_H
#define KB_SHOW_H

int show_main(int argc, char **argv);

#endif
