// The life word, from which a peer learns of a program's death before the program's memory is torn
// down (WIRE-LINKS.md 12.5). This file needs Linux.
//
// The word lies in memory that the peer may only read. It holds the id of a thread that exists as
// long as there are links. When that thread dies, for whatever reason, the kernel walks the
// thread's robust list, marks the word and wakes a thread that waits on the word. A socket's end of
// file and a pidfd report the death only after the memory has been given back: with a gigabyte, 66
// to 105 ms later.
//
// Only the kernel reads the list, after the thread's death. Entries are linked under the
// attendant's lock.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <atomic>

#include "segment.hpp"

namespace weft::inline WEFT_ABI::wire {

class Life {
 public:
  static constexpr std::size_t kSize = 4096;

  // The robust list of one thread. The thread calls enrol() itself, once.
  class List {
   public:
    List() noexcept { head_.list.next = &head_.list; }
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    void enrol() noexcept {
      head_.futex_offset = static_cast<long>(kSize);
      ::syscall(SYS_set_robust_list, &head_, sizeof(head_));
      thread_.store(static_cast<std::uint32_t>(::syscall(SYS_gettid)), std::memory_order_release);
      thread_.notify_all();
    }
    std::uint32_t thread() noexcept {
      thread_.wait(0, std::memory_order_acquire);
      return thread_.load(std::memory_order_acquire);
    }

   private:
    friend class Life;
    robust_list_head head_{};
    std::atomic<std::uint32_t> thread_{0};
  };

  Life() = default;
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  ~Life() {
    if (at_) ::munmap(at_, 2 * kSize);
  }
  // Makes two pages. The first page, for the list's entry, is this program's own. The second page
  // is shared, and follows the first at the offset that the kernel expects (futex_offset).
  void make(Descriptor& passed) {
    Descriptor fd;
    { const Segment pages = Segment::make(kSize, Segment::Peers::write, fd); }
    void* const both =
        ::mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) weft::detail::bad_use("no memory for the life word");
    at_ = static_cast<std::byte*>(both);
    if (::mmap(at_ + kSize, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), 0) ==
            MAP_FAILED ||
        ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0)
      weft::detail::bad_use("no life word can be made; it needs Linux 5.1");
    passed = std::move(fd);
  }
  // Sets the word to say that the thread of the list is alive.
  void begin(List& l) noexcept {
    word()->store(l.thread() | FUTEX_WAITERS, std::memory_order_seq_cst);
    entry()->next = l.head_.list.next;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    l.head_.list.next = entry();
    list_ = &l;
  }
  // Sets the word to say that this program has left in good order.
  void end() noexcept {
    if (!list_) return;
    for (robust_list* e = &list_->head_.list; e->next != &list_->head_.list; e = e->next)
      if (e->next == entry()) {
        e->next = entry()->next;
        break;
      }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    word()->store(0, std::memory_order_seq_cst);
    ::syscall(SYS_futex, word(), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    list_ = nullptr;
  }
  // Returns whether this value of a life word means that the peer's program is alive.
  static bool lives(std::uint32_t word) noexcept {
    return (word & FUTEX_TID_MASK) != 0 && !(word & FUTEX_OWNER_DIED);
  }

 private:
  robust_list* entry() const noexcept { return reinterpret_cast<robust_list*>(at_); }
  prim::atomic<std::uint32_t>* word() const noexcept {
    return reinterpret_cast<prim::atomic<std::uint32_t>*>(at_ + kSize);
  }
  std::byte* at_ = nullptr;
  List* list_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::wire
