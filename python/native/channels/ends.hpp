// How files of all folders make, check and close the ends of channels.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

// Makes an end, which takes over one count of the core.
PyObject* new_end(PyTypeObject* type, ChannelObject* c) noexcept;
void close_end(EndObject* e, EndState how) noexcept;
// Returns -1 if the end is closed or belongs to another OS process, 1 if ends come through its
// channel, else 0.
int check_end(EndObject* e, const char* verb);
PyObject* make_transit(PyObject* end) noexcept;  // the receiver's end of a moved one (rule 2.4)

}  // namespace weft::py
