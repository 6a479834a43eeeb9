/* temporary.c: temporary files go with the process that made them, however it ends. */
#include "common/temporary.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum ending { BY_EXIT, BY_SIGNAL, BY_A_CHILD };

static char folder[2048], file[2060], kept[2060];
static int tests;

static void expect(bool good, const char *what)
{
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, what);
    fflush(stdout);
}

static void make(const char *path)
{
    fclose(fopen(path, "w"));
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Makes a folder with a temporary file and one that is no longer temporary, and ends. */
static void child(enum ending ending)
{
    mkdir(folder, 0777);
    temporary_add(folder);
    make(kept);
    temporary_add(kept);
    make(file);
    temporary_add(file);
    temporary_forget(kept);
    if (ending == BY_A_CHILD) {
        if (fork() == 0)
            exit(0);
        wait(NULL);
        _exit(is_there(file) ? 0 : 1);
    }
    if (ending == BY_SIGNAL)
        raise(SIGTERM);
    exit(0);
}

static int status_of(enum ending ending)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        child(ending);
    waitpid(pid, &status, 0);
    return status;
}

static void clean(void)
{
    unlink(file);
    unlink(kept);
    rmdir(folder);
}

int main(void)
{
    const char *scratch = getenv("SCRATCH");
    snprintf(folder, sizeof folder, "%s/t%ld", scratch ? scratch : "/tmp", (long)getpid());
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(kept, sizeof kept, "%s/kept", folder);
    int status = status_of(BY_EXIT);
    expect(status == 0 && !is_there(file), "a temporary file is removed at exit");
    expect(is_there(kept), "a file that was forgotten stays");
    clean();
    status = status_of(BY_SIGNAL);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "a signal still ends the process");
    expect(!is_there(file) && is_there(kept), "a signal removes what is temporary, and nothing else");
    clean();
    expect(status_of(BY_A_CHILD) == 0, "a child process leaves its parent's temporary files alone");
    clean();
    printf("1..%d\n", tests);
    return 0;
}
