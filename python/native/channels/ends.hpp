// How the files of all rooms make, check and close the ends of channels.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

// takes over one count of the core
PyObject* new_end(PyTypeObject* type, ChannelObject* c) noexcept;
void close_end(EndObject* e, EndState how) noexcept;
// -1: closed, or of another operating-system process; 1: ends come through its channel
int check_end(EndObject* e, const char* verb);
PyObject* make_transit(PyObject* end) noexcept;  // the receiver's end of a moved one (rule 2.4)

}  // namespace weft::py
