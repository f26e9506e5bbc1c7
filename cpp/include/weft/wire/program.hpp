// A program that is started with a session (WIRE-LINKS.md 12.2). This file contains the starter's
// side and the started program's side, and needs POSIX.
//
//   wire::Program filter(space, {"/usr/bin/env", "my-filter"});       wire::StreamLink starter = …(space, wire::inherited());
//   filter.link().give(in.reader(), "in");                            auto in = starter.reader<int>("in");
//
// With a link in shared memory (shm.hpp) the starter uses ProgramOver<ShmLink>, and the started
// program ShmLink. The started program finds its socket in the environment variable WEFT_WIRE. This
// class passes no other descriptor of the starter to the program.
//
//   started ──it ends: how_ended(), wait()──► a zombie, with its status ──wait()──► gone: status_
#pragma once
#include <spawn.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../runtime/partial.hpp"
#include "stream.hpp"

extern char** environ;

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// The started program: its OS process, and how that OS process has ended. This object exists as
// long as anything may ask why the session has ended.
//
// The lock protects pid_ and status_: once the status has been taken, the system may give the pid
// to another OS process. No thread waits while it holds the lock.
class Started final : public Fate {
 public:
  // Starts the program. Throws BadUse if it cannot be started. The text of the error contains the
  // path and the system's reason.
  Started(const std::vector<std::string>& command, int socket) : name_(command[0]) {
    if (std::any_of(command.begin(), command.end(),
                    [](const std::string& a) { return a.find('\0') != std::string::npos; }))
      weft::detail::bad_use(
          "Program: the command has a zero byte in it, at which it would end: take the byte out");
    std::vector<std::string> variables{"WEFT_WIRE=" + std::to_string(socket)};
    for (char** e = environ; *e; ++e)
      if (std::strncmp(*e, "WEFT_WIRE=", 10) != 0) variables.emplace_back(*e);
    std::vector<char*> arguments, environment;
    for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    for (const std::string& v : variables) environment.push_back(const_cast<char*>(v.c_str()));
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    // The socket stays open only in the new OS process, because it is duplicated onto itself there.
    posix_spawn_file_actions_t actions;
    int wrong = ::posix_spawn_file_actions_init(&actions);
    if (wrong == 0) {
      wrong = ::posix_spawn_file_actions_adddup2(&actions, socket, socket);
      if (wrong == 0)
        wrong = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(),
                              environment.data());
      ::posix_spawn_file_actions_destroy(&actions);
    }
    if (wrong == 0) return;
    pid_ = -1;
    weft::detail::bad_use("Program: '" + name_ + "' cannot be started: " + std::strerror(wrong) +
                          hint(wrong));
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() override { wait_and_tell(); }

  pid_t pid() const noexcept {
    const std::lock_guard g(lock_);
    return pid_;
  }
  void kill(int signal) const noexcept {
    const std::lock_guard g(lock_);
    if (pid_ > 0) ::kill(pid_, signal);
  }
  int wait() noexcept {
    for (siginfo_t s; ::waitid(P_PID, id(), &s, WEXITED | WNOWAIT) < 0 && errno == EINTR;) {
    }
    return take();
  }
  // Waits for at most `most`. Returns whether the program has ended. The function checks
  // repeatedly, since waitid() takes no time limit.
  bool ends_within(std::chrono::nanoseconds most) const noexcept {
    using clock = std::chrono::steady_clock;
    const auto until = clock::now() + most;
    for (std::chrono::nanoseconds nap = std::chrono::microseconds(50);;
         nap = std::min<std::chrono::nanoseconds>(nap * 2, std::chrono::milliseconds(20))) {
      if (!is(WEXITED)) {
        const auto left = until - clock::now();
        if (left.count() <= 0) return false;
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(nap, left));
        continue;
      }
      return true;
    }
  }
  // Waits until the program has ended. The program should end by itself, since its session has
  // ended; if it does not, a line on stderr names the program.
  void wait_and_tell() noexcept {
    const std::chrono::nanoseconds patience(runtime::patience().load(std::memory_order_relaxed));
    if (patience.count() > 0 && !ends_within(patience))
      std::fprintf(stderr,
                   "weft: ~Program waits for '%s' (process %d), which goes on although its session "
                   "has ended%s: kill() it before, or have it end with its session\n",
                   name_.c_str(), static_cast<int>(pid()),
                   is(WSTOPPED) ? "; it is stopped (SIGSTOP)" : "");
    static_cast<void>(wait());
  }

  // Returns how the program has ended, as text for people. Waits up to 50 ms for the program's end,
  // because a program that ends closes its socket just before the system knows its status.
  std::string text() noexcept override {
    if (!ends_within(std::chrono::milliseconds(50))) return {};
    const std::string it = "; '" + name_ + "' ";
    const int s = take();
    if (s == kUnknown) return it + "has ended";
    if (WIFSIGNALED(s))
      return it + "was ended by signal " + std::to_string(WTERMSIG(s)) + ", " +
             ::strsignal(WTERMSIG(s));
    return it + "has ended with status " + std::to_string(WEXITSTATUS(s));
  }

 private:
  static constexpr int kUnknown = -1;
  const char* hint(int wrong) const noexcept {
    struct stat at {};
    const bool there = ::stat(name_.c_str(), &at) == 0;
    if (wrong == ENOENT && there) return " (its interpreter, after the #!, is not there)";
    if (wrong == ENOENT && name_.find('/') == std::string::npos)
      return " (this is a path: PATH is not searched; \"/usr/bin/env\" does so)";
    if (wrong == ENOEXEC) return " (it is not a program for this machine; a script begins with #!)";
    if (wrong == EACCES && there && S_ISDIR(at.st_mode)) return " (it is a directory)";
    return "";
  }
  id_t id() const noexcept {
    const std::lock_guard g(lock_);
    return static_cast<id_t>(pid_);
  }
  // Returns whether the program is in this state: WEXITED (it has ended) or WSTOPPED.
  bool is(int state) const noexcept {
    const std::lock_guard g(lock_);
    siginfo_t s{};
    if (pid_ <= 0) return state == WEXITED;
    const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &s, state | WNOHANG | WNOWAIT);
    return found == 0 ? s.si_pid == pid_ : errno == ECHILD && state == WEXITED;
  }
  // Collects the exit status of the program, which has ended.
  int take() noexcept {
    const std::lock_guard g(lock_);
    if (pid_ > 0)
      while (::waitpid(pid_, &status_, 0) < 0)
        if (errno != EINTR) {
          status_ = kUnknown;
          break;
        }
    pid_ = -1;
    return status_;
  }

  const std::string name_;
  mutable std::mutex lock_;
  pid_t pid_ = -1;
  int status_ = kUnknown;
};

}  // namespace detail

template <class L>
class ProgramOver {
 public:
  // Starts the program at the path command[0] with these arguments. Throws BadUse if the program
  // cannot be started; the text of the error contains the path and the reason.
  ProgramOver(const std::shared_ptr<Space>& space, const std::vector<std::string>& command) {
    if (command.empty())
      weft::detail::bad_use(
          "Program: the command is empty: give the path of a program, and its arguments");
    // The descriptors must not be passed to a program that another thread starts meanwhile, since
    // that program would keep the session from ending.
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      weft::detail::bad_use(std::string("Program: no socket: ") + std::strerror(errno));
    try {
      program_ = std::make_shared<detail::Started>(command, ends[1]);
    } catch (...) {
      for (const int fd : ends) ::close(fd);
      throw;
    }
    ::close(ends[1]);
    link_ = std::make_unique<L>(space, ends[0]);
    if constexpr (requires { link_->tells_of(program_); }) link_->tells_of(program_);
  }
  ProgramOver(const ProgramOver&) = delete;
  ProgramOver& operator=(const ProgramOver&) = delete;
  // Ends the session, and waits until the program has ended. The program should end by itself once
  // it knows of the session's end. If it does not within the time of a standstill (rule 10.6), a
  // line on stderr names the program.
  ~ProgramOver() {
    link_.reset();
    program_->wait_and_tell();
  }

  L& link() noexcept { return *link_; }
  // Returns the id of the OS process; -1 once its status has been taken.
  pid_t pid() const noexcept { return program_->pid(); }
  void kill(int signal = SIGKILL) const noexcept { program_->kill(signal); }
  // Waits until the program has ended. Returns its status, as waitpid(2) gives it; further calls
  // return the same status. -1 means that the status is not known (this program ignores SIGCHLD, or
  // other code has taken the status).
  int wait() { return program_->wait(); }

 private:
  std::shared_ptr<detail::Started> program_;
  std::unique_ptr<L> link_;
};

using Program = ProgramOver<StreamLink>;

// Called in a program that was started with a session: returns its socket, for a link of the same
// kind. inherited() can be called once. Returns -1 if the program was not started with a session.
// Throws BadUse if the variable does not name an open descriptor.
inline int inherited() {
  const char* const v = std::getenv("WEFT_WIRE");
  if (!v) return -1;
  const std::string said = v;
  ::unsetenv("WEFT_WIRE");
  char* rest = nullptr;
  errno = 0;
  const long fd = std::strtol(said.c_str(), &rest, 10);
  if (said.empty() || *rest != '\0' || errno != 0 || fd < 0 || fd > 0x7FFFFFFF ||
      ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC) != 0)
    weft::detail::bad_use(
        "inherited: WEFT_WIRE is '" + said +
        "', which is not the number of a descriptor that is open here: if another "
        "program starts this one, it must pass the descriptor on");
  return static_cast<int>(fd);
}

}  // namespace weft::inline WEFT_ABI::wire
