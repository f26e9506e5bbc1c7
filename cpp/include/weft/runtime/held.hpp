// Which ends a coroutine process holds by its arguments, and where they lie in its frame: so that a report can see, at one moment, which of
// them it holds still. (An end that was moved away is empty there; a copy of it is an end that nobody is known to hold.)
//
// What is remembered of a process is one pointer, to a layout that all processes of one function share. Only arguments that lie in the
// frame count: what a reference refers to may be gone before the process is.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../core/waiter.hpp"

namespace weft::runtime {

class Ends {
 public:
  // An open end at that address; how many ends of its channel are open.
  virtual void end(const core::Place&, bool writer, const void* at, std::uint32_t readers, std::uint32_t writers) = 0;

 protected:
  ~Ends() = default;
};

struct HeldAt {
  std::ptrdiff_t offset;  // from the process, which is in the frame too
  void (*visit)(const void*, Ends&);
  bool operator==(const HeldAt&) const = default;
};
struct Held {
  std::vector<HeldAt> at;
  const Held* next = nullptr;
};
// The first of the layouts of the functions with the same parameters. They stay until the program ends.
using Layouts = std::atomic<const Held*>;

inline const Held* layout(Layouts& first, const HeldAt* at, std::size_t n) {
  for (const Held* h = first.load(std::memory_order_acquire); h; h = h->next)
    if (std::equal(h->at.begin(), h->at.end(), at, at + n)) return h;
  auto* h = new Held{{at, at + n}, first.load(std::memory_order_relaxed)};
  while (!first.compare_exchange_weak(h->next, h, std::memory_order_acq_rel, std::memory_order_relaxed))
    ;
  return h;
}

// The frame that this thread allocated last.
struct LastFrame {
  const char* begin = nullptr;
  std::size_t size = 0;
};
inline constinit thread_local LastFrame last_frame;

}  // namespace weft::runtime
