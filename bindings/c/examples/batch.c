/* Hands requests to a network that serves them in batches, on one device or on several, and prints what comes out:
 *
 *   batch MODEL [DEVICE...] */

#include "diptych.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 6 };

/* Ends the program, saying what went wrong. */
static void check(diptych_status status, const char *what) {
    if (status != DIPTYCH_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", what, diptych_last_error());
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODEL [DEVICE...]\n", arguments[0]);
        return 2;
    }
    diptych_batch_options how = diptych_batch_options_default();
    how.max_batch = 4;
    size_t sizes[] = {1, 4};
    how.sizes = sizes;
    how.size_count = 2;
    const char *const *devices = (const char *const *)&arguments[2];
    diptych_batch *batch = NULL;
    check(diptych_batch_open_file(arguments[1], NULL, devices, (size_t)count - 2, &how, &batch), "open");

    diptych_port input;
    check(diptych_batch_input(batch, 0, &input), "input");
    float *numbers = calloc(input.elements, sizeof *numbers);
    if (numbers == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    diptych_tensor given = {numbers, input.bytes, DIPTYCH_DTYPE_F32, input.rank, {0}};
    memcpy(given.extents, input.extents, sizeof given.extents);
    diptych_ticket *tickets[REQUESTS];
    for (size_t request = 0; request < REQUESTS; request++) {
        for (size_t k = 0; k < input.elements; k++) {
            numbers[k] = (float)((k * (request + 1)) % 17) / 17.0f;
        }
        check(diptych_batch_submit(batch, &given, 1, &tickets[request]), "submit");
    }
    for (size_t request = 0; request < REQUESTS; request++) {
        diptych_outputs *outputs;
        check(diptych_ticket_wait(tickets[request], &outputs), "wait");
        diptych_tensor tensor;
        check(diptych_outputs_tensor(outputs, 0, &tensor), "output");
        printf("request %zu: %zu bytes, first %.5f\n", request, tensor.bytes, *(const float *)tensor.elements);
        diptych_outputs_free(outputs);
    }
    free(numbers);
    diptych_batch_close(batch);
    return 0;
}
