/* Runs a network on numbers that grow from 0 to 1, and prints what comes out:
 *
 *   posenet MODEL [DEVICE [TUNING-SECONDS]]
 *
 * scripts/c run builds it with the library and runs it on the bundled network. */

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
    void *pointer = calloc(count, size);
    if (pointer == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return pointer;
}

static void step(const diptych_step *step, void *user) {
    double *total = user;
    *total += step->microseconds;
    printf("%-40s %-40s %10.1f us\n", step->name, step->kernel, step->microseconds);
}

static bool progress(size_t done, size_t problems, void *user) {
    (void)user;
    fprintf(stderr, "tuned %zu of %zu\n", done, problems);
    return true;
}

int main(int count, char **arguments) {
    if (count < 2 || count > 4) {
        fprintf(stderr, "usage: %s MODEL [DEVICE [TUNING-SECONDS]]\n", arguments[0]);
        return 2;
    }
    diptych_options *options = diptych_options_new();
    if (count > 2) {
        check(diptych_options_device(options, arguments[2]), "device");
    }
    diptych_session *session = NULL;
    check(diptych_open_file(arguments[1], options, &session), "open");
    diptych_options_free(options);
    printf("%s\n", diptych_device(session));
    if (count > 3) {
        check(diptych_tune(session, atof(arguments[3]), progress, NULL), "tune");
    }

    size_t inputs = diptych_input_count(session), outputs = diptych_output_count(session);
    diptych_input_data *given = memory(inputs, sizeof *given);
    for (size_t i = 0; i < inputs; i++) {
        diptych_port port;
        check(diptych_input(session, i, &port), "input");
        float *elements = memory(port.elements, sizeof *elements);
        for (size_t k = 0; k < port.elements; k++) {
            elements[k] = (float)k / (float)port.elements;
        }
        given[i].elements = elements;
        given[i].length = port.elements;
    }
    diptych_output_data *found = memory(outputs, sizeof *found);
    for (size_t i = 0; i < outputs; i++) {
        diptych_port port;
        check(diptych_output(session, i, &port), "output");
        found[i].elements = memory(port.elements, sizeof *found[i].elements);
        found[i].length = port.elements;
    }

    double total = 0.0;
    check(diptych_run(session, given, inputs, found, outputs), "run");
    check(diptych_profile(session, given, inputs, step, &total), "profile");
    printf("%.1f us in all\n", total);

    for (size_t i = 0; i < outputs; i++) {
        diptych_port port;
        check(diptych_output(session, i, &port), "output");
        double sum = 0.0;
        for (size_t k = 0; k < port.elements; k++) {
            sum += found[i].elements[k];
        }
        printf("output %s [", port.name);
        for (size_t axis = 0; axis < port.rank; axis++) {
            printf("%s%zu", axis ? " " : "", port.extents[axis]);
        }
        printf("]: first %.6g, mean %.6g\n", found[i].elements[0], sum / (double)port.elements);
        free(found[i].elements);
    }
    for (size_t i = 0; i < inputs; i++) {
        free((void *)given[i].elements);
    }
    free(given);
    free(found);
    diptych_close(session);
    return 0;
}
