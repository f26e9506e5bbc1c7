// A link over a network whose bytes a Python event loop carries (wire 12.2, 17.13). Within the
// loop's callbacks received bytes are delivered, and the bytes to send are fetched. So there is
// neither a thread nor a socket between a session and its connection.
//
//   bytes received ──input()──► the session ──flush()──► the bell, if the loop does not know ──► the loop
//         └──turn(): TLS, too──►   │ └──────────next()──► bytes to send ◄─────────────────────────────┘
//                                  └─the sender waits now─► send_owed() ──TLS──► the socket
//
// A thread that waits for an answer sends its own frames (Direct), if nothing else of the session
// is under way. Then no loop is woken, and the thread's sleep is the only thread switch.
//
// Invariants (the space's lock)
//  1 `told_`: the loop knows that there are bytes to send, and asks for bytes until there are none.
//    So the bell rings once each time new bytes are to be sent.
//  2 A thread that gives input afterwards asks for output itself, unless bells of other links have
//    rung meanwhile. The frames of those links were queued first (WIRE.md 4.2), so the bell of the
//    thread's own link then rings after their bells. For the same reason no thread sends its own
//    frames while a bell of any link has not been heard. All sessions share one lock for the use of
//    TLS, and this lock is taken before a bell is heard.
//  3 Under the lock for TLS (and the interpreter's): `may` is false while the loop's transport
//    keeps bytes that the socket did not take, or there is a `rest`; these bytes are sent first.
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
  // Passes received bytes to the session. Returns true if the loop must ask for bytes to send.
  bool input(wire::Bytes in);
  void lost(const char* why);
  // Called in a step. Returns the number of bytes to send now: at most `most`, but at least one
  // frame.
  std::size_t next(std::size_t most) noexcept;
  bool over() const noexcept { return peer_->session.is_over(); }
  // Called when the loop has noticed the bell.
  void hush() noexcept;
  // Returns the next piece to send (WIRE-NETWORKS.md 17.13): whole frames, which the peer can read
  // in place, of at most `most` bytes together, but at least one frame. Returns null if there is
  // nothing to send now, or no memory.
  PyObject* piece(std::size_t most) noexcept;

  // The objects with which a thread sends its own frames. Their functions are written in C, so no
  // signal handler runs between two of them.
  struct Direct {
    Direct() = default;
    Direct(const Direct&) = delete;
    Direct& operator=(const Direct&) = delete;
    ~Direct();
    int fd = -1;
    PyObject* acquire = nullptr;    // (False) -> whether the thread has taken the lock
    PyObject* release = nullptr;    // ()
    PyObject* encrypt = nullptr;    // (bytes)
    PyObject* encrypted = nullptr;  // () -> bytes
    TlsIn in;
    PyObject* rest = nullptr;  // the bytes that the socket did not accept, or null
    bool may = true;
  };
  std::shared_ptr<Direct> direct;  // null if threads do not send their own frames
  std::weak_ptr<Feed> me;

  // Called on the loop's thread, whose transport does not read meanwhile. Reads from the socket,
  // and sends the answers, as long as all input is whole pieces. Returns True if that succeeded;
  // False if the loop must check the socket; otherwise the bytes that TLS has decrypted up to the
  // next turn: the caller must parse those, and then ask TLS again.
  PyObject* turn();

  // Returns whether this thread has frames that it must send before it waits. This function must be
  // called with the GIL directly after the frames were queued.
  static bool owes() noexcept { return owed_ != nullptr; }
  // Sends the frames that this thread owes. Returns true if a signal handler has raised an
  // exception meanwhile, which is kept.
  static bool send_owed() noexcept;

 private:
  void flush() noexcept override;
  void ring() noexcept;
  bool send_now(Direct& by) noexcept;

  static std::atomic<std::uint32_t> rings_;    // how often any bell has rung
  static std::atomic<std::uint32_t> unheard_;  // how many bells have rung without having been
                                               // noticed
  static inline constinit thread_local Feed* owed_ = nullptr;
  int bell_[2] = {-1, -1};
  bool said_over_ = false;
  std::atomic<bool> told_{false}, rung_{false};
  std::atomic<std::thread::id> feeder_{};  // the thread that is giving input
};

PyObject* new_feed(std::shared_ptr<Feed> feed) noexcept;

}  // namespace weft::py
