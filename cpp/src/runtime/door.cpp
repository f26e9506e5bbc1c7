// The definitions of runtime/door.hpp.
#include <weft/runtime/door.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <weft/runtime/affinity.hpp>

namespace weft::inline WEFT_ABI::runtime {

namespace {

constexpr int kAtOnce = 8;  // how many visitors are served at the same time; others wait

struct Open {
  int at = -1;
  Door::File file{-1};
  std::string path;
  pid_t owner = 0;  // the OS process that made the socket; in a fork's child, the parent
  sem_t places;     // how many more visitors can be served at the moment
  Door::Visit visit = nullptr;
};
// This object is never destroyed, because threads use it until the very end.
Open& door() noexcept {
  static Open& d = *new Open;
  return d;
}

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

int accept_at(int at) noexcept {
#if defined(__APPLE__)
  return accept(at, nullptr, nullptr);
#else
  return accept4(at, nullptr, nullptr, SOCK_CLOEXEC);
#endif
}

void* visit(void* of) {
  name_this_thread("weft look");
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(of));
  door().visit(fd);
  close(fd);
  sem_post(&door().places);
  return nullptr;
}

void* wait_at_door(void* of) {
  name_this_thread("weft door");
  const int at = static_cast<int>(reinterpret_cast<std::intptr_t>(of));
  // open_door() has noted the file before it started this thread. By now the program might have
  // closed the descriptor, and might use its number for a file of its own.
  const Door::File mine = door().file;
  while (Door::File(at) == mine) {
    const int fd = accept_at(at);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE) return nullptr;
      usleep(100'000);  // the program has used up its descriptors
      continue;
    }
    while (sem_wait(&door().places) != 0) {
    }
    if (!ours(fd) ||
        !Door::start(&visit, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)))) {
      close(fd);
      sem_post(&door().places);
    }
  }
  return nullptr;
}

void take_socket_away() {
  const Open& d = door();
  if (d.at >= 0 && d.owner == getpid()) unlink(d.path.c_str());
}

// Returns whether a program listens at this address.
bool answers(const sockaddr_un& at) noexcept {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool yes =
      connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 || errno == EAGAIN;
  close(fd);
  return yes;
}

bool open_door(Door::Visit f) {
  if (const char* const w = std::getenv("WEFT_INSPECT"); w && std::strcmp(w, "0") == 0)
    return false;
  Open& d = door();
  const std::string directory = runtime_directory() + "/weft";
  d.path = directory + "/" + std::to_string(getpid()) + ".sock";
  d.visit = f;
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (d.path.size() >= sizeof at.sun_path) return false;
  std::memcpy(at.sun_path, d.path.c_str(), d.path.size() + 1);
  struct stat is {};
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return false;
  // A directory is not used if another user owns it, or if other users have rights to it.
  if (lstat(directory.c_str(), &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != geteuid() ||
      (is.st_mode & 077) != 0)
    return false;
  if (answers(at)) return false;  // another copy of Weft in this OS process has opened the door
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  unlink(d.path.c_str());  // the socket of an earlier program with the same pid
  sem_init(&d.places, 0, kAtOnce);
  d.file = Door::File(fd);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
      chmod(d.path.c_str(), 0600) == 0 && listen(fd, 16) == 0 &&
      Door::start(&wait_at_door, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)))) {
    d.at = fd;
    d.owner = getpid();
    static const bool at_exit = std::atexit(&take_socket_away) == 0;
    static_cast<void>(at_exit);
    return true;
  }
  close(fd);
  unlink(d.path.c_str());
  return false;
}

}  // namespace

Door::File::File(int fd) noexcept {
  struct stat is {};
  if (fstat(fd, &is) == 0) device = is.st_dev, number = is.st_ino;
}

void Door::open(Visit visit) noexcept {
  if (door().at >= 0) return;
  const int error = errno;
  try {
    open_door(visit);
  } catch (...) {  // no memory is left: the program continues without a door
  }
  errno = error;
}

void Door::forget() noexcept {
  Open& d = door();
  if (d.at >= 0 && File(d.at) == d.file) close(d.at);
  d.at = -1;
}

bool Door::start(void* (*body)(void*), void* of) noexcept {
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

}  // namespace weft::inline WEFT_ABI::runtime

#else  // without Unix sockets there is no door

namespace weft::inline WEFT_ABI::runtime {
Door::File::File(int) noexcept {}
void Door::open(Visit) noexcept {}
void Door::forget() noexcept {}
bool Door::start(void* (*)(void*), void*) noexcept { return false; }
}  // namespace weft::inline WEFT_ABI::runtime
#endif
