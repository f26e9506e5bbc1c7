// The door through which a program is looked at from outside while it runs (rule 14.9).
// rounds/look.cpp collects what is seen.
#pragma once

namespace weft::py {

// Called when a run begins: from the first run on this OS process can be looked at (look_door.cpp).
// For each later run this costs one test.
void can_be_looked_at() noexcept;
// Called in the child of a fork, which opens a door of its own at its next run.
void forget_look_door() noexcept;

}  // namespace weft::py
