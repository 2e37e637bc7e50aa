/* Files whose calls fail when they are told to, and a clock that jumps: a library that is loaded before the system's.
 *
 * Only what is below the folder in FAULTS_FOLDER fails. A write that fails writes half of its bytes first, as on a disk
 * that is full. FAULTS_CLOCK sets the time of day: `past`, `future`, or `jumps` to and fro. */

#define _GNU_SOURCE
#include "faults.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { OPEN, READ, WRITE, SYNC, TRUNCATE, MKDIR, LOCK, UNLINK, FUNCTIONS };
static const char *const names[] = {"open", "read", "write", "fsync", "ftruncate", "mkdir", "flock", "unlink"};
static const int names_count = FUNCTIONS;

#define MOST 4096
static char ours[MOST];

static int is_ours(const char *path) {
    const char *folder = getenv("FAULTS_FOLDER");
    return folder && !strncmp(path, folder, strlen(folder));
}

static int is_file(int file) { return file >= 0 && file < MOST && __atomic_load_n(&ours[file], __ATOMIC_RELAXED); }

/* Whether this call fails; then `errno` says why. */
static int fails(int function) {
    int code = fault(function);
    if (code) errno = code;
    return code;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int file, const char *path) {
    if (file >= 0 && file < MOST) __atomic_store_n(&ours[file], is_ours(path), __ATOMIC_RELAXED);
    return file;
}

#define OPENS(name) \
    EXPORT int name(const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = va_arg(rest, mode_t); \
        va_end(rest); \
        if (is_ours(path) && fails(OPEN)) return -1; \
        return opened(REAL(name)(path, flags, mode), path); \
    }
OPENS(open)
OPENS(open64)

extern ssize_t read(int, void *, size_t), write(int, const void *, size_t);
extern int fsync(int), ftruncate64(int, int64_t), mkdir(const char *, mode_t);
extern int flock(int, int), unlink(const char *);

EXPORT ssize_t read(int file, void *to, size_t bytes) {
    if (is_file(file) && fails(READ)) return -1;
    return REAL(read)(file, to, bytes);
}

EXPORT ssize_t write(int file, const void *from, size_t bytes) {
    if (is_file(file)) {
        int before = fired;
        if (fails(WRITE)) {
            int code = errno;
            if (!before && bytes > 1) return REAL(write)(file, from, bytes / 2);
            errno = code;
            return -1;
        }
    }
    return REAL(write)(file, from, bytes);
}

EXPORT int fsync(int file) { return is_file(file) && fails(SYNC) ? -1 : REAL(fsync)(file); }

EXPORT int ftruncate64(int file, int64_t bytes) {
    return is_file(file) && fails(TRUNCATE) ? -1 : REAL(ftruncate64)(file, bytes);
}

EXPORT int mkdir(const char *path, mode_t mode) { return is_ours(path) && fails(MKDIR) ? -1 : REAL(mkdir)(path, mode); }

EXPORT int flock(int file, int operation) { return is_file(file) && fails(LOCK) ? -1 : REAL(flock)(file, operation); }

EXPORT int unlink(const char *path) { return is_ours(path) && fails(UNLINK) ? -1 : REAL(unlink)(path); }

EXPORT int clock_gettime(clockid_t clock, struct timespec *to) {
    static unsigned jumps;
    int code = REAL(clock_gettime)(clock, to);
    const char *how = clock == CLOCK_REALTIME ? getenv("FAULTS_CLOCK") : NULL;
    if (!how) return code;
    unsigned jump = __atomic_add_fetch(&jumps, 1, __ATOMIC_RELAXED);
    if (!strcmp(how, "past")) to->tv_sec = -86400;
    if (!strcmp(how, "future")) to->tv_sec = (time_t)1 << 40;
    if (!strcmp(how, "jumps")) to->tv_sec += (jump % 2 ? 1 : -1) * (time_t)jump * 10000000;
    return code;
}
