/* completion.h: completion of a program's command line in bash, zsh and fish.
 *
 * `PROGRAM --completion SHELL` prints a script for that shell. The script asks the program itself what may come next:
 * `PROGRAM --complete WORD ...` with the words up to the cursor, of which the last one is not complete. The program answers
 * from the tables of its options. A line of the answer is a word, a tab and what it means; or a '/', for files, and the
 * ending that they have. The shell keeps what the word to complete is the beginning of. */
#ifndef KB_COMPLETION_H
#define KB_COMPLETION_H

struct program;

/* Prints the script for a shell; a usage error if there is none for it. */
void completion_print(const char *shell);

/* Prints what may be the last of these words of a command line, which begins behind the program's name. For arguments that the
 * table alone does not describe, such as BENCH or KEY=VALUE, it calls the program's `offer` with the argument's name and the
 * first argument of the subcommand, or NULL. */
void completion_offers(const struct program *program, int count, char *const *words);

/* Offers a word. `about` may be NULL. A word that ends in '=' is continued without a blank. */
void completion_offer(const char *word, const char *about);

#endif
