// Whether this thread says something to another program and waits for the answer next (feed.hpp).
#pragma once

namespace weft::py {

// This thread begins an operation that another program answers, and waits for it next, so its
// frames go out with that wait.
inline constinit thread_local bool says_and_waits = false;

}  // namespace weft::py
