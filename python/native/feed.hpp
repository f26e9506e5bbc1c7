// A link over a network whose bytes a loop of Python's carries (WIRE.md 12.2, 17.13): within the
// loop's callbacks it gives what has come, and takes what is to go. So neither a thread nor a
// socket stands between a session and its connection.
//
//   what has come ──input()──► the session ──flush()──► the bell, if it does not know ──► the loop
//                                 └────────────next()──► what is to go ◄──────────────────────┘
//
// Invariants (the space's lock)
//  1 `told_`: the loop knows that there is something to go, and asks until there is nothing. So the
//    bell rings once for each time that it is told.
//  2 Who gives what has come asks by itself afterwards, unless bells of other links rang meanwhile:
//    what they have to say was said before (WIRE.md 4.2), so then its own bell rings behind theirs.
#pragma once
#include <atomic>
#include <thread>

#include "native.hpp"
#include "weft/wire/joint.hpp"

namespace weft::py {

class Feed final : public wire::Joint {
 public:
  // Throws BadUse if no descriptor is left.
  explicit Feed(const std::shared_ptr<wire::Space>& space);
  ~Feed();

  int bell() const noexcept { return bell_[0]; }
  // What has come. True: the loop is to ask what is to go.
  bool input(wire::Bytes in);
  void lost(const char* why);
  // In a step: what is to go now, at most so many bytes; and they have gone.
  wire::Bytes next(std::size_t most) noexcept;
  void went(std::size_t n) { peer_->session.went(n); }
  bool over() const noexcept { return peer_->session.is_over(); }
  // The bell has been heard.
  void hush() noexcept;

 private:
  void flush() noexcept override;
  void ring() noexcept;

  static std::atomic<std::uint32_t> rings_;  // of all
  int bell_[2] = {-1, -1};
  bool said_over_ = false;
  std::atomic<bool> told_{false}, rung_{false};
  std::atomic<std::thread::id> feeder_{};  // who gives what has come, meanwhile
};

PyObject* new_feed(std::shared_ptr<Feed> feed) noexcept;
int init_feed(PyObject* m);

}  // namespace weft::py
