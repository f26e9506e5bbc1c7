// The door through which other programs examine this one (rule 14.9); the signals that ask where
// every process is, or for the flight recorder's file; and the names of threads.
//
//   the first run ──► the door (cpp/include/weft/runtime/door.hpp)
//   ──a program connects──► a thread for it──► weft._watching.look.serve()
//
// Invariants
//  1 Until a program connects, the interpreter does not know the thread of the door, so no Python
//    code sees that thread.
//  2 The pipe for signals has the same limits as the door: in a child of a fork no thread serves
//    the pipe, and before each use of a descriptor of the pipe the code checks whether the
//    descriptor still refers to its file (Door::File).
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "declare.hpp"
#include "interpreter/door.hpp"
#include "watching/look.hpp"
#include "weft/runtime/door.hpp"

namespace weft::py {

namespace {

using runtime::Door;
using File = Door::File;

std::atomic<bool> tried{false};

// Calls a function of Weft's on a thread that the interpreter does not know yet. During the call
// the thread counts as a helper thread. `argument` is the argument of that function, or null.
void as_helper(const char* module, const char* function, const int* argument) {
  const PyGILState_STATE gil = enter_interpreter();
  {
    PyObject* const native = PyImport_ImportModule("weft._native");
    PyObject* const helps =
        native ? PyObject_CallMethod(native, "_helper_thread", "O", Py_True) : nullptr;
    PyObject* const m = helps ? PyImport_ImportModule(module) : nullptr;
    PyObject* const r = !m         ? nullptr
                        : argument ? PyObject_CallMethod(m, function, "i", *argument)
                                   : PyObject_CallMethod(m, function, nullptr);
    if (!r && PyErr_ExceptionMatches(PyExc_Exception) && !argument)
      PyErr_WriteUnraisable(m);
    else if (!r)
      PyErr_Clear();  // the program that has connected sees that no more data arrives
    Py_XDECREF(r);
    Py_XDECREF(m);
    Py_XDECREF(helps);
    PyObject* const no_more =
        native ? PyObject_CallMethod(native, "_helper_thread", "O", Py_False) : nullptr;
    if (!no_more) PyErr_Clear();
    Py_XDECREF(no_more);
    Py_XDECREF(native);
  }
  PyGILState_Release(gil);
}

void visit(int fd) { as_helper("weft._watching.look", "serve", &fd); }

// --- signals that ask where every process is, or for the flight recorder's file ------------------

std::atomic<int> bell{-1};        // the end of a pipe to which the handler writes
File bell_file{-1};               // the file of `bell`, set before `bell` is set
std::atomic<pid_t> rings_for{0};  // the OS process whose thread reads from that pipe
// whether on_signal() was called, perhaps in the parent of a fork
bool asked = false;
std::atomic<int> writes_flight{0};  // the signal at which the flight recorder's file is written

void ring(int number) {
  const int error = errno;
  // A child of a fork inherits its parent's pipe, but must not write to it. It has its own pipe
  // only once it has a thread that answers.
  if (const int to = bell.load();
      to >= 0 && rings_for.load() == getpid() && File(to) == bell_file) {
    [[maybe_unused]] const auto n = write(to, number == writes_flight ? "!" : "?", 1);
  }
  errno = error;
}

// The end of the pipe from which the thread reads. The file is recorded before the thread is
// started: when the thread checks, the program might already have closed the descriptor, and might
// use its number for another file.
struct Rung {
  int from;
  File mine;
};

void* answer_bell(void* of) {
  pthread_setname_np(pthread_self(), "weft signal");
  const std::unique_ptr<Rung> end(static_cast<Rung*>(of));
  const auto [from, mine] = *end;
  char rung[64];
  while (File(from) == mine) {
    const auto n = read(from, rung, sizeof rung);
    if (n > 0) {
      const auto size = static_cast<std::size_t>(n);
      if (std::memchr(rung, '?', size)) as_helper("weft._watching.on_signal", "say", nullptr);
      if (std::memchr(rung, '!', size)) as_helper("weft._watching.flight", "say", nullptr);
    } else if (n == 0 || errno != EINTR)
      return nullptr;
  }
  return nullptr;
}

bool hang_bell() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  std::unique_ptr<Rung> end(new Rung{ends[0], File(ends[0])});
  if (!Door::start(&answer_bell, end.get())) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  end.release();  // the thread deletes it
  bell_file = File(ends[1]);
  bell = ends[1];
  rings_for = getpid();
  return true;
}

// _on_signal(number, flight=False): from now on, when this signal arrives, a helper thread calls
// weft._watching.on_signal.say(), or weft._watching.flight.say().
PyObject* f_on_signal(PyObject*, PyObject* args) {
  int number, flight = 0;
  if (!PyArg_ParseTuple(args, "i|p", &number, &flight)) return nullptr;
  asked = true;
  if (flight)
    writes_flight = number;
  else if (writes_flight == number)
    writes_flight = 0;
  if (rings_for.load() != getpid() && !hang_bell()) return PyErr_SetFromErrno(PyExc_OSError);
  struct sigaction a {};
  a.sa_handler = &ring;
  a.sa_flags = SA_RESTART;
  sigfillset(&a.sa_mask);
  if (sigaction(number, &a, nullptr) != 0) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}
PyMethodDef look_door_functions[] = {{"_on_signal", gated<f_on_signal>, METH_VARARGS, nullptr}, {}};

}  // namespace

void can_be_looked_at() noexcept {
  if (tried.load(std::memory_order_relaxed)) [[likely]]
    return;
  if (tried.exchange(true)) return;
  Door::open(&visit);
  if (asked && rings_for.load() != getpid()) hang_bell();
}
void forget_look_door() noexcept {
  Door::forget();
  tried = false;
}

int init_look_door(PyObject* m) { return PyModule_AddFunctions(m, look_door_functions); }

}  // namespace weft::py
