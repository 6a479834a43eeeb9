/* ask.h: `kbgen search --method ask`: another program names the points, and gets their results: JSON lines on standard
 * input and output (docs/search.md, Ask and tell). */
#ifndef GEN_SEARCH_ASK_H
#define GEN_SEARCH_ASK_H

#include "evaluator.h"

/* Answers until the other program ends its input or no longer reads, or a signal comes; what is under way by then is
 * finished and stored. The options' `ended` is not used. Returns the exit status. */
int ask(const struct evaluator_options *options);

#endif
