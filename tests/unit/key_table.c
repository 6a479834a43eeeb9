/* key_table.c: objects are found by their keys while the table grows. */
#include "common/key_table.h"
#include "tap.h"

enum { OBJECTS = 20000 };

struct object {
    struct key_link link;
    uint64_t key;
};

int main(void)
{
    static struct object object[OBJECTS];
    struct key_table table = {0};
    bool absent = !key_table_find(&table, 0), found = true;
    for (uint64_t i = 0; i < OBJECTS; i++) {
        object[i].key = i % 3 ? i << 40 : i;
        absent &= !key_table_find(&table, object[i].key);
        key_table_add(&table, &object[i].link, object[i].key);
        for (uint64_t j = i & (i - 1); j <= i; j += 1 + i / 8)
            found &= key_table_find(&table, object[j].key) == &object[j];
    }
    for (uint64_t i = 0; i < OBJECTS; i++)
        found &= key_table_find(&table, object[i].key) == &object[i];
    expect(absent, "a key that was not added is not found");
    expect(found, "every object is found by its key");
    expect(table.count == OBJECTS && (table.count - 1) >> table.bits == 0, "the table grows with its objects");
    return tests_end();
}
