/* glob.c: patterns of names. */
#include "glob.h"

#include <stddef.h>

bool glob_matches(const char *glob, const char *text)
{
    const char *star = NULL, *tried = NULL;             /* the last star, and the text behind what it matches */
    while (*text) {
        if (*glob == '*') {
            star = ++glob;
            tried = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star) {
            glob = star;
            text = ++tried;
        } else {
            return false;
        }
    }
    while (*glob == '*')
        glob++;
    return !*glob;
}
