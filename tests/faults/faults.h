/* What both stand-ins share: which call is to fail, and how often each was made.
 *
 * A function of the driver is a place in `names`. `faults_arm` makes one call of it fail, or from that call on all
 * calls of the driver that can. The program under test finds these functions in the library by their names. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A handle, a pointer, a size or a smaller number: all are passed alike. */
typedef uintptr_t word;

/* So many of them as parameters, and as arguments. */
#define PARAMS_1 word a
#define PARAMS_2 PARAMS_1, word b
#define PARAMS_3 PARAMS_2, word c
#define PARAMS_4 PARAMS_3, word d
#define PARAMS_5 PARAMS_4, word e
#define PARAMS_6 PARAMS_5, word f
#define PARAMS_7 PARAMS_6, word g
#define PARAMS_8 PARAMS_7, word h
#define PARAMS_9 PARAMS_8, word i
#define PARAMS_10 PARAMS_9, word j
#define PARAMS_11 PARAMS_10, word k
#define PARAMS_12 PARAMS_11, word l
#define ARGS_1 a
#define ARGS_2 ARGS_1, b
#define ARGS_3 ARGS_2, c
#define ARGS_4 ARGS_3, d
#define ARGS_5 ARGS_4, e
#define ARGS_6 ARGS_5, f
#define ARGS_7 ARGS_6, g
#define ARGS_8 ARGS_7, h
#define ARGS_9 ARGS_8, i
#define ARGS_10 ARGS_9, j
#define ARGS_11 ARGS_10, k
#define ARGS_12 ARGS_11, l

#define EXPORT __attribute__((visibility("default")))

static const char *const names[];
static const int names_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls[128], made[128];
static int armed = -1, armed_code, armed_for_good, fired;
static long armed_call;

/* The code with which this call of `function` fails; 0 if it does not. */
static int fault(int function) {
    pthread_mutex_lock(&lock);
    long call = ++calls[function];
    int code = 0;
    if (fired && armed_for_good) {
        code = armed_code;
    } else if (function == armed && call == armed_call) {
        fired = 1;
        code = armed_code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Notes that this call had success. */
static inline void succeeded(int function) {
    pthread_mutex_lock(&lock);
    made[function]++;
    pthread_mutex_unlock(&lock);
}

/* Begins to count anew. */
EXPORT void faults_begin(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < names_count; i++) calls[i] = made[i] = 0;
    pthread_mutex_unlock(&lock);
}

/* Call number `call` of `function` is to fail with `code`; none if `function` is negative. */
EXPORT void faults_arm(int function, long call, int code, int for_good) {
    pthread_mutex_lock(&lock);
    armed = function, armed_call = call, armed_code = code, armed_for_good = for_good, fired = 0;
    pthread_mutex_unlock(&lock);
}

/* Whether the call was made that is to fail. */
EXPORT int faults_fired(void) { return fired; }

EXPORT int faults_functions(void) { return names_count; }

EXPORT const char *faults_name(int function) { return names[function]; }

/* How often a function made an object. */
EXPORT long faults_made(int function) {
    pthread_mutex_lock(&lock);
    long count = made[function];
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT long faults_calls(int function) {
    pthread_mutex_lock(&lock);
    long count = calls[function];
    pthread_mutex_unlock(&lock);
    return count;
}
