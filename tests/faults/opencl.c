/* OpenCL whose calls fail when they are told to: a library before the system's, to which it hands on what it is asked.
 *
 * What it does not define is found in the system's, which it is linked with. */

#define _GNU_SOURCE
#include "faults.h"
#include <dlfcn.h>
#include <string.h>

/* Functions that give a code, and those that give an object and store a code in their last argument: name and number of
 * arguments. */
#define CODES(X) \
    X(clGetPlatformIDs, 3) X(clGetPlatformInfo, 5) X(clGetDeviceIDs, 5) X(clGetDeviceInfo, 5) \
    X(clBuildProgram, 6) X(clGetProgramInfo, 5) X(clGetProgramBuildInfo, 6) X(clSetKernelArg, 4) \
    X(clGetKernelInfo, 5) X(clGetKernelArgInfo, 6) X(clGetKernelWorkGroupInfo, 6) \
    X(clEnqueueNDRangeKernel, 9) X(clEnqueueReadBuffer, 9) X(clEnqueueWriteBuffer, 9) X(clEnqueueFillBuffer, 9) \
    X(clEnqueueCopyBuffer, 9) X(clEnqueueUnmapMemObject, 6) X(clEnqueueBarrierWithWaitList, 4) \
    X(clEnqueueMarkerWithWaitList, 4) X(clFlush, 1) X(clRetainEvent, 1) \
    X(clGetEventProfilingInfo, 5) X(clGetCommandQueueInfo, 5) X(clRetainContext, 1) X(clRetainCommandQueue, 1) \
    X(clRetainMemObject, 1) X(clGetMemObjectInfo, 5)
/* Those that wait. A device that is lost does nothing any more: what this one was given is over before it is said. */
#define WAITS(X) X(clFinish, 1) X(clWaitForEvents, 2)
#define OBJECTS(X) \
    X(clCreateContext, 6) X(clCreateCommandQueue, 4) X(clCreateBuffer, 5) X(clCreateSubBuffer, 5) X(clCreateImage, 6) \
    X(clCreateProgramWithSource, 5) X(clCreateProgramWithBinary, 7) X(clCreateKernel, 3) X(clEnqueueMapBuffer, 10)
/* Those of extensions, which are asked for by name. */
#define EXTENSION_CODES(X) \
    X(clCommandNDRangeKernelKHR, 12) X(clFinalizeCommandBufferKHR, 1) X(clEnqueueCommandBufferKHR, 6)
#define EXTENSION_OBJECTS(X) X(clCreateCommandBufferKHR, 4)
#define RELEASES(X) \
    X(clReleaseContext, 1) X(clReleaseCommandQueue, 1) X(clReleaseMemObject, 1) X(clReleaseProgram, 1) \
    X(clReleaseKernel, 1) X(clReleaseEvent, 1)
#define EXTENSION_RELEASES(X) X(clReleaseCommandBufferKHR, 1)

#define PLACE(name, count) AT_##name,
enum {
    CODES(PLACE) WAITS(PLACE) OBJECTS(PLACE) EXTENSION_CODES(PLACE) EXTENSION_OBJECTS(PLACE) RELEASES(PLACE)
        EXTENSION_RELEASES(PLACE) FUNCTIONS
};
#define NAME(name, count) #name,
static const char *const names[] = {CODES(NAME) WAITS(NAME) OBJECTS(NAME) EXTENSION_CODES(NAME) EXTENSION_OBJECTS(NAME)
                                        RELEASES(NAME) EXTENSION_RELEASES(NAME)};
static const int names_count = FUNCTIONS;

/* The system's functions: the loader's own, found when first called, and those of extensions, kept when asked for. */
static void *real[FUNCTIONS];

static void *found(int function) {
    void *known = __atomic_load_n(&real[function], __ATOMIC_ACQUIRE);
    if (!known) {
        known = dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), names[function]);
        __atomic_store_n(&real[function], known, __ATOMIC_RELEASE);
    }
    return known;
}

#define LAST_3 c
#define LAST_4 d
#define LAST_5 e
#define LAST_6 f
#define LAST_7 g
#define LAST_10 j

#define CODE(name, count) \
    EXPORT int name(PARAMS_##count) { \
        int code = fault(AT_##name); \
        if (code) return code; \
        code = ((int (*)(PARAMS_##count))found(AT_##name))(ARGS_##count); \
        if (!code) succeeded(AT_##name); \
        return code; \
    }
#define WAIT(name, count) \
    EXPORT int name(PARAMS_##count) { \
        int code = fault(AT_##name); \
        if (code && !armed_for_good) return code; \
        int own = ((int (*)(PARAMS_##count))found(AT_##name))(ARGS_##count); \
        return code ? code : own; \
    }
#define OBJECT(name, count) \
    EXPORT word name(PARAMS_##count) { \
        int code = fault(AT_##name); \
        if (code) { \
            if (LAST_##count) *(int *)LAST_##count = code; \
            return 0; \
        } \
        word object = ((word(*)(PARAMS_##count))found(AT_##name))(ARGS_##count); \
        if (object) succeeded(AT_##name); \
        return object; \
    }
/* Those that give something back do so, whatever is wrong. */
#define RELEASE(name, count) \
    EXPORT int name(PARAMS_##count) { \
        int code = fault(AT_##name), own = ((int (*)(PARAMS_##count))found(AT_##name))(ARGS_##count); \
        return code ? code : own; \
    }
CODES(CODE)
WAITS(WAIT)
OBJECTS(OBJECT)
EXTENSION_CODES(CODE)
EXTENSION_OBJECTS(OBJECT)
RELEASES(RELEASE)
EXTENSION_RELEASES(RELEASE)

EXPORT void *clGetExtensionFunctionAddressForPlatform(void *platform, const char *name) {
    static void *(*ask)(void *, const char *);
    if (!ask) *(void **)&ask = dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clGetExtensionFunctionAddressForPlatform");
    void *theirs = ask(platform, name);
#define OWN(own, count) \
    if (theirs && !strcmp(name, #own)) { \
        __atomic_store_n(&real[AT_##own], theirs, __ATOMIC_RELEASE); \
        return (void *)own; \
    }
    EXTENSION_CODES(OWN)
    EXTENSION_OBJECTS(OWN)
    EXTENSION_RELEASES(OWN)
    return theirs;
}
