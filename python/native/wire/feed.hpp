// A link over a network whose bytes a loop of Python's carries (WIRE.md 12.2, 17.13): within the
// loop's callbacks it gives what has come, and takes what is to go. So neither a thread nor a
// socket stands between a session and its connection.
//
//   what has come ──input()──► the session ──flush()──► the bell, if it does not know ──► the loop
//         └──turn(): TLS, too──►  │ └──────────next()──► what is to go ◄──────────────────────┘
//                                 └─who said it waits now─► send_owed() ──TLS──► the socket
//
// A thread that waits for an answer sends what it has said by itself, if nothing of the session is
// under way (Direct): so no loop is woken, and the thread's own sleep is the only switch.
//
// Invariants (the space's lock)
//  1 `told_`: the loop knows that there is something to go, and asks until there is nothing. So the
//    bell rings once for each time that it is told.
//  2 Who gives what has come asks by itself afterwards, unless bells of other links rang meanwhile:
//    what they have to say was said before (WIRE.md 4.2), so then its own bell rings behind theirs.
//    For the same reason nobody sends by itself while a bell of any link was not heard yet; and the
//    lock of who uses TLS is one for all sessions, and is taken before a bell is heard.
//  3 With the lock of who uses TLS (and the interpreter's): `may` is false while the loop's transport
//    keeps bytes that the socket did not take, and while `rest` is there, which go first.
#pragma once
#include <atomic>
#include <thread>

#include "weft/wire/link_base.hpp"
#include "wire/tls_in.hpp"

namespace weft::py {

class Feed final : public wire::LinkBase {
 public:
  // Throws BadUse if no descriptor is left.
  explicit Feed(const std::shared_ptr<wire::Space>& space);
  ~Feed();

  int bell() const noexcept { return bell_[0]; }
  // What has come. True: the loop is to ask what is to go.
  bool input(wire::Bytes in);
  void lost(const char* why);
  // In a step: how much is to go now, at most so many bytes, but one frame at least.
  std::size_t next(std::size_t most) noexcept;
  bool over() const noexcept { return peer_->session.is_over(); }
  // The bell has been heard.
  void hush() noexcept;
  // A piece of what is to go (WIRE.md 17.13), of at most so many bytes, or one frame: whole ones,
  // which the other side takes where they lie. Null: nothing now, or no memory.
  PyObject* piece(std::size_t most) noexcept;

  // How a thread sends by itself. Functions in C: no handler of a signal runs between two of them.
  struct Direct {
    Direct() = default;
    Direct(const Direct&) = delete;
    Direct& operator=(const Direct&) = delete;
    ~Direct();
    int fd = -1;
    PyObject* acquire = nullptr;    // (False) -> whether it has the lock now
    PyObject* release = nullptr;    // ()
    PyObject* encrypt = nullptr;    // (bytes)
    PyObject* encrypted = nullptr;  // () -> bytes
    TlsIn in;
    PyObject* rest = nullptr;  // what the socket did not take; else null
    bool may = true;
  };
  std::shared_ptr<Direct> direct;  // null: none
  std::weak_ptr<Feed> me;

  // On the loop's thread, which does not read itself meanwhile: takes what has come by the socket, and
  // says what is to be said to that, as long as all of it is whole pieces: True. False: the loop is
  // to look at the socket. Else what TLS has given, until the next turn: it is to be taken apart,
  // and TLS asked again.
  PyObject* turn();

  // Has this thread said something that it is to send before it waits? Right after it was said,
  // with the GIL, before anything else.
  static bool owes() noexcept { return owed_ != nullptr; }
  // Sends it. True: a signal's handler has raised meanwhile, and the exception is kept.
  static bool send_owed() noexcept;

 private:
  void flush() noexcept override;
  void ring() noexcept;
  bool send_now(Direct& by) noexcept;

  static std::atomic<std::uint32_t> rings_;    // of all
  static std::atomic<std::uint32_t> unheard_;  // bells
  static inline constinit thread_local Feed* owed_ = nullptr;
  int bell_[2] = {-1, -1};
  bool said_over_ = false;
  std::atomic<bool> told_{false}, rung_{false};
  std::atomic<std::thread::id> feeder_{};  // who gives what has come, meanwhile
};

PyObject* new_feed(std::shared_ptr<Feed> feed) noexcept;

}  // namespace weft::py
