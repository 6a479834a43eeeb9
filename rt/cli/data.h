/* data.h: `SIM data FILE`: the data pass of a run, later, from its op log. */
#ifndef KB_LATER_H
#define KB_LATER_H

/* Records what the tensors hold that the log knows, now that the data pass is done: for the same to be seen later. */
void contents_record(void);

int later_main(int argc, char **argv);

#endif
