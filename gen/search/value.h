/* value.h: a value of an expression, as SQLite has them. */
#ifndef GEN_SEARCH_VALUE_H
#define GEN_SEARCH_VALUE_H

#include <stdint.h>

enum sql_type { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT };

struct sql_value {
    enum sql_type type;
    int64_t integer;
    double real;
    const char *text;
};

#endif
