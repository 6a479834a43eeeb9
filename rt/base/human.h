/* human.h: numbers for people: at most four digits and a unit. */
#ifndef KB_HUMAN_H
#define KB_HUMAN_H

#include <stdint.h>

/* Each returns a text that is valid for 15 more calls. */
const char *human_time(uint64_t ps);                    /* "12.34 us" */
const char *human_time_exact(uint64_t ps);              /* "12.345678 us": all digits */
const char *human_bytes(uint64_t bytes);                /* "2 GiB", "1.5 MiB": binary units */
const char *human_count(double count, const char *unit);    /* "4.194 PFLOP/s": decimal prefixes */
const char *human_seconds(double seconds);              /* "1.23 s" */

#endif
