/* A Vulkan layer whose calls fail when they are told to. Every other call goes by it.
 *
 * What is declared here is Vulkan's own (the specification, and the interface of loader and layers, version 2): names
 * are shortened, and only what is used is there. */

#include "faults.h"
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*ask)(void *, const char *);

/* Functions that give a code, and what they are called on: name and number of arguments. */
#define CODES(X) \
    X(vkAllocateMemory, 4) X(vkMapMemory, 6) X(vkBindBufferMemory, 4) X(vkBindBufferMemory2, 3) \
    X(vkFlushMappedMemoryRanges, 3) X(vkInvalidateMappedMemoryRanges, 3) X(vkCreateBuffer, 4) \
    X(vkCreateShaderModule, 4) X(vkCreatePipelineLayout, 4) X(vkCreateComputePipelines, 6) X(vkCreatePipelineCache, 4) \
    X(vkCreateDescriptorSetLayout, 4) X(vkCreateDescriptorPool, 4) X(vkAllocateDescriptorSets, 3) \
    X(vkCreateCommandPool, 4) X(vkResetCommandPool, 3) X(vkAllocateCommandBuffers, 3) X(vkBeginCommandBuffer, 2) \
    X(vkEndCommandBuffer, 1) X(vkCreateQueryPool, 4) X(vkCreateFence, 4) X(vkResetFences, 3) X(vkCreateSemaphore, 4) \
    X(vkGetFenceStatus, 2) X(vkGetSemaphoreCounterValue, 3) X(vkQueueSubmit, 4)
/* Those that wait. A device that is lost does nothing any more: what this one was given is over before it is said. */
#define WAITS(X) X(vkWaitForFences, 5) X(vkWaitSemaphores, 3) X(vkDeviceWaitIdle, 1) X(vkQueueWaitIdle, 1)

#define PLACE(name, count) AT_##name,
enum { CODES(PLACE) WAITS(PLACE) AT_vkCreateInstance, AT_vkEnumeratePhysicalDevices, AT_vkCreateDevice, FUNCTIONS };
#define NAME(name, count) #name,
static const char *const names[] = {
    CODES(NAME) WAITS(NAME) "vkCreateInstance", "vkEnumeratePhysicalDevices", "vkCreateDevice"};
static const int names_count = FUNCTIONS;

/* What is below, by the loader's table, at which each handle of an instance or a device begins. Entries stay: a table
 * may come again at the same place, and is found from the end. */
#define MOST 65536
static struct below {
    void *table;
    ask next;
    function real[FUNCTIONS];
} below[MOST];
static int known;

static struct below *of(word handle) {
    void *table = *(void **)handle;
    for (int i = __atomic_load_n(&known, __ATOMIC_ACQUIRE) - 1; i >= 0; i--)
        if (below[i].table == table) return &below[i];
    abort();
}

static struct below *remember(word handle, ask next, ask functions) {
    pthread_mutex_lock(&lock);
    int place = known;
    if (place == MOST) abort();
    below[place].table = *(void **)handle;
    below[place].next = next;
    for (int i = 0; i < FUNCTIONS; i++) below[place].real[i] = functions((void *)handle, names[i]);
    __atomic_store_n(&known, place + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return &below[place];
}

#define CODE(name, count) \
    static int name(PARAMS_##count) { \
        int code = fault(AT_##name); \
        return code ? code : ((int (*)(PARAMS_##count))of(a)->real[AT_##name])(ARGS_##count); \
    }
#define WAIT(name, count) \
    static int name(PARAMS_##count) { \
        int code = fault(AT_##name); \
        if (code && !armed_for_good) return code; \
        int own = ((int (*)(PARAMS_##count))of(a)->real[AT_##name])(ARGS_##count); \
        return code ? code : own; \
    }
CODES(CODE)
WAITS(WAIT)

/* Where the loader puts the next layer's functions, for an instance and for a device. */
struct link {
    struct link *next;
    ask instance_functions;
    ask device_functions;
};
struct info {
    int type;
    const struct info *next;
    int what; /* 0: the link. */
    struct link *link;
};

static struct link *taken(word create_info, int type) {
    struct info *at = (struct info *)((struct info *)create_info)->next;
    while (at && !(at->type == type && at->what == 0)) at = (struct info *)at->next;
    if (!at) abort();
    struct link *link = at->link;
    at->link = link->next;
    return link;
}

static int vkCreateInstance(word create_info, word allocator, word *instance) {
    int code = fault(AT_vkCreateInstance);
    if (code) return code;
    ask next = taken(create_info, 47)->instance_functions;
    code = ((int (*)(word, word, word *))next(NULL, "vkCreateInstance"))(create_info, allocator, instance);
    if (code == 0) remember(*instance, next, next);
    return code;
}

static int vkEnumeratePhysicalDevices(word instance, word count, word devices) {
    int code = fault(AT_vkEnumeratePhysicalDevices);
    if (code) return code;
    return ((int (*)(word, word, word))of(instance)->real[AT_vkEnumeratePhysicalDevices])(instance, count, devices);
}

static int vkCreateDevice(word physical, word create_info, word allocator, word *device) {
    int code = fault(AT_vkCreateDevice);
    if (code) return code;
    struct link *link = taken(create_info, 48);
    /* A physical device has its instance's table. */
    function create = of(physical)->real[AT_vkCreateDevice];
    code = ((int (*)(word, word, word, word *))create)(physical, create_info, allocator, device);
    if (code == 0) remember(*device, link->device_functions, link->device_functions);
    return code;
}

static function device_function(void *device, const char *name);
static function instance_function(void *instance, const char *name);

static function own(const char *name) {
#define OWN(own, count) \
    if (!strcmp(name, #own)) return (function)own;
    CODES(OWN)
    WAITS(OWN)
    OWN(vkCreateInstance, 3)
    OWN(vkEnumeratePhysicalDevices, 3)
    OWN(vkCreateDevice, 4)
    /* What was an extension before it was part of Vulkan. */
    if (!strcmp(name, "vkWaitSemaphoresKHR")) return (function)vkWaitSemaphores;
    if (!strcmp(name, "vkGetSemaphoreCounterValueKHR")) return (function)vkGetSemaphoreCounterValue;
    if (!strcmp(name, "vkBindBufferMemory2KHR")) return (function)vkBindBufferMemory2;
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (function)device_function;
    if (!strcmp(name, "vkGetInstanceProcAddr")) return (function)instance_function;
    return NULL;
}

static function device_function(void *device, const char *name) {
    function real = of((word)device)->next(device, name);
    function mine = real ? own(name) : NULL;
    return mine ? mine : real;
}

static function instance_function(void *instance, const char *name) {
    function mine = own(name);
    if (mine || !instance) return mine;
    return of((word)instance)->next(instance, name);
}

struct negotiation {
    int type;
    void *next;
    uint32_t version;
    ask instance_functions, device_functions, physical_device_functions;
};

EXPORT int vkNegotiateLoaderLayerInterfaceVersion(struct negotiation *with) {
    if (with->version > 2) with->version = 2;
    with->instance_functions = instance_function;
    with->device_functions = device_function;
    with->physical_device_functions = NULL;
    return 0;
}
