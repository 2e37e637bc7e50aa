/* Runs a network whose file leaves extents of its inputs open, with each of them 1, 2 and 3, and prints the extents of
 * what comes out:
 *
 *   extents MODEL [DEVICE] */

#include "diptych.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the program, saying what went wrong. */
static void check(diptych_status status, const char *what) {
    if (status != DIPTYCH_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", what, diptych_last_error());
        exit(1);
    }
}

static void *memory(size_t count, size_t size) {
    void *pointer = calloc(count > 0 ? count : 1, size);
    if (pointer == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return pointer;
}

/* Zeros for an input, with `open` where each run decides an extent. */
static diptych_tensor zeros(const diptych_session *session, size_t input, size_t open) {
    diptych_port port;
    check(diptych_input(session, input, &port), "input");
    diptych_tensor tensor = {.dtype = port.dtype, .rank = port.rank};
    size_t elements = 1;
    for (size_t axis = 0; axis < port.rank; axis++) {
        const char *name;
        check(diptych_input_axis(session, input, axis, &name), "axis");
        tensor.extents[axis] = name != NULL ? open : port.extents[axis];
        elements *= tensor.extents[axis];
    }
    size_t size = port.elements > 0 ? port.bytes / port.elements : 0;
    tensor.bytes = elements * size;
    tensor.elements = memory(elements, size);
    return tensor;
}

int main(int count, char **arguments) {
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: %s MODEL [DEVICE]\n", arguments[0]);
        return 2;
    }
    diptych_options *options = diptych_options_new();
    if (count > 2) {
        check(diptych_options_device(options, arguments[2]), "device");
    }
    diptych_session *session = NULL;
    check(diptych_open_file(arguments[1], options, &session), "open");
    diptych_options_free(options);

    size_t inputs = diptych_input_count(session);
    diptych_tensor *given = memory(inputs, sizeof *given);
    for (size_t open = 1; open <= 3; open++) {
        for (size_t i = 0; i < inputs; i++) {
            given[i] = zeros(session, i, open);
        }
        diptych_outputs *outputs;
        check(diptych_run_tensors(session, given, inputs, &outputs), "run");
        for (size_t i = 0; i < diptych_outputs_count(outputs); i++) {
            diptych_tensor tensor;
            check(diptych_outputs_tensor(outputs, i, &tensor), "output");
            printf("output %zu [", i);
            for (size_t axis = 0; axis < tensor.rank; axis++) {
                printf("%s%zu", axis ? " " : "", tensor.extents[axis]);
            }
            printf("]: %zu bytes\n", tensor.bytes);
        }
        diptych_outputs_free(outputs);
        for (size_t i = 0; i < inputs; i++) {
            free((void *)given[i].elements);
        }
    }
    free(given);
    diptych_close(session);
    return 0;
}
