// Determines whether no process of a network can run any more, in any program (WIRE.md 10.2, 10.3).
// The twin itself asks the programs, and declares the deadlock. A round asks each program whether
// at one moment no process of it can run and nothing but its links can wake one; and how many
// frames the program has queued and taken in, session by session. If in two rounds all programs
// wait, with the same counters, and each session has taken what was queued, no process will ever
// run again. The questions are not sent over the sessions, so they change no counter.
#pragma once
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <weft/weft.hpp>
#include <weft/wire/space.hpp>

namespace twin {

namespace w = weft::wire;

struct Answer {
  struct Session {
    std::uint64_t theirs;
    std::uint32_t sent, received;
    bool operator==(const Session&) const = default;
  };
  std::uint64_t mine = 0;
  bool waits = false;
  std::uint32_t n = 0;
  std::array<Session, 4> sessions{};
  bool operator==(const Answer&) const = default;
};

// The run and the sessions of this program, about which the rounds ask.
class Standing {
 public:
  explicit Standing(std::shared_ptr<w::Space> s) : space_(std::move(s)) {
    // From here on a run that waits only for links can be ended by a deadlock that is declared.
    weft::runtime::links_are_asked = true;
  }
  class Going {
   public:
    Going(Standing* s, weft::runtime::Run* r) : to_(s) {
      if (to_) to_->set(r);
    }
    Going(Going&& o) noexcept : to_(std::exchange(o.to_, nullptr)) {}
    Going& operator=(Going&&) = delete;
    ~Going() {
      if (to_) to_->set(nullptr);
    }

   private:
    Standing* to_;
  };
  // Answers for this program. `begun` is false before the run, when the question is only about the
  // program's sessions.
  Answer answer(bool begun = true) {
    Answer a;
    // A step delivers the outcomes of meetings in this program that have not been delivered yet.
    { const w::Space::Step step(*space_); }
    {
      const std::lock_guard l(lock_);
      a.waits = !begun || (run_ && run_->waits_for_links());
    }
    const w::Space::Step step(*space_);
    a.mine = space_->greeting().incarnation;
    for (const w::Peer* p : space_->peers()) {
      a.waits = a.waits && p->session.state() == w::Session::State::open && a.n < a.sessions.size();
      if (!a.waits) return a;
      a.sessions[a.n++] = {p->session.theirs().incarnation, p->session.sent(),
                           p->session.received()};
    }
    return a;
  }
  void declare() {
    const std::lock_guard l(lock_);
    if (run_) run_->declare("deadlock: all programs wait", {});
  }

 private:
  void set(weft::runtime::Run* r) {
    const std::lock_guard l(lock_);
    run_ = r;
  }
  const std::shared_ptr<w::Space> space_;
  std::mutex lock_;
  weft::runtime::Run* run_ = nullptr;  // protected by the lock
};

// A message to the other programs, sent outside the sessions. `abandoned` is -1 for a question, or
// else the number of a process that has not been started and never will be.
struct Asked {
  int abandoned = -1;
};

// Answers the questions of program 0 until there are no more. Called in the other programs.
template <class Abandon>
void answer_all(Standing& s, int socket, Abandon abandon) {
  for (Asked q; ::read(socket, &q, sizeof q) == sizeof q;) {
    if (q.abandoned >= 0) {
      abandon(q.abandoned);
      continue;
    }
    const Answer a = s.answer();
    if (::write(socket, &a, sizeof a) != sizeof a) break;
  }
}

// The rounds, which program 0 begins.
class Rounds {
 public:
  Rounds(Standing& s, std::vector<int> sockets) : mine_(s), sockets_(std::move(sockets)) {}
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds() { stop(); }

  // Waits until all ends are in place before the network begins.
  void settle() {
    while (!all_wait(false)) std::this_thread::sleep_for(kAgain);
  }
  // Begins the rounds that declare a deadlock.
  void begin() {
    thread_ = std::thread([this] {
      while (!stopped_) {
        std::this_thread::sleep_for(kAgain);
        if (all_wait(true)) mine_.declare();
      }
    });
  }
  void stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  // The time between two rounds. Nothing notifies program 0 when the other programs begin to wait,
  // so program 0 asks them.
  static constexpr std::chrono::milliseconds kAgain{2};

  bool all_wait(bool begun) {
    const auto first = round(begun);
    return first && still(*first) && first == round(begun);
  }
  std::optional<std::vector<Answer>> round(bool begun) {
    std::vector<Answer> all{mine_.answer(begun)};
    for (const int s : sockets_) {
      const Asked q;
      Answer a;
      if (::write(s, &q, sizeof q) != sizeof q || ::read(s, &a, sizeof a) != sizeof a) return {};
      all.push_back(a);
    }
    return all;
  }
  static bool still(const std::vector<Answer>& all) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> sent, received;
    for (const Answer& a : all) {
      if (!a.waits) return false;
      for (std::uint32_t i = 0; i < a.n; ++i) {
        sent[{a.mine, a.sessions[i].theirs}] += a.sessions[i].sent;
        received[{a.sessions[i].theirs, a.mine}] += a.sessions[i].received;
      }
    }
    return sent == received;
  }
  Standing& mine_;
  const std::vector<int> sockets_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace twin
