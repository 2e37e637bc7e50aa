/* Runs a network on pictures of bytes, three of them under way at a time, and prints the mean of one of its outputs:
 *
 *   stream MODEL [DEVICE [FRAMES]]
 *
 * The device "list" prints the devices instead. */

#include "diptych.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 3 };

/* Ends the program, saying what went wrong. */
static void check(diptych_status status, const char *what) {
    if (status != DIPTYCH_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", what, diptych_last_error());
        exit(1);
    }
}

static void *memory(size_t size) {
    void *pointer = calloc(size > 0 ? size : 1, 1);
    if (pointer == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return pointer;
}

static void list(void) {
    diptych_devices *devices;
    check(diptych_devices_new(&devices), "devices");
    for (size_t i = 0; i < diptych_devices_count(devices); i++) {
        diptych_device_info device;
        check(diptych_devices_get(devices, i, &device), "device");
        printf("%s: %s, %s%s\n", device.id, device.name, device.api, device.software ? ", on the CPU" : "");
    }
    diptych_devices_free(devices);
}

int main(int count, char **arguments) {
    if (count < 2 || count > 4) {
        fprintf(stderr, "usage: %s MODEL [DEVICE [FRAMES]]\n", arguments[0]);
        return 2;
    }
    if (count > 2 && strcmp(arguments[2], "list") == 0) {
        list();
        return 0;
    }
    size_t frames = count > 3 ? (size_t)atoi(arguments[3]) : 8;
    diptych_options *options = diptych_options_new();
    if (count > 2) {
        check(diptych_options_device(options, arguments[2]), "device");
    }
    /* The network wants numbers from -1 to 1, and its file does not say so. */
    float mean = 127.5f, deviation = 127.5f;
    check(diptych_options_pixels(options, NULL, &mean, &deviation, 1), "pixels");
    check(diptych_options_threads(options, 2), "threads");
    diptych_session *session = NULL;
    check(diptych_open_file(arguments[1], options, &session), "open");
    diptych_options_free(options);

    diptych_port input, output;
    check(diptych_input(session, 0, &input), "input");
    check(diptych_output(session, 0, &output), "output");
    unsigned char *picture = memory(input.elements);
    float *found = memory(output.bytes);
    diptych_tensor given = {picture, input.elements, DIPTYCH_DTYPE_U8, input.rank, {0}};
    memcpy(given.extents, input.extents, sizeof given.extents);
    /* Of all outputs this one alone is copied, to memory that is used again and again. */
    diptych_result result = {output.name, found, output.bytes, 0, 0, 0, {0}};

    diptych_flight *flights[IN_FLIGHT] = {NULL};
    for (size_t frame = 0; frame < frames + IN_FLIGHT; frame++) {
        diptych_flight **flight = &flights[frame % IN_FLIGHT];
        if (*flight != NULL) {
            check(diptych_flight_wait_into(*flight, &result, 1), "wait");
            *flight = NULL;
            double sum = 0.0;
            for (size_t k = 0; k < result.bytes / sizeof *found; k++) {
                sum += found[k];
            }
            printf("frame %zu: mean %.5f\n", frame - IN_FLIGHT, sum / (double)(result.bytes / sizeof *found));
        }
        if (frame < frames) {
            for (size_t k = 0; k < input.elements; k++) {
                picture[k] = (unsigned char)(k * (frame + 1) % 251);
            }
            check(diptych_submit(session, &given, 1, flight), "submit");
        }
    }
    free(picture);
    free(found);
    diptych_close(session);
    return 0;
}
