/* trust.c: whether another user can have written a file.
 *
 * The question is asked of an open file: the name may lead to another file a moment later. */
#include "trust.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../rt/common/arena.h"

static bool is_trusted_user(uid_t user)
{
    return user == 0 || user == geteuid();
}

static const char *user_name(uid_t user)
{
    const struct passwd *entry = getpwuid(user);
    return entry ? arena_printf("user %s", entry->pw_name) : arena_printf("user %lu", (unsigned long)user);
}

static bool is_trusted_member(const char *name)
{
    const struct passwd *entry = getpwnam(name);
    return entry && is_trusted_user(entry->pw_uid);
}

/* Returns whether only trusted users are in a group, as where each user has a group that bears the user's name. */
static bool is_private(gid_t number)
{
    const struct group *group = getgrgid(number);
    if (!group)
        return false;
    bool trusted = true;
    for (char *const *member = group->gr_mem; *member; member++)
        trusted &= is_trusted_member(*member);
    setpwent();
    for (const struct passwd *user; trusted && (user = getpwent());)
        trusted = user->pw_gid != number || is_trusted_user(user->pw_uid);
    endpwent();
    return trusted;
}

/* Returns whether a list names further users, who then have at most the group's permissions of the mode. */
static bool has_access_list(int file)
{
    return fgetxattr(file, "system.posix_acl_access", NULL, 0) > 0;
}

const char *trust_refusal(int file)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return strerror(errno);
    if (!is_trusted_user(status.st_uid))
        return arena_printf("it belongs to %s", user_name(status.st_uid));
    unsigned mode = status.st_mode & 07777;
    if (mode & S_IWOTH)
        return arena_printf("every user can write it (mode %04o)", mode);
    if ((mode & S_IWGRP) && (has_access_list(file) || !is_private(status.st_gid)))
        return arena_printf("other users of its group can write it (mode %04o)", mode);
    return NULL;
}
