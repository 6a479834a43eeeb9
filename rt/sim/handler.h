/* handler.h: what takes events, by names for people: each module names its own. */
#ifndef KB_HANDLER_H
#define KB_HANDLER_H

struct handler {
    const char *name;                                   /* NULL ends a list */
    void (*function)(void);                             /* an event's `fire`, or a message's `delivered` */
};

#define HANDLER(function, name) {name, (void (*)(void))(function)}

extern const struct handler dma_handlers[], event_handlers[], fabric_handlers[], fanout_handlers[], feeder_handlers[];
extern const struct handler host_map_handlers[], host_memory_handlers[], kernel_handlers[], launch_handlers[];
extern const struct handler ring_handlers[], tile_handlers[];

#endif
