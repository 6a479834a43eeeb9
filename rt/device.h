/* device.h: a kernel of the device library, as the host library starts it. */
#ifndef KB_DEVICE_H
#define KB_DEVICE_H

#include "kernel.h"
#include "kb/tl.h"

/* A kernel with a copy of its arguments. */
struct device_program {
    const struct kb_kernel *kernel;
    const void *arg;
};

/* The body of every such kernel; `arg` is a struct device_program. */
void device_run(struct tl *tl, const void *arg);

#endif
