// Additions to placeable processes on a board that a Python program serves (rule 21.10;
// csp_board.hpp): the line of each operation, and calls that report to the board's program what a
// process does. Without WEFT_PLACED_BOARD all of this is empty, and a process costs the same as if
// this file did not exist.
#pragma once
#include "weft_mcu/csp_scheduler.hpp"

#if !defined(WEFT_PLACED_BOARD)
#define WEFT_PLACED_BOARD 0
#endif

namespace weft::inline WEFT_ABI {

namespace detail {
class PlacedPromise;
struct PlacedSleep;
}  // namespace detail

namespace board {
struct Call;
inline constexpr bool kServed = WEFT_PLACED_BOARD;  // whether a Python program serves the board

#if WEFT_PLACED_BOARD

// The line of the program at which an operation was written. At::here() as a default argument gives
// the line of the call.
struct At {
  const char* file = nullptr;
  std::uint32_t line = 0;
  static constexpr At here(const char* f = __builtin_FILE(),
                           std::uint32_t l = __builtin_LINE()) noexcept {
    return {f, l};
  }
};

// What the board's program knows of a process. A process that another process awaits has no call.
struct Watched {
  Call* call = nullptr;
  At at;                              // the line of the latest operation
  bool asked = false;                 // whether the process must end at its next operation
  bool selects = false;               // whether the process waits in a select
  detail::PlacedSleep* sleep = nullptr;  // the sleep in which the process waits
  void begins(At a) noexcept { at = a; }
};

// Called when the process waits at a channel.
void waits(detail::PlacedPromise& p, core::SyncObject* place) noexcept;
// Called when an end of the channel was closed, or a process has poisoned the channel.
void changed(core::SyncObject* channel) noexcept;
// Called when the process is ended at an operation; its frame is destroyed next.
void dies(detail::PlacedPromise& p) noexcept;
// Called when the frame of the process is destroyed.
void over(detail::PlacedPromise& p) noexcept;
// Returns the call of the process that is being made, and null the next time.
Call* making() noexcept;

#else

struct At {
  static constexpr At here() noexcept { return {}; }
};
struct Watched {
  static constexpr bool asked = false;
  static void begins(At) noexcept {}
};
inline void waits(detail::PlacedPromise&, core::SyncObject*) noexcept {}
inline void changed(core::SyncObject*) noexcept {}
inline void dies(detail::PlacedPromise&) noexcept {}
inline void over(detail::PlacedPromise&) noexcept {}

#endif

}  // namespace board
}  // namespace weft::inline WEFT_ABI
