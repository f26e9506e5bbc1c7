// A library for LD_PRELOAD that makes system calls fail. $WEFT_FAILS is a list of NAME=ERRNO,
// separated by commas. If NAME is pidfd_open, futex_waitv, memfd_create, eventfd or fallocate, the
// first such call fails; if NAME is waits, each futex_waitv that would wait fails.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int asked(const char* name) {
  const char* all = getenv("WEFT_FAILS");
  const char* at = all ? strstr(all, name) : NULL;
  return at ? atoi(at + strlen(name)) : 0;
}
// Returns the error with which this call must fail, or 0 if it must not fail.
static int first(const char* name, atomic_int* calls) {
  const int error = asked(name);
  return error && atomic_fetch_add(calls, 1) == 0 ? error : 0;
}

static atomic_int failed;
int waits_that_failed(void) { return atomic_load(&failed); }

long syscall(long number, ...) {
  static atomic_int calls_pidfd, calls_waitv;
  long a[6];
  va_list all;
  va_start(all, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(all, long);
  va_end(all);
  int error = 0;
  if (number == 434) error = first("pidfd_open=", &calls_pidfd);
  if (number == 449) error = first("futex_waitv=", &calls_waitv);
  if (number == 449 && a[1] > 0 && !error && (error = asked("waits=")))
    atomic_fetch_add(&failed, 1);
  if (error) {
    errno = error;
    return -1;
  }
  return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3], a[4],
                                                            a[5]);
}

int memfd_create(const char* name, unsigned flags) {
  static atomic_int calls;
  if ((errno = first("memfd_create=", &calls))) return -1;
  return ((int (*)(const char*, unsigned))dlsym(RTLD_NEXT, "memfd_create"))(name, flags);
}
int eventfd(unsigned count, int flags) {
  static atomic_int calls;
  if ((errno = first("eventfd=", &calls))) return -1;
  return ((int (*)(unsigned, int))dlsym(RTLD_NEXT, "eventfd"))(count, flags);
}
int posix_fallocate(int fd, off_t at, off_t size) {
  static atomic_int calls;
  const int error = first("fallocate=", &calls);
  return error ? error
               : ((int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate"))(fd, at, size);
}
