/* Counts the calls that change files, or those that read files of one folder, and at a chosen one fails or kills the
 * process before it is made.
 *
 * Loaded with LD_PRELOAD; the harness calls arm(n, error): at the n-th call from then on the process dies by
 * SIGKILL (error 0) or the call fails with that errno. counted() says how many there were. Only calls on files
 * count, not those on pipes and terminals. After watch(folder), calls that read files below the folder count instead
 * of those that change files. With ENOMEM, requests for large pieces of memory count instead. With CLOCK_JUMPS, the
 * n-th call that changes files is made, and from then on the clock is a day ahead.
 *
 * A process that no harness can call is armed by its environment: if one of its arguments is FAULT_IN, then with
 * FAULT_AT and FAULT_ERROR. At its end it writes the count to the file FAULT_COUNTS, if that is given.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_JUMPS = -1, LARGE = 1 << 16, DAY = 86400 };

static atomic_long calls, at = -1;
static atomic_long days;
static int error_at;

void arm(long n, int error) { atomic_store(&calls, 0); error_at = error; atomic_store(&at, n); }
long counted(void) { return atomic_load(&calls); }

static char below[4096];
void watch(const char *folder) { strncpy(below, folder, sizeof below - 1); }

static int hit(void) {
    if (atomic_load(&at) < 0 || atomic_fetch_add(&calls, 1) + 1 != atomic_load(&at)) return 0;
    if (error_at == 0) kill(getpid(), SIGKILL);
    if (error_at == CLOCK_JUMPS) {
        atomic_store(&days, 1);
        return 0;
    }
    errno = error_at;
    return 1;
}

__attribute__((constructor)) static void arm_by_environment(void) {
    const char *in = getenv("FAULT_IN"), *n = getenv("FAULT_AT"), *error = getenv("FAULT_ERROR");
    char words[1 << 16];
    FILE *line = in && n && error ? fopen("/proc/self/cmdline", "r") : NULL;
    size_t size = line ? fread(words, 1, sizeof words - 1, line) : 0;
    if (line) fclose(line);
    words[size] = 0;
    for (char *word = words; word < words + size; word += strlen(word) + 1)
        if (!strcmp(word, in)) arm(atol(n), atoi(error));
}

__attribute__((destructor)) static void say_count(void) {
    const char *path = atomic_load(&at) < 0 ? NULL : getenv("FAULT_COUNTS");
    long n = counted();
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", n);
        fclose(file);
    }
}

static int is_file(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

static int changes(void) { return !*below && error_at != ENOMEM && hit(); }

static int is_watched(int fd) {
    char link[64], path[sizeof below] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return *below && readlink(link, path, sizeof path - 1) > 0 && !strncmp(path, below, strlen(below));
}

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
#define PATHS(name, parameters, arguments) int name parameters { return changes() ? -1 : NEXT(name) arguments; }
#define ON_FILE(type, name, parameters, arguments) \
    type name parameters { return is_file(fd) && changes() ? -1 : NEXT(name) arguments; }
#define READS(name, parameters, arguments) \
    ssize_t name parameters { return is_watched(fd) && hit() ? -1 : NEXT(name) arguments; }

PATHS(rename, (const char *a, const char *b), (a, b))
PATHS(renameat, (int d, const char *a, int e, const char *b), (d, a, e, b))
PATHS(unlink, (const char *a), (a))
PATHS(unlinkat, (int d, const char *a, int f), (d, a, f))
PATHS(mkdir, (const char *a, mode_t m), (a, m))
PATHS(rmdir, (const char *a), (a))
PATHS(fsync, (int fd), (fd))
ON_FILE(int, ftruncate, (int fd, off_t n), (fd, n))
ON_FILE(int, ftruncate64, (int fd, off64_t n), (fd, n))
ON_FILE(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
ON_FILE(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
ON_FILE(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o))
ON_FILE(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
READS(read, (int fd, void *b, size_t n), (fd, b, n))
READS(pread, (int fd, void *b, size_t n, off_t o), (fd, b, n, o))
READS(pread64, (int fd, void *b, size_t n, off64_t o), (fd, b, n, o))

#define OPENS(name, parameters, call) \
    int name parameters { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); } \
        return flags & (O_CREAT | O_TRUNC) && changes() ? -1 : NEXT(name) call; \
    }
OPENS(open, (const char *path, int flags, ...), (path, flags, mode))
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode))
OPENS(openat, (int d, const char *path, int flags, ...), (d, path, flags, mode))
OPENS(openat64, (int d, const char *path, int flags, ...), (d, path, flags, mode))

/* C's own streams write through calls inside the library, which no name of ours stands before. */
FILE *fopen(const char *path, const char *mode) { return mode[0] != 'r' && changes() ? NULL : NEXT(fopen)(path, mode); }
FILE *fopen64(const char *path, const char *mode) { return mode[0] != 'r' && changes() ? NULL : NEXT(fopen64)(path, mode); }
size_t fwrite(const void *b, size_t s, size_t n, FILE *f) { return is_file(fileno(f)) && changes() ? 0 : NEXT(fwrite)(b, s, n, f); }

/* Memory. dlsym itself asks for some, so the functions behind these are called by the names that the C library has. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t s);
extern void *__libc_memalign(size_t alignment, size_t n);
static int refused(size_t n) { return n >= LARGE && error_at == ENOMEM && hit(); }
void *malloc(size_t n) { return refused(n) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t s) { return refused(n * s) ? NULL : __libc_calloc(n, s); }
int posix_memalign(void **p, size_t alignment, size_t n) {
    *p = refused(n) ? NULL : __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = NEXT(clock_gettime)(clock, now);
    if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += DAY * atomic_load(&days);
    return status;
}
