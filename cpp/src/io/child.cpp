// The definitions of io/child.hpp.
#include <weft/io/child.hpp>

#if defined(__linux__)
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

extern char** environ;

namespace weft::inline WEFT_ABI::io {

namespace {

constexpr int kPidfd = 3;  // P_PIDFD

struct Actions {
  posix_spawn_file_actions_t a;
  posix_spawnattr_t attributes;
  Actions() {
    posix_spawn_file_actions_init(&a);
    posix_spawnattr_init(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() {
    posix_spawn_file_actions_destroy(&a);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

Child::Child(const std::vector<std::string>& command, const Stream& in, const Stream& out) {
  if (command.empty()) weft::detail::bad_use("weft::io::Child: the command has no words");
  for (const Stream* const s : {&in, &out})
    if (s->fd() >= 0 && !*s) detail::failed("give a program", *s->watched(), EBADF);
  std::vector<char*> words;
  for (const std::string& w : command) words.push_back(const_cast<char*>(w.c_str()));
  words.push_back(nullptr);
  // Programs expect descriptors that block, and the child shares these with this program.
  for (const Stream* const s : {&in, &out})
    if (*s) fcntl(s->fd(), F_SETFL, fcntl(s->fd(), F_GETFL) & ~O_NONBLOCK);
  Actions actions;
  if (in) posix_spawn_file_actions_adddup2(&actions.a, in.fd(), 0);
  if (out) posix_spawn_file_actions_adddup2(&actions.a, out.fd(), 1);
  // The child begins with no signal blocked, as if a shell had started it.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETSIGMASK);
  const int error =
      posix_spawnp(&pid_, words[0], &actions.a, &actions.attributes, words.data(), environ);
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "weft::io: start " + command[0]);
  const long fd = syscall(SYS_pidfd_open, pid_, 0);
  if (fd < 0) {
    const int e = errno;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    throw std::system_error(e, std::generic_category(), "weft::io: pidfd_open (needs Linux 5.3)");
  }
  w_ = detail::Watched::owned(static_cast<int>(fd), false, false);
}

void Child::signal(int number) const {
  if (syscall(SYS_pidfd_send_signal, watched()->fd(), number, nullptr, 0) != 0)
    detail::failed("send a signal to", *w_, errno);
}

detail::Tried detail::ExitWork::attempt() noexcept {
  siginfo_t i{};
  if (waitid(static_cast<idtype_t>(kPidfd), static_cast<id_t>(w->fd()), &i, WEXITED | WNOHANG) !=
      0) {
    if (errno == EINTR) return attempt();
    error = errno;
    return Tried::over;
  }
  if (i.si_pid == 0) return Tried::would_block;
  status = i.si_code == CLD_EXITED ? i.si_status : -i.si_status;
  return Tried::over;
}

}  // namespace weft::inline WEFT_ABI::io
#endif
