// Functions that make, check and close the ends of channels, for use in all directories.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

// Makes an end, which takes ownership of one count of the core.
PyObject* new_end(PyTypeObject* type, ChannelObject* c) noexcept;
void close_end(EndObject* e, EndState how) noexcept;
// Returns -1 if the end is closed or belongs to another OS process, 1 if the values of its channel
// can contain ends, otherwise 0.
int check_end(EndObject* e, const char* verb);
// returns the end that the receiver of a moved end receives (rule 2.4)
PyObject* make_transit(PyObject* end) noexcept;

}  // namespace weft::py
