// Lines of the program, for reports: the line that made a channel, the line on which a thread
// waits.
//
// A line in a header of the standard library is not a line of the program, although such a header
// makes channels (make_unique, the containers) and calls functions (std::function) for the program.
// A channel made by such a header is named after the line of the program that first takes an end of
// it.
#pragma once
#include <concepts>
#include <cstdint>

#include "config.hpp"
#include "core/waiter.hpp"
#include "runtime/thread.hpp"

namespace weft::inline WEFT_ABI::detail {

// A line of the program. Here::now() as a default argument gives the line of the call. Nothing
// converts to a Here, not even a list in braces, so it never competes with a value in a call.
class Here {
  struct Now {};

 public:
  static constexpr Here now(const char* file = __builtin_FILE(),
                            std::uint32_t line = __builtin_LINE()) noexcept {
    return Here(Now(), file, line);
  }
  // Represents a place whose line is not known.
  static constexpr Here nowhere() noexcept { return Here(Now(), nullptr, 0); }
  const char* file;
  std::uint32_t line;

 private:
  template <std::same_as<Now> N>
  constexpr Here(N, const char* f, std::uint32_t l) noexcept : file(f), line(l) {}
};

// Returns whether a file is part of the program. Returns false for a header of the standard
// library, and for null.
bool of_the_program(const char* file) noexcept;
// The last file that was found to be part of the program; it is compared by address.
inline std::atomic<const char*> program_file{nullptr};

// The name of a channel that the standard library has made, until a line of the program uses it.
inline constexpr char kUnnamed[] = "a channel that the standard library made";
// Names a new object after this line, before any other thread knows the object. `unnamed` is the
// object's name if there is no line.
void name_made(core::SyncObject& made, Here at, const char* unnamed) noexcept;
inline void made_at(core::SyncObject& made, Here at, const char* unnamed = kUnnamed) noexcept {
  if (at.file != program_file.load(std::memory_order_relaxed)) [[unlikely]]
    return name_made(made, at, unnamed);
  made.name = at.file;
  made.line = at.line;
}

// Called when the program uses a channel on this line.
void name_used(core::SyncObject& used, Here at) noexcept;
inline void used_at(core::SyncObject& used, Here at) noexcept {
  if (prim::load_from(used.name, std::memory_order_relaxed) == kUnnamed) [[unlikely]]
    name_used(used, at);
}

// Called when the thread is about to wait in an operation on this line.
void waits_at(runtime::ThreadProcess& self, Here at) noexcept;

}  // namespace weft::inline WEFT_ABI::detail
