/* slurm.h: rounds of a search as jobs of Slurm: an array, each task of which evaluates its shard, and a job behind it that
 * merges the shards' stores. */
#ifndef GEN_SEARCH_SLURM_H
#define GEN_SEARCH_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slurm {
    const char *space, *store;                          /* absolute paths */
    const char *options;                                /* of kbgen search for each task, as a shell reads them: " --seed 7" */
    const char *sbatch;                                 /* further words for sbatch, with blanks between them; NULL: none */
    uint64_t tasks;
};

/* The tasks of a round, in increasing order. */
struct slurm_round {
    const uint64_t *tasks;
    size_t count;
};

/* Prints the scripts, and the commands that would submit them. */
void slurm_print(const struct slurm *slurm);

/* Writes the scripts to the folder STORE.slurm, where the logs of the jobs will be too. */
void slurm_prepare(const struct slurm *slurm);

/* Submits both jobs and waits until they have ended, whatever becomes of their tasks, and also while no controller answers.
 * A signal that can be read from the file `signals` cancels the array; the merge still takes place. A second one leaves at
 * once. Returns the first signal, or 0. Dies if sbatch refuses, or if no controller answers while jobs are submitted. */
int slurm_run(const struct slurm *slurm, const struct slurm_round *round, int signals);

#endif
