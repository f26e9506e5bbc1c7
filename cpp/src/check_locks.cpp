// Locks in a checked program. All processes of a check are on one thread. So if a process waited
// for a lock that another process holds during an operation, the check would hang for ever. A mutex
// knows which thread holds it, so a thread that would wait for itself is refused.
//
// std::mutex calls pthread_mutex_lock(). In a checked program it calls the function below, since a
// function of the program takes precedence over that of a shared library. Only a program that is
// compiled for checks has this function. Under ThreadSanitizer it is left out, because
// ThreadSanitizer has its own.
#include <weft/config.hpp>

#if defined(__SANITIZE_THREAD__)
#define WEFT_THREADS_ARE_SEEN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_THREADS_ARE_SEEN 1
#endif
#endif

#if WEFT_CHECKED && defined(__linux__) && defined(__GLIBC__) && !defined(WEFT_THREADS_ARE_SEEN)
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

#include <weft/runtime/points.hpp>

// Locks the mutex. Returns EDEADLK if the lock would never be free; then std::mutex::lock() throws
// std::system_error.
extern "C" int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  int r = pthread_mutex_trylock(m);
  if (r != EBUSY) return r;
  if (auto* const points = weft::runtime::points;
      points && m->__data.__owner == static_cast<int>(syscall(SYS_gettid))) {
    points->stands_at_lock();
    return EDEADLK;
  }
  // The library's pthread_mutex_lock() cannot be called here. So the thread waits with a time limit
  // that is never reached.
  constexpr timespec never{time_t{1} << 40, 0};
  do r = pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &never);
  while (r == ETIMEDOUT);
  return r;
}
#endif
