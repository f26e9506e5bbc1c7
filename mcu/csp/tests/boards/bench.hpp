// bench.hpp for a board in QEMU, where no test drives pins: an actor makes an interrupt line
// pending, at the times at which run.mjs makes edges. No pin is watched.
#pragma once
#include <cstdint>

#include "board_kit.h"
#include "weft_mcu/actors.h"

#define BENCH_ISR BOARD_ISR
namespace bench {
inline unsigned edges;
inline std::uint32_t edge(weft_event*, std::uint32_t) {
  nvic_pend(BOARD_LINE);
  ++edges;
  if (edges < 10) return 53;
  if (edges == 10) return 1500 - (200 + 9 * 53);
  return edges < 18 ? 50 : static_cast<std::uint32_t>(WEFT_DONE);
}
inline constinit weft_actor driver{};
inline constinit weft_event next = WEFT_EVENT(edge, &driver);

inline void init() {}
inline void mark(unsigned) {}
inline void begin(weft_queue* q) {
  nvic_enable(BOARD_LINE);
  (void)weft_post_in(q, &next, 200);
}
inline void acknowledge() {}
inline void end() { nvic_disable(BOARD_LINE); }
inline int over() { semihost_exit(0); }
}  // namespace bench
