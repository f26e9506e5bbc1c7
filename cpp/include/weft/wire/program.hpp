// A program started with a session (WIRE.md 12.2): the starter's side and the started one's. POSIX.
//
//   wire::Program filter(space, {"/usr/bin/env", "my-filter"});       wire::StreamLink starter = …(space, wire::inherited());
//   filter.link().give(in.reader(), "in");                            auto in = starter.reader<int>("in");
//
// With a link in shared memory (shm.hpp) it is ProgramOver<ShmLink> here and ShmLink there. The
// started program finds its socket by the environment variable WEFT_WIRE; no other descriptor of
// the starter's is passed on by this.
#pragma once
#include <sys/types.h>
#include <sys/wait.h>
#include <csignal>
#include <cstdlib>

#include "stream.hpp"

extern char** environ;

namespace weft::inline WEFT_ABI::wire {

template <class L>
class ProgramOver {
 public:
  // Starts command[0], a path, with these arguments. Throws BadUse if it cannot be started.
  ProgramOver(const std::shared_ptr<Space>& space, const std::vector<std::string>& command) {
    int ends[2];
    if (command.empty() || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
      weft::detail::bad_use("Program: no command, or no descriptor is left");
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    // All that the child needs is made before it is: between fork and exec only what a signal's
    // handler may do is allowed.
    std::vector<std::string> variables{"WEFT_WIRE=" + std::to_string(ends[1])};
    for (char** e = environ; *e; ++e)
      if (std::strncmp(*e, "WEFT_WIRE=", 10) != 0) variables.emplace_back(*e);
    std::vector<char*> arguments, environment;
    for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    for (const std::string& v : variables) environment.push_back(const_cast<char*>(v.c_str()));
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execve(arguments[0], arguments.data(), environment.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    if (pid_ < 0) {
      ::close(ends[0]);
      weft::detail::bad_use("Program: the system starts no process");
    }
    link_ = std::make_unique<L>(space, ends[0]);
  }
  ProgramOver(const ProgramOver&) = delete;
  ProgramOver& operator=(const ProgramOver&) = delete;
  // Ends the session, and waits until the program has ended, which it does by itself when it hears
  // of that.
  ~ProgramOver() {
    link_.reset();
    wait();
  }

  L& link() noexcept { return *link_; }
  pid_t pid() const noexcept { return pid_; }
  void kill(int signal = SIGKILL) const noexcept {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  // Its status, as of waitpid(2); asked again, the same.
  int wait() {
    if (pid_ > 0)
      while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  std::unique_ptr<L> link_;
};

using Program = ProgramOver<StreamLink>;

// In a program that was started so: its socket, for a link of the same kind, once. -1: it was not
// started so.
inline int inherited() {
  const char* const v = std::getenv("WEFT_WIRE");
  const int fd = v ? std::atoi(v) : -1;
  ::unsetenv("WEFT_WIRE");
  if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

}  // namespace weft::inline WEFT_ABI::wire
