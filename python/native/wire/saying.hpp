// A thread that says something and waits for the answer (feed.hpp).
#pragma once

namespace weft::py {

// This thread begins what another program answers, and waits for it next: what it says goes then.
inline constinit thread_local bool says_and_waits = false;

}  // namespace weft::py
