// Native components, for the other rooms.
#pragma once
#include "native.hpp"

namespace weft::py {

struct ProcessObject;

void start_pooled(runtime::Group& g, ProcessObject* p);
// Before a native channel gets ends in other OS processes: when it returns no component is in an
// operation there without the GIL, and none begins one. May give up the GIL, but not from its last
// look on.
void go_abroad(const ChannelObject* c);

}  // namespace weft::py
