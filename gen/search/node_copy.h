/* node_copy.h: copies of what simulators are run from, on a disk of this node: many tasks would read one shared disk. */
#ifndef GEN_SEARCH_NODE_COPY_H
#define GEN_SEARCH_NODE_COPY_H

/* Opens the folder for copies: kbgen-UID in $SLURM_TMPDIR, or in $TMPDIR. Ends kbgen with status 2 if neither is set, or if
 * the folder is not the user's alone. Returns its path. */
const char *node_copies_begin(void);

/* The path of the copy of a file, in the arena. It is made once on this node, however many tasks ask for it: `name` says what
 * is in the file. If it cannot be made, as on a full disk, that is told once, and the path is the original's. */
const char *node_copy(const char *folder, const char *path, const char *name);

#endif
