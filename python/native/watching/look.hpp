// The door through which other programs examine a running program (rule 14.9). rounds/look.cpp
// collects the facts.
#pragma once

namespace weft::py {

// Called when a run begins. From the first run on, other programs can examine this OS process
// (look_door.cpp). At each later run this call costs one test.
void can_be_looked_at() noexcept;
// Called in the child of a fork, which opens its own door at its next run.
void forget_look_door() noexcept;

}  // namespace weft::py
