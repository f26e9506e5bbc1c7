// Named meeting points, for programs of one user that were not started together (WIRE-LINKS.md
// 12.3). This file needs POSIX.
//
//   wire::Meeting point(space, "orders");                      auto link = wire::meet(space, "orders");
//   auto link = point.next();                                  auto in = link->reader<Order>("in");
//   link->give(in.reader(), "in");
//
// A point is a Unix socket in a directory that belongs to the user and that no other user may
// enter: $XDG_RUNTIME_DIR/weft, or /tmp/weft-UID. Both sides ask the system which user the other
// program belongs to (SO_PEERCRED), and refuse another user. Beside the socket lies a lock file,
// which is locked as long as the point exists. If the file is not locked, the program that had the
// name was killed, and another program may use the name.
#pragma once
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "descriptor.hpp"
#include "stream.hpp"

namespace weft::inline WEFT_ABI::wire {

struct MeetingOptions {
  // The directory of the point. If it is empty, the user's own directory is used, and made if
  // needed; any other directory must exist.
  std::string directory;
  bool other_users = false;  // whether any user who may enter the directory may connect
};

namespace detail {

[[noreturn]] inline void no_meeting(const std::string& name, const std::string& why) {
  weft::detail::bad_use("the meeting point '" + name + "': " + why);
}

// Returns the path of the socket. Throws BadUse if the name or the directory is not usable.
inline std::string meeting_path(const std::string& name, const MeetingOptions& o) {
  if (name.empty() || name.size() > 60 || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos || name[0] == '.')
    no_meeting(name, "a name has 1 to 60 bytes, no slash, no zero, and does not begin with a dot");
  std::string directory = o.directory;
  if (directory.empty()) {
    const char* const run = std::getenv("XDG_RUNTIME_DIR");
    directory =
        run && *run ? std::string(run) + "/weft" : "/tmp/weft-" + std::to_string(::getuid());
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
      no_meeting(name, "its directory " + directory + " cannot be made (" + std::strerror(errno) +
                           "): give MeetingOptions::directory");
  }
  struct stat s;
  if (::lstat(directory.c_str(), &s) != 0 || !S_ISDIR(s.st_mode))
    no_meeting(name, directory + " is not a directory");
  if (!o.other_users && (s.st_uid != ::getuid() || (s.st_mode & 077) != 0))
    no_meeting(name, "other users may enter its directory " + directory +
                         ": make it your own, with chmod 700, or set other_users");
  const std::string path = directory + "/" + name;
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    no_meeting(name,
               "the path " + path + " is too long for a Unix socket: choose a shorter directory");
  return path;
}
inline sockaddr_un address_of(const std::string& path) noexcept {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::memcpy(a.sun_path, path.c_str(), path.size());
  return a;
}
inline Descriptor unix_socket(const std::string& name) {
  Descriptor s(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (s.get() < 0) no_meeting(name, std::string("no socket: ") + std::strerror(errno));
  return s;
}
// Returns whether the program at the other end belongs to the same user.
inline bool same_user(int socket) noexcept {
  ucred c{};
  socklen_t size = sizeof(c);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &c, &size) == 0 && c.uid == ::getuid();
}

}  // namespace detail

class Meeting {
 public:
  // Opens the point. Throws BadUse if the name is taken or the directory is not usable; the text of
  // the error says what to do.
  Meeting(std::shared_ptr<Space> space, std::string name, const MeetingOptions& o = {})
      : space_(std::move(space)),
        name_(std::move(name)),
        options_(o),
        path_(detail::meeting_path(name_, o)) {
    take_lock();
    socket_ = detail::unix_socket(name_);
    struct stat s;
    if (::lstat(path_.c_str(), &s) == 0) {
      if (!S_ISSOCK(s.st_mode))
        give_up(path_ + " is there and is not a socket: remove it, or choose another name");
      // The lock was free, so the program that left the socket there is dead.
      ::unlink(path_.c_str());
    }
    const sockaddr_un a = detail::address_of(path_);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&a), sizeof(a)) != 0 ||
        ::chmod(path_.c_str(), o.other_users ? 0666 : 0600) != 0 ||
        ::listen(socket_.get(), 64) != 0 || ::pipe2(bell_, O_CLOEXEC | O_NONBLOCK) != 0)
      give_up(path_ + " cannot be opened: " + std::strerror(errno));
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  // Frees the name. Existing sessions continue.
  ~Meeting() {
    if (bell_[0] < 0) return;
    ::unlink(path_.c_str());
    ::unlink(
        // The file is removed while it is locked, so that a program that has opened it meanwhile
        // notices.
        lock_path().c_str());
    for (const int fd : bell_) ::close(fd);
  }

  // Waits for the next program that connects. A program of another user is refused, and on_refused
  // is called. Returns null after close(). Called by one thread at a time. The hand-shake is left
  // to link->greeted(), so a program that sends nothing does not delay the programs that connect
  // after it.
  std::unique_ptr<StreamLink> next() {
    const Outside waiting;
    for (;;) {
      pollfd fds[] = {{socket_.get(), POLLIN, 0}, {bell_[0], POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents) return nullptr;
      Descriptor s(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (s.get() < 0) {
        if (errno == EMFILE || errno == ENFILE)
          detail::no_meeting(
              name_, "no descriptor is left for a new session: close some, or raise the limit");
        continue;  // The program has closed the connection again.
      }
      if (!options_.other_users && !detail::same_user(s.get())) {
        refused("a program of another user tried to connect");
        continue;
      }
      return std::make_unique<StreamLink>(space_, s.release());
    }
  }
  // Makes next() return. Can be called from any thread.
  void close() noexcept {
    const char one = 1;
    if (::write(bell_[1], &one, 1) < 0) return;  // The thread has been notified already.
  }
  const std::string& path() const noexcept { return path_; }
  // Called for each program that was refused, by the thread that is in next().
  void (*on_refused)(const std::string& why) = nullptr;

 private:
  // Acquires the lock. The holder of the lock has the name if the locked file is still the file at
  // the path: a program that releases the name removes the file before it frees the lock.
  void take_lock() {
    for (;;) {
      lock_ =
          Descriptor(::open(lock_path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (lock_.get() < 0)
        detail::no_meeting(name_, lock_path() + " cannot be opened: " + std::strerror(errno));
      const bool locked = ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0;
      struct stat mine, there;
      if (::fstat(lock_.get(), &mine) != 0 || ::lstat(lock_path().c_str(), &there) != 0 ||
          mine.st_dev != there.st_dev || mine.st_ino != there.st_ino)
        continue;
      if (locked) return;
      detail::no_meeting(
          name_, "the name is taken by a program that runs: choose another, or end that one");
    }
  }
  std::string lock_path() const { return path_ + ".lock"; }
  // Called with the lock held. No other program can connect any more.
  [[noreturn]] void give_up(const std::string& why) const {
    ::unlink(lock_path().c_str());
    detail::no_meeting(name_, why);
  }
  void refused(const std::string& why) const {
    if (on_refused) on_refused(why);
  }

  const std::shared_ptr<Space> space_;
  const std::string name_;
  const MeetingOptions options_;
  const std::string path_;
  Descriptor lock_, socket_;
  int bell_[2] = {-1, -1};
  // While the point is open, a program can connect and wake a run (rule 10.3).
  const Outside outside_{Outside::due};
};

// Makes a session with the program that has opened this point, and waits until that program has
// accepted the session. Throws BadUse if no program has opened the point, the program belongs to
// another user, or the two programs have no version of the protocol in common.
inline std::unique_ptr<StreamLink> meet(const std::shared_ptr<Space>& space,
                                        const std::string& name, const MeetingOptions& o = {}) {
  const std::string path = detail::meeting_path(name, o);
  Descriptor s = detail::unix_socket(name);
  const sockaddr_un a = detail::address_of(path);
  while (::connect(s.get(), reinterpret_cast<const sockaddr*>(&a), sizeof(a)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOENT || errno == ECONNREFUSED)
      detail::no_meeting(name, "no program has opened it (" + path + "): start that first");
    detail::no_meeting(name, path + ": " + std::strerror(errno));
  }
  if (!o.other_users && !detail::same_user(s.get()))
    detail::no_meeting(name, "it was opened by another user: set other_users if that is intended");
  auto link = std::make_unique<StreamLink>(space, s.release());
  if (const std::string why = link->greeted(); !why.empty()) detail::no_meeting(name, why);
  return link;
}

}  // namespace weft::inline WEFT_ABI::wire
