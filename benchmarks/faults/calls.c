/* Counts the calls that change files, or those that read files of one folder, and at a chosen one fails or kills the
 * process before it is made.
 *
 * Loaded with LD_PRELOAD; the harness calls arm(n, error): at the n-th call from then on the process dies by
 * SIGKILL (error 0) or the call fails with that errno. counted() says how many there were. Only calls on files
 * count, not those on pipes and terminals. After watch(folder), calls that read files below the folder count instead
 * of those that change files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls, at = -1;
static int error_at;

void arm(long n, int error) { atomic_store(&calls, 0); error_at = error; atomic_store(&at, n); }
long counted(void) { return atomic_load(&calls); }

static char below[4096];
void watch(const char *folder) { strncpy(below, folder, sizeof below - 1); }

static int hit(void) {
    if (atomic_load(&at) < 0 || atomic_fetch_add(&calls, 1) + 1 != atomic_load(&at)) return 0;
    if (error_at == 0) kill(getpid(), SIGKILL);
    errno = error_at;
    return 1;
}

static int is_file(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

static int changes(void) { return !*below && hit(); }

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
