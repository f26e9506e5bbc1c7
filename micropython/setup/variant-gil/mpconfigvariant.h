// The unix port with a global lock, like that of the ESP32's port. The port's makefile sets the
// lock to 0 too late for a makefile to change it, so this header does. With the lock, the signal
// handler of Ctrl-C cannot raise an exception.
#include "../variant/mpconfigvariant.h"
#undef MICROPY_PY_THREAD_GIL
#define MICROPY_PY_THREAD_GIL (1)
#undef MICROPY_ASYNC_KBD_INTR
#define MICROPY_ASYNC_KBD_INTR (0)
// The port's atomic section uses a recursive mutex in any configuration.
#define MICROPY_PY_THREAD_RECURSIVE_MUTEX (1)
