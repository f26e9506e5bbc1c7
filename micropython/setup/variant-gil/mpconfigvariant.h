// The unix port with a global lock, as ESP32 has it: the port's makefile says 0, too late for us to
// say otherwise there. With the lock Ctrl-C cannot raise from the signal's handler.
#include "../variant/mpconfigvariant.h"
#undef MICROPY_PY_THREAD_GIL
#define MICROPY_PY_THREAD_GIL (1)
#undef MICROPY_ASYNC_KBD_INTR
#define MICROPY_ASYNC_KBD_INTR (0)
// The port's atomic section is this kind of lock whatever else holds.
#define MICROPY_PY_THREAD_RECURSIVE_MUTEX (1)
