// The door through which a program is looked at (rule 14.9): a socket in the user's runtime
// directory, and a thread that sleeps until another program connects. The signal that asks where
// every process is, and the names of threads, are here too.
//
//   the first run ──► $XDG_RUNTIME_DIR/weft/PID.sock, a thread in accept()
//   ──somebody comes──► this user, or root? ──a thread for them──► weft._watching.look.serve()
//
// Invariants
//  1 Until a program connects, the interpreter knows no thread of the door, so no Python code sees
//    one. All signals are blocked on these threads: handlers run on the program's own threads.
//  2 Only this user and root are admitted: the directory has the mode 0700, the socket 0600, and
//    the kernel says which user has connected.
//  3 A child of a fork has neither the socket nor the thread. It opens its own at its next run.
//  4 Where the door cannot be opened nothing is said here: `weft ps` says what is missing.
//  5 The program may close descriptors that it did not open, and use their numbers for files of its
//    own. So before each use a thread here checks whether the number still refers to its file
//    (File).
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "declare.hpp"
#include "interpreter/door.hpp"
#include "watching/look.hpp"

namespace weft::py {

namespace {

constexpr int kAtOnce = 8;  // how many may look at the same time; others wait

// Identifies the file to which a descriptor refers.
struct File {
  dev_t device = 0;
  ino_t number = 0;
  explicit File(int fd) noexcept {
    struct stat is {};
    if (fstat(fd, &is) == 0) device = is.st_dev, number = is.st_ino;
  }
  bool operator==(const File&) const = default;
};

std::atomic<bool> tried{false};
int door = -1;
File door_file{-1};
std::string socket_path;
// the OS process that has the socket: this one, unless this is the child of a fork
pid_t owner = 0;
sem_t places;  // how many more may look at the same time

std::string runtime_directory() {
  if (const char* const x = std::getenv("XDG_RUNTIME_DIR"); x && *x) return x;
  return "/run/user/" + std::to_string(geteuid());
}

bool ours(int fd) noexcept {
#ifdef SO_PEERCRED
  ucred who{};
  socklen_t n = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
         (who.uid == geteuid() || who.uid == 0);
#else
  uid_t uid;
  gid_t gid;
  return getpeereid(fd, &uid, &gid) == 0 && (uid == geteuid() || uid == 0);
#endif
}

// Calls a function of Weft's on a thread that the interpreter does not know yet. Meanwhile the
// thread counts as a helper thread. `argument` is the argument of that function, or null.
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
      PyErr_Clear();  // the program that has connected sees that nothing more comes
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

bool start(void* (*body)(void*), void* of) noexcept {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t how;
  pthread_attr_init(&how);
  pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  pthread_t t;
  const bool is = pthread_create(&t, &how, body, of) == 0;
  pthread_attr_destroy(&how);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is;
}

void* visit(void* of) {
  pthread_setname_np(pthread_self(), "weft look");
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(of));
  as_helper("weft._watching.look", "serve", &fd);
  close(fd);
  sem_post(&places);
  return nullptr;
}

void* wait_at_door(void* of) {
  pthread_setname_np(pthread_self(), "weft door");
  const int at = static_cast<int>(reinterpret_cast<std::intptr_t>(of));
  const File mine(at);
  while (File(at) == mine) {
    const int fd = accept4(at, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE) return nullptr;
      usleep(100'000);  // the program has used up its descriptors
      continue;
    }
    while (sem_wait(&places) != 0) {
    }
    if (!ours(fd) || !start(&visit, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)))) {
      close(fd);
      sem_post(&places);
    }
  }
  return nullptr;
}

void take_socket_away() {
  if (door >= 0 && owner == getpid()) unlink(socket_path.c_str());
}

bool open_door() {
  if (const char* const w = std::getenv("WEFT_INSPECT"); w && std::strcmp(w, "0") == 0)
    return false;
  const std::string directory = runtime_directory() + "/weft";
  socket_path = directory + "/" + std::to_string(getpid()) + ".sock";
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof at.sun_path) return false;
  std::memcpy(at.sun_path, socket_path.c_str(), socket_path.size() + 1);
  struct stat is {};
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return false;
  // A directory that belongs to another user, or to which others have rights, is not used.
  if (lstat(directory.c_str(), &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != geteuid() ||
      (is.st_mode & 077) != 0)
    return false;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  unlink(socket_path.c_str());  // left by a program that had this number before
  sem_init(&places, 0, kAtOnce);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
      chmod(socket_path.c_str(), 0600) == 0 && listen(fd, 16) == 0 &&
      start(&wait_at_door, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)))) {
    door = fd;
    door_file = File(fd);
    owner = getpid();
    static const bool at_exit = std::atexit(&take_socket_away) == 0;
    static_cast<void>(at_exit);
    return true;
  }
  close(fd);
  unlink(socket_path.c_str());
  return false;
}

// --- signals that ask where every process is, or for the flight recorder's file ------------------

std::atomic<int> bell{-1};        // the end of a pipe to which the handler writes
File bell_file{-1};               // the file of `bell`; it is set before `bell` is
std::atomic<pid_t> rings_for{0};  // the OS process whose thread reads from that pipe
// whether on_signal() was called, perhaps in the parent of a fork
bool asked = false;
std::atomic<int> writes_flight{0};  // the signal at which the flight recorder's file is written

void ring(int number) {
  const int error = errno;
  // A child of a fork has its parent's pipe until it has a thread of its own that answers.
  if (const int to = bell.load();
      to >= 0 && rings_for.load() == getpid() && File(to) == bell_file) {
    [[maybe_unused]] const auto n = write(to, number == writes_flight ? "!" : "?", 1);
  }
  errno = error;
}

void* answer_bell(void* of) {
  pthread_setname_np(pthread_self(), "weft signal");
  const int from = static_cast<int>(reinterpret_cast<std::intptr_t>(of));
  const File mine(from);
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
  if (!start(&answer_bell, reinterpret_cast<void*>(static_cast<std::intptr_t>(ends[0])))) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  bell_file = File(ends[1]);
  bell = ends[1];
  rings_for = getpid();
  return true;
}

// _on_signal(number, flight=False): when this signal comes, a helper thread calls
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
PyMethodDef functions[] = {{"_on_signal", gated<f_on_signal>, METH_VARARGS, nullptr}, {}};

}  // namespace

void can_be_looked_at() noexcept {
  if (tried.load(std::memory_order_relaxed)) [[likely]]
    return;
  if (tried.exchange(true)) return;
  open_door();
  if (asked && rings_for.load() != getpid()) hang_bell();
}
void forget_look_door() noexcept {
  if (door >= 0 && File(door) == door_file) close(door);
  door = -1;
  tried = false;
}

void name_thread(const char* path) noexcept {
  const std::size_t n = std::strlen(path);
  const char* tail = path + (n > 15 ? n - 15 : 0);
  while ((static_cast<unsigned char>(*tail) & 0xC0) == 0x80) ++tail;  // does not cut a character
  pthread_setname_np(pthread_self(), tail);
}

int init_look_door(PyObject* m) { return PyModule_AddFunctions(m, functions); }

}  // namespace weft::py
