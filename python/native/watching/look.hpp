// The door through which a running program is looked at from outside (rule 14.9). rounds/look.cpp
// collects the facts.
#pragma once

namespace weft::py {

// Called when a run begins. From the first run on, this OS process can be looked at
// (look_door.cpp). For each later run this costs one test.
void can_be_looked_at() noexcept;
// Called in the child of a fork, which opens its own door at its next run.
void forget_look_door() noexcept;

}  // namespace weft::py
