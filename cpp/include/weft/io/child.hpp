// OS processes that this program starts, and waits for (a pidfd).
#pragma once
#include <vector>

#include "stream.hpp"

namespace weft::inline WEFT_ABI::io {

namespace detail {

struct ExitWork {
  static constexpr Side side = Side::in;
  static constexpr bool kByHint = false;
  static constexpr const char* kVerb = "wait for";
  static constexpr const char* kOperation = "wait for";
  std::shared_ptr<Watched> w;
  int status = 0;
  long error = 0;
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept;
  static std::int64_t pause_ns() noexcept { return 0; }
  int result() const {
    if (error != 0) failed(kVerb, *w, error);
    return status;
  }
};

}  // namespace detail

class Child {
 public:
  // Starts a program, found by PATH, with these arguments (the first is its name). Its standard
  // input and output are `in` and `out`. From then on these descriptors block, and belong to the
  // started program: close them in this program. In place of a Stream() the started program uses
  // this program's standard input or output. Throws std::system_error (EBADF: `in` or `out` was
  // closed); BadUse if `command` is empty.
  explicit Child(const std::vector<std::string>& command, const Stream& in = {},
                 const Stream& out = {});
  // Waits for the end of the program, and returns its exit status; minus the signal's number if a
  // signal ended it. The status can be read only once: a second call throws std::system_error
  // (ECHILD). Throws Cancelled, TimedOut; then the program continues to run.
  detail::Operation<detail::ExitWork> exited() const {
    return detail::Operation<detail::ExitWork>(detail::ExitWork{watched()});
  }
  // Sends the program a signal. Throws std::system_error.
  void signal(int number) const;
  int pid() const noexcept { return pid_; }
  const std::shared_ptr<detail::Watched>& watched() const { return detail::there(w_, "Child"); }

 private:
  int pid_ = 0;
  std::shared_ptr<detail::Watched> w_;
};

}  // namespace weft::inline WEFT_ABI::io
