// Records whether this thread sends something to another program and then waits for the answer
// (feed.hpp).
#pragma once

namespace weft::py {

// True while this thread begins an operation that another program answers, and for which the thread
// then waits: the frames are sent when the wait begins.
inline constinit thread_local bool says_and_waits = false;

}  // namespace weft::py
