// Records whether this thread sends something to another program and waits for the answer next
// (feed.hpp).
#pragma once

namespace weft::py {

// True while this thread begins an operation that another program answers, if the thread waits for
// the answer next: the wait sends the frames.
inline constinit thread_local bool says_and_waits = false;

}  // namespace weft::py
