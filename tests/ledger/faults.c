/* Preloaded into a test process: the n-th write or flush of a regular file fails, is torn, kills the process, or is where
   the power goes off: then what was written and not flushed is lost, all of it or, as disks reorder, some of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, KILL_BEFORE, KILL_AFTER, TORN, FAIL_ONCE, FAIL_FROM, POWER_OFF };

static long countdown = -1, seen = 0;
static int mode = OFF, error_number = 0;

void fault_arm(int chosen, long at, int error) { mode = chosen; countdown = at; error_number = error; seen = 0; }
long fault_seen(void) { return seen; }

/* A write that no flush has followed: what was there before, what is there now. */
struct unflushed { dev_t device; ino_t inode; char path[256]; off64_t at, size_before; size_t length, kept; char *before, *after; };
static struct unflushed log_of[4096];
static int logged = 0;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void remember(int fd, const void *data, size_t size, off64_t at) {
    struct stat facts;
    if (mode != POWER_OFF || fstat(fd, &facts) || !S_ISREG(facts.st_mode) || logged == 4096) return;
    struct unflushed *one = &log_of[logged++];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, one->path, sizeof one->path - 1);
    one->path[length < 0 ? 0 : length] = 0;
    one->device = facts.st_dev; one->inode = facts.st_ino; one->at = at; one->size_before = facts.st_size;
    one->length = size; one->before = malloc(size + 1); one->after = malloc(size + 1);
    memcpy(one->after, data, size);
    int reader = open(one->path, O_RDONLY);  /* Never closed: closing would drop the locks of the process. */
    ssize_t kept = reader < 0 ? 0 : pread64(reader, one->before, size, at);
    one->kept = kept < 0 ? 0 : (size_t)kept;
}

static void flushed(int fd) {
    struct stat facts;
    int left = 0;
    if (mode != POWER_OFF || fstat(fd, &facts)) return;
    for (int i = 0; i < logged; i++)
        if (log_of[i].device != facts.st_dev || log_of[i].inode != facts.st_ino) log_of[left++] = log_of[i];
    logged = left;
}

static void lose_power(unsigned choice) {
    for (int i = logged - 1; i >= 0; i--) {
        int fd = open(log_of[i].path, O_RDWR);
        if (fd < 0) continue;
        REAL(pwrite64)(fd, log_of[i].before, log_of[i].kept, log_of[i].at);
        REAL(ftruncate64)(fd, log_of[i].size_before);
    }
    for (int i = 0; i < logged; i++) {
        unsigned mixed = (unsigned)(i + 1) * 2654435761u ^ choice * 40503u;
        int fd = choice && (mixed >> 15 & 1) ? open(log_of[i].path, O_RDWR) : -1;
        if (fd >= 0) REAL(pwrite64)(fd, log_of[i].after, log_of[i].length, log_of[i].at);
    }
    kill(getpid(), SIGKILL);
    pause();
}

static int on_disk(int fd) {
    struct stat facts;
    return fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Return 1 if this call is to fail, 2 if it is to be torn, 3 if the process dies after it; it may die here. */
static int verdict(int fd) {
    if (!on_disk(fd)) return 0;
    seen++;
    if (mode == OFF || countdown < 0) return 0;
    long now = seen - 1;
    if (mode == FAIL_FROM) { if (now < countdown) return 0; errno = error_number; return 1; }
    if (now != countdown) return 0;
    if (mode == KILL_BEFORE) { kill(getpid(), SIGKILL); pause(); }
    if (mode == POWER_OFF) lose_power((unsigned)error_number);
    if (mode == FAIL_ONCE) { errno = error_number; return 1; }
    return mode == TORN ? 2 : 3;
}

static void die(void) { kill(getpid(), SIGKILL); pause(); }

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    int what = verdict(fd);
    if (what == 1) return -1;
    remember(fd, data, size, at);
    ssize_t done = REAL(pwrite64)(fd, data, what == 2 ? size / 2 : size, at);
    if (what) die();
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t write(int fd, const void *data, size_t size) {
    int what = verdict(fd);
    if (what == 1) return -1;
    remember(fd, data, size, lseek64(fd, 0, SEEK_CUR));
    ssize_t done = REAL(write)(fd, data, what == 2 ? size / 2 : size);
    if (what) die();
    return done;
}

int fdatasync(int fd) {
    int what = verdict(fd);
    if (what == 1) return -1;
    int done = REAL(fdatasync)(fd);
    flushed(fd);
    if (what) die();
    return done;
}

int fsync(int fd) {
    int what = verdict(fd);
    if (what == 1) return -1;
    int done = REAL(fsync)(fd);
    flushed(fd);
    if (what) die();
    return done;
}

int ftruncate64(int fd, off64_t size) {
    int what = verdict(fd);
    if (what == 1) return -1;
    int done = REAL(ftruncate64)(fd, size);
    if (what) die();
    return done;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
