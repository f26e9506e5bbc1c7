// The definitions of io/operation.hpp.
#include <weft/io/operation.hpp>

#if defined(__linux__)
#include <poll.h>

#include <cerrno>

namespace weft::inline WEFT_ABI::io::detail {

bool Waiting::begin(runtime::ProcessBase& p, Watched& w, Side s, bool by_hint,
                    const runtime::OpKind& kind) {
  // These members are set first, because from wait() on another thread can wake the process.
  p.place = static_cast<weft::detail::Sleep*>(this);
  watched_ = &w;
  side_ = s;
  pauses_ = false;
  runtime::Run& run = weft::detail::run_of(p);
  p.op = &kind;
  run.enter_outside();
  bool waits = false;
  try {
    waits = w.wait(p, s, Engine::known(p), by_hint);
  } catch (...) {
    run.leave_outside();
    p.op = nullptr;
    throw;
  }
  if (waits) return true;
  run.leave_outside();
  p.op = nullptr;
  return false;
}

void Waiting::pause(runtime::ProcessBase& p, std::int64_t ns) {
  pauses_ = true;
  runtime::Run& run = weft::detail::run_of(p);
  weft::detail::Sleep::begin(p, runtime::later(run.now(), ns));
  p.place = static_cast<weft::detail::Sleep*>(this);
  p.op = &weft::detail::Sleep::kind;
}

bool Waiting::end(runtime::ProcessBase& p) noexcept {
  p.op = nullptr;
  runtime::Run& run = weft::detail::run_of(p);
  if (pauses_) {
    run.disarm(timer);
    return choice.word() == core::CANCELLED;
  }
  watched_->leave(p, side_);
  run.leave_outside();
  return p.status == Status::cancelled;
}

bool Waiting::withdraw(runtime::ProcessBase& p) noexcept {
  Waiting& w = of(p);
  if (!w.watched_->withdraw(p, w.side_)) return false;
  p.status = Status::cancelled;
  return true;
}
void Waiting::visit(runtime::ProcessBase&, runtime::WaitVisitor& v) { v.timed(); }
void Waiting::undecided(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
  if (of(p).watched_->waits(p)) visit(p, v);
}

bool is_ready(Watched& w, Side s) noexcept {
  if (w.closed() || (s == Side::in && w.kept())) return true;
  pollfd x{w.fd(), static_cast<short>(s == Side::in ? POLLIN : POLLOUT), 0};
  int n = 0;
  do n = poll(&x, 1, 0);
  while (n < 0 && errno == EINTR);
  return n != 0;  // also if poll() fails: the operation that follows reports the error
}

namespace {

Watched::Direction& direction(const core::Guard& g) noexcept {
  return *static_cast<Watched::Direction*>(g.where);
}
// Returns the process that selects. Code that drops a select might run in another process, or in
// none.
runtime::ProcessBase& chooser(const core::Guard& g) noexcept {
  return *static_cast<runtime::ProcessBase*>(g.node.choice_->waker);
}

}  // namespace

const core::GuardOps ready_ops{
    [](core::Guard& g) noexcept {
      Watched::Direction& d = direction(g);
      return is_ready(*d.of, d.side) ? core::Attempt::committed : core::Attempt::not_ready;
    },
    [](core::Guard& g) noexcept {
      Watched::Direction& d = direction(g);
      runtime::ProcessBase& p = chooser(g);
      weft::detail::run_of(p).enter_outside();
      return d.of->enrol(g, d.side, Engine::known(p));
    },
    [](core::Guard& g) noexcept {
      Watched::Direction& d = direction(g);
      d.of->leave(g.node, d.side);
      weft::detail::run_of(chooser(g)).leave_outside();
    },
    [](core::Guard& g) noexcept {
      Watched::Direction& d = direction(g);
      return is_ready(*d.of, d.side) ? core::State::ready : core::State::blocked;
    },
    nullptr,
    [](core::Guard&) noexcept { return false; },
    [](core::Guard&, bool) noexcept {},
    [](core::Guard&) noexcept {},
};

}  // namespace weft::inline WEFT_ABI::io::detail
#endif
