// A link over a network whose bytes a Python event loop carries (WIRE.md 12.2, 17.13). Within its
// callbacks the loop gives the bytes that have come, and takes the bytes to go. So neither a thread
// nor a socket stands between a session and its connection.
//
//   what has come ──input()──► the session ──flush()──► the bell, if it does not know ──► the loop
//         └──turn(): TLS, too──►  │ └──────────next()──► what is to go ◄──────────────────────┘
//                                 └─the sender waits now─► send_owed() ──TLS──► the socket
//
// A thread that waits for an answer sends its frames by itself, if nothing of the session is under
// way (Direct). So no loop is woken, and the thread's own sleep is the only switch.
//
// Invariants (the space's lock)
//  1 `told_`: the loop knows that there are bytes to go, and asks until there are none. So the bell
//    rings once each time that the loop is told.
//  2 A thread that gives input asks for output by itself afterwards, unless bells of other links
//    rang meanwhile: the frames of those links were sent before (WIRE.md 4.2), so then its own bell
//    rings after theirs. For the same reason no thread sends by itself while a bell of any link has
//    not been heard. All sessions share one lock for the use of TLS, and it is taken before a bell
//    is heard.
//  3 Under the lock for TLS (and the interpreter's): `may` is false while the loop's transport
//    keeps bytes that the socket did not take, and while there is a `rest`; these bytes go first.
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
  // Gives the session the bytes that have come. True: the loop must ask for the bytes to go.
  bool input(wire::Bytes in);
  void lost(const char* why);
  // Called in a step: the number of bytes to go now, at most `most`, but one frame at least.
  std::size_t next(std::size_t most) noexcept;
  bool over() const noexcept { return peer_->session.is_over(); }
  // The bell has been heard.
  void hush() noexcept;
  // Returns a piece of the bytes to go (WIRE.md 17.13), of at most `most` bytes, or one frame. The
  // frames are whole, so the other side reads them in place. Null: nothing now, or no memory.
  PyObject* piece(std::size_t most) noexcept;

  // How a thread sends by itself. The functions are in C, so no handler of a signal runs between
  // two of them.
  struct Direct {
    Direct() = default;
    Direct(const Direct&) = delete;
    Direct& operator=(const Direct&) = delete;
    ~Direct();
    int fd = -1;
    PyObject* acquire = nullptr;    // (False) -> whether the thread has the lock now
    PyObject* release = nullptr;    // ()
    PyObject* encrypt = nullptr;    // (bytes)
    PyObject* encrypted = nullptr;  // () -> bytes
    TlsIn in;
    PyObject* rest = nullptr;  // the bytes that the socket did not take; else null
    bool may = true;
  };
  std::shared_ptr<Direct> direct;  // null: threads do not send by themselves
  std::weak_ptr<Feed> me;

  // Called on the loop's thread, which does not read by itself meanwhile. It takes what has come by
  // the socket, and sends the answer, as long as all input is whole pieces. Returns True if so;
  // False if the loop has to look at the socket; else the bytes that TLS has given until the next
  // turn, which the caller must parse, and then ask TLS again.
  PyObject* turn();

  // Has this thread said something that it must send before it waits? Asked right after that was
  // said, with the GIL, before anything else.
  static bool owes() noexcept { return owed_ != nullptr; }
  // Sends it. Returns true if a signal's handler has raised meanwhile; the exception is kept.
  static bool send_owed() noexcept;

 private:
  void flush() noexcept override;
  void ring() noexcept;
  bool send_now(Direct& by) noexcept;

  static std::atomic<std::uint32_t> rings_;    // the rings of all bells
  static std::atomic<std::uint32_t> unheard_;  // the bells that were not heard yet
  static inline constinit thread_local Feed* owed_ = nullptr;
  int bell_[2] = {-1, -1};
  bool said_over_ = false;
  std::atomic<bool> told_{false}, rung_{false};
  std::atomic<std::thread::id> feeder_{};  // the thread that gives input at the moment
};

PyObject* new_feed(std::shared_ptr<Feed> feed) noexcept;

}  // namespace weft::py
