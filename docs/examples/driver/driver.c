/* driver.c: a driver under test, and the device that it drives.
 *
 * The driver writes a tensor over PCIe, maps its pages, launches a kernel and reads the result. At first it forgets to map
 * the pages of the result. A PE that has failed starts nothing until the device is reset, so the driver resets it and does
 * all of it again, with these pages: that path is what is tested here. */
#include <stdio.h>
#include <stdlib.h>

#include <device.h>                                     /* of the library: the machine as constants */
#include <kb/host.h>                                    /* dtypes and places of tensors */

#include "square.h"

enum { ROWS = 64, COLS = 1024, PES = DEVICE_PES, PAGE = 64 * 1024, TRIES = 3 };

static kb_sim *device;
static const uint32_t pes[PES] = {DEVICE_SIP0_CUBE0_PE0, DEVICE_SIP0_CUBE0_PE1};

/* ---- the layer below the driver: what it does to registers and interrupts on a board */

static void check(enum kb_status status)
{
    if (status == KB_OK)
        return;
    fprintf(stderr, "driver: %s: %s\n", kb_status_name(status), kb_last_error(device));
    exit(1);
}

/* Lets time pass until a request is complete, as a driver sleeps until the interrupt. */
static struct kb_sim_result await(uint64_t request)
{
    struct kb_sim_result result = {.struct_size = sizeof result};
    struct kb_sim_stop stop = {.struct_size = sizeof stop};
    while (check(kb_sim_poll(device, request, &result)), result.outcome == KB_SIM_RUNNING) {
        check(kb_sim_run(device, UINT64_MAX, KB_STOP_COMPLETED, &stop));
        if (stop.reason == KB_STOP_DEADLOCK)
            exit(fprintf(stderr, "driver: the device hangs\n") > 0);
    }
    return result;
}

/* The same for a request that has no reason to fail. */
static struct kb_sim_result complete(uint64_t request)
{
    struct kb_sim_result result = await(request);
    if (result.outcome != KB_SIM_OK)
        exit(fprintf(stderr, "driver: %s at %s\n", result.failure, result.failure_node) > 0);
    return result;
}

static void log_line(void *user, const char *line)
{
    printf("%s: %s\n", (const char *)user, line);
}

/* ---- the driver */

static struct tensor *buffer(const char *name)
{
    struct tensor *tensor;
    check(kb_sim_tensor(device, &(struct kb_sim_tensor){
        .struct_size = sizeof(struct kb_sim_tensor), .name = name, .dtype = KB_f32, .rank = 2, .size = {ROWS, COLS},
        .space = KB_HBM, .split = KB_ROWS, .pes = pes, .pe_count = PES}, &tensor));
    return tensor;
}

/* Moves a tensor over PCIe: each PE's rows are one run of bytes. */
static void move(struct tensor *tensor, float *data, bool writes)
{
    for (uint64_t i = 0; i < PES; i++) {
        uint64_t address, bytes, request;
        check(kb_sim_tensor_shard(device, tensor, i, &address, &bytes));
        float *rows = data + i * (ROWS / PES) * COLS;
        check(writes ? kb_sim_write(device, &address, 1, bytes, rows, &request)
                     : kb_sim_read(device, &address, 1, bytes, rows, &request));
        struct kb_sim_result result = complete(request);
        printf("driver: %s %llu bytes in %.3f us\n", writes ? "wrote" : "read", (unsigned long long)bytes,
               (double)(result.done_ps - result.submitted_ps) * 1e-6);
    }
}

static void map(struct tensor *tensor, uint64_t va)
{
    uint64_t address[PES], bytes, request;
    for (uint64_t i = 0; i < PES; i++)
        check(kb_sim_tensor_shard(device, tensor, i, &address[i], &bytes));
    check(kb_sim_map(device, pes, address, PES, va, (bytes + PAGE - 1) / PAGE, &request));
    complete(request);
}

static struct kb_sim_result launch(struct tensor *x, struct tensor *y)
{
    uint64_t request;
    const struct square_args args = {x, y};
    check(kb_sim_launch(device, &(struct kb_sim_launch){
        .struct_size = sizeof(struct kb_sim_launch), .kernel = DEVICE_KERNEL_SQUARE, .pes = pes, .pe_count = PES,
        .arg = &args, .arg_bytes = sizeof args, .timeout_ps = UINT64_C(1000000000)}, &request));
    return await(request);
}

/* Squares data on the device. Returns false after a fault. */
static bool square(float *data, bool maps_result)
{
    struct tensor *x = buffer("x"), *y = buffer("y");
    move(x, data, true);
    map(x, X_VA);
    if (maps_result)
        map(y, Y_VA);
    struct kb_sim_result result = launch(x, y);
    if (result.outcome != KB_SIM_OK) {
        printf("driver: %s at %s, %.3f us\n", result.failure, result.failure_node, (double)result.failure_ps * 1e-6);
        return false;
    }
    printf("driver: kernel done in %.3f us\n", (double)(result.done_ps - result.submitted_ps) * 1e-6);
    move(y, data, false);
    return true;
}

int main(void)
{
    static float data[ROWS * COLS], expected[ROWS * COLS];
    int tries = 1, wrong = 0;
    const struct kb_sim_config config = {.struct_size = sizeof config, .user = "device", .log = log_line};
    check(kb_sim_create(&config, &device));
    for (int i = 0; i < ROWS * COLS; i++) {
        data[i] = (float)(i % 1000) - 500;
        expected[i] = data[i] * data[i];
    }
    while (!square(data, tries > 1)) {
        if (++tries > TRIES)
            return puts("driver: gives up"), 1;
        puts("driver: resets the device");
        check(kb_sim_reset(device));
    }
    for (int i = 0; i < ROWS * COLS; i++)
        wrong += data[i] != expected[i];
    printf("driver: %d of %d elements are wrong\n", wrong, ROWS * COLS);
    check(kb_sim_destroy(device));
    return wrong != 0;
}
