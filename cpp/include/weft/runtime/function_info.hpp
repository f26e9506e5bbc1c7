// What the processes of one function have in common: the function's file, which ends they hold as
// arguments, and where those ends are in the frame. From this record a report can see which of the
// ends a process holds at the moment. (An end that was moved away is empty there; no holder is
// known for a copy of it.) A process keeps one pointer to the record.
//
//   layout(): the arguments, as the constructor of a promise sees them
//      └──in_file(): the file, when it is known──► what a process refers to
//
// Only arguments that are in the frame count: an object passed by reference may be destroyed before
// the process. All records stay until the program ends.
#pragma once
#include <cstddef>
#include <cstdint>

#include <atomic>
#include <span>
#include "../core/waiter.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Ends {
 public:
  // Called for an open end, which is at the address `at`. `readers` and `writers` say how many open
  // ends its channel has.
  virtual void end(const core::SyncObject&, bool writer, const void* at, std::uint32_t readers,
                   std::uint32_t writers) = 0;
  // Returns whether the visitor wants the figures of the channel too. If so, figures() is called
  // after end().
  virtual bool wants_figures() const noexcept { return false; }
  virtual void figures(const struct Passed&) {}

 protected:
  ~Ends() = default;
};

struct HeldAt {
  std::ptrdiff_t offset;  // in bytes from the process, which is in the same frame
  void (*visit)(const void*, Ends&);
  bool operator==(const HeldAt&) const = default;
};
struct FunctionInfo {
  // The file of the operation that a report names; null if it is not known. (The line belongs to
  // the process.)
  const char* file = nullptr;
  std::span<const HeldAt> held;
  // Records of the same arguments, each with a file.
  mutable std::atomic<const FunctionInfo*> in_files{nullptr};
  mutable const FunctionInfo* next = nullptr;  // the next record in the list
};
using FunctionInfos = std::atomic<const FunctionInfo*>;

// Returns the record for these arguments. `first` is the list for functions with the same
// parameters.
const FunctionInfo* layout(FunctionInfos& first, const HeldAt* at, std::size_t n);

inline const FunctionInfo no_ends;
const FunctionInfo* first_in_file(const FunctionInfo& a, const char* file) noexcept;
// Returns the record of `a` with that file. `file` is compared by its address, and must exist as
// long as a report can ask for it. `a` is a result of layout(), or null if there are no ends.
inline const FunctionInfo* in_file(const FunctionInfo* a, const char* file) noexcept {
  if (!a) a = &no_ends;
  const FunctionInfo* const last = a->in_files.load(std::memory_order_acquire);
  return last && last->file == file ? last : first_in_file(*a, file);
}

// The frame that this thread allocated last.
struct LastFrame {
  const char* begin = nullptr;
  std::size_t size = 0;
};
inline constinit thread_local LastFrame last_frame;

// Returns whether g++ has laid out the frame of this promise wrongly (WEFT_WRONG_FRAME). Returns
// false also if the copying of an argument has made another frame meanwhile: then the frame cannot
// be checked.
inline bool has_wrong_frame([[maybe_unused]] const void* promise) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
  const auto offset = reinterpret_cast<std::uintptr_t>(promise) -
                      reinterpret_cast<std::uintptr_t>(last_frame.begin);
  return offset < last_frame.size && offset != core::kFrame;
#else
  return false;
#endif
}

}  // namespace weft::inline WEFT_ABI::runtime
