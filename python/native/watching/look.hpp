// A look from outside at a network that runs (rules 14.9 to 14.12): how often each process was
// found in which state, and the door through which somebody comes who looks.
#pragma once

namespace weft::py {

// A run begins: from the first one on, this OS process can be looked at (look_door.cpp). It costs
// one test later.
void can_be_looked_at() noexcept;
void forget_look_door() noexcept;  // in the child of a fork: it opens its own at its next run
// The calling thread is known to the system by the last 15 bytes of this path.
void name_thread(const char* path) noexcept;

}  // namespace weft::py
