// The objects that Python code sees as a channel and as its ends. marks.hpp defines the marks of a
// channel, ends.hpp declares the functions for ends.
#pragma once
#include <cstdint>
#include <vector>

#include "owned.hpp"
#include "value.hpp"

namespace weft::py {

struct ChannelObject {
  // a str: the name, or the file in which the channel was made; the core's name points into this
  // str
  PyObject_HEAD PyObject* name;
  // The generation of the OS process that made the channel, which changes with each fork (rule
  // 11.2), and marks (marks.hpp).
  std::uint32_t generation;
  std::uint8_t immunity;
  bool traced;                    // whether the garbage collector tracks this object (leaf.hpp)
  std::uint8_t readers_returned;  // how many readers were ended by the return of their process
                                  // (stopped_early.cpp)
  Engine core;
};

enum class EndState : std::uint8_t { open, retired, let_go, sent, died };

struct EndObject {
  PyObject_HEAD ChannelObject* channel;
  std::uint32_t holders;  // how many processes were given this end and have not finished (rule 2.3)
  EndState state : 4;
  bool traced : 1;          // set if the end's channel is traced, or if all channels are (leaf.hpp)
  bool received : 1;        // set if a process that has not ended received this end (held.cpp)
  std::uint32_t site : 24;  // where the end was made (sites.hpp)
};
static_assert(sizeof(EndObject) == sizeof(PyObject) + 16);
inline EndObject* end_of(PyObject* o) noexcept { return reinterpret_cast<EndObject*>(o); }

extern PyTypeObject ChannelType, ReaderType, WriterType;

inline bool is_reader(PyObject* o) noexcept { return Py_IS_TYPE(o, &ReaderType); }
inline bool is_writer(PyObject* o) noexcept { return Py_IS_TYPE(o, &WriterType); }
inline bool is_end(PyObject* o) noexcept { return is_reader(o) || is_writer(o); }

using Ends = std::vector<Owned<EndObject>>;

}  // namespace weft::py
