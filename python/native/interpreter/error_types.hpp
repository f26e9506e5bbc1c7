// The classes of weft.errors, which the extension raises.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct Errors {
  PyObject *ChannelEnd, *Retired, *Poisoned, *PeerDied, *Cancelled, *BadUse, *Deadlock, *several,
      *Blocked, *Ended, *NoResult;
};
extern Errors errors;  // filled by import_errors()

}  // namespace weft::py
