/* state_fields.c: save and restore of single fields. */
#include "state_fields.h"

#include <string.h>

void state_carry(struct state_image *image, void *field, size_t bytes)
{
    if (image->restores) {
        memcpy(field, image->bytes.at + image->at, bytes);
        image->at += bytes;
        return;
    }
    array_reserve(&image->bytes, image->bytes.count + bytes);
    memcpy(image->bytes.at + image->bytes.count, field, bytes);
    image->bytes.count += bytes;
}

bool state_is_carried(enum state_kind kind)
{
    return kind == STATE_VALUE || kind == STATE_FREE || kind == STATE_COUNTED;
}
