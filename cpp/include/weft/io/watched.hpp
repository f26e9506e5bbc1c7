// A descriptor, and the processes that wait for it (rules 18.1 to 18.4).
//
//   wait() ──► in the waiting queue of its side ──the engine: came()──► woken, and tries again
//                          └──leave(): cancelled, a lost select, woken──► no longer in the queue
//
// A descriptor is registered with at most one engine, its *home*, whose executor sleeps for it.
//
// Invariants
//  1 One lock for the whole program, `book()`, protects all state here. Code that holds the lock
//    neither waits nor wakes. Only `hint` is also changed without the lock; `hint`, `short`,
//    `closed` and `kept` are also read without it.
//  2 While processes wait for a descriptor, its home is the engine of one of them, and the others
//    are woken from there. So an executor that runs no waiting process need not poll.
//  3 `hint` is false only if a read is in progress, or the last read found nothing more; and if the
//    kernel has reported nothing since. A process that reads sets `hint` to false before the read,
//    so no report is missed.
//  4 A descriptor that Weft owns is closed when the last operation on it has ended. So its number
//    cannot belong to another file before.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "../ended.hpp"

namespace weft::inline WEFT_ABI::io::detail {

class Engine;

enum class Side : std::uint8_t { in, out };

class Watched {
 public:
  // One side of a descriptor: a place where processes wait.
  struct Direction : core::SyncObject {
    Watched* of = nullptr;
    Side side = Side::in;
    core::Queue waiting;
  };

  // Returns the object of a descriptor that Weft owns and closes; the descriptor must not block.
  // `tcp` says that a read that returns less than was requested has emptied the descriptor, except
  // before urgent data. (For other descriptors this does not hold: a read of a Unix socket ends
  // where a descriptor was sent along, and a read of a pipe in packet mode ends with the packet.)
  // `socket` says that send() and recv() work.
  static std::shared_ptr<Watched> owned(int fd, bool tcp, bool socket);
  // Returns the object of any other descriptor. All processes that wait for one number at the same
  // time share one object.
  static std::shared_ptr<Watched> of(int fd);
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched();

  int fd() const noexcept { return fd_; }
  bool is_socket() const noexcept { return socket_; }
  bool is_tcp() const noexcept { return tcp_; }
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  const std::string& name() const noexcept { return name_; }
  Direction& side(Side s) noexcept { return s == Side::in ? in_ : out_; }

  // Ends the waits for the descriptor, and the connection. A later operation fails with EBADF.
  void close() noexcept;

  // These functions serve a read, which the process tries before it waits. taken() returns whether
  // a read might find data. more() is called after a read that might have left data.
  bool taken() noexcept { return hint_.exchange(false, std::memory_order_acq_rel); }
  void more() noexcept;
  // For a layer above, which has taken bytes from the descriptor and keeps some that no process has
  // read: then the descriptor counts as ready, and no reader waits. The layer calls keeps() after
  // each of its reads, one thread at a time.
  void keeps(bool some) noexcept;
  bool kept() const noexcept { return kept_.load(std::memory_order_acquire); }
  // Returns whether a read from a TCP connection can return less than is available.
  bool reads_short() const noexcept { return short_.load(std::memory_order_relaxed); }

  // Joins the waiting queue of that side, on the process's own thread. Returns false if the process
  // must try again instead. With `by_hint` the caller has found by a read that nothing is
  // available; otherwise the kernel reports what is available now. Throws std::system_error if the
  // kernel cannot watch one more descriptor.
  bool wait(core::Node& n, Side s, Engine& e, bool by_hint);
  // Puts a guard of a choice into the waiting queue, in its commit protocol. Never throws: if the
  // kernel cannot watch the descriptor, the guard counts as ready, and the operation that follows
  // reports the error.
  core::Attempt enrol(core::Guard& g, Side s, Engine& e) noexcept;
  // Leaves the queue, if n is in it. Called on its own thread for every process that has waited.
  void leave(core::Node& n, Side s) noexcept;
  // Leaves the queue for a cancellation; leave() follows. Returns false if n has been woken.
  bool withdraw(core::Node& n, Side s) noexcept;
  // Returns whether n is in the queue.
  bool waits(const core::Node& n) noexcept;

  static std::mutex& book() noexcept;

 private:
  friend class Engine;
  static void at_fork() noexcept;
  static const bool forks;  // initialised by at_fork(), which sets the handlers of forks
  Watched(int fd, bool owns, bool tcp, bool socket);

  // --- called with the book's lock held ---

  // Returns 0, or the system's error number.
  int watch(Side s, Engine& e, bool by_hint) noexcept;
  void unwatch() noexcept;
  bool anybody() const noexcept { return in_.waiting.front() || out_.waiting.front(); }
  void enqueue(core::Node& n, Direction& d, Engine& e) noexcept;
  void dequeue(core::Node& n, Direction& d) noexcept;
  void wake(Direction& d, core::Wakes& wakes) noexcept;
  void came(std::uint32_t events, core::Wakes& wakes) noexcept;
  // Restores invariant 2 when a process has left.
  void settle() noexcept;

  const int fd_;
  bool owns_;  // false also if the number was given to another object that owns it
  const bool tcp_, socket_;
  std::uint32_t number_ = 0;  // distinguishes objects with the same descriptor
  std::atomic<bool> hint_{true};
  // whether the peer has ended its stream or sent urgent data; a read of TCP stops there
  std::atomic<bool> short_{false};
  std::atomic<bool> closed_{false};  // written under the lock
  std::atomic<bool> kept_{false};    // written under the lock
  Engine* home_ = nullptr;
  std::uint32_t mask_ = 0;  // the events for which the descriptor is registered
  std::string name_;
  Direction in_, out_;
};

}  // namespace weft::inline WEFT_ABI::io::detail
