// Finds the ends that were given to no process and that kept a network from ending, and the lines
// at which they were made, for a Deadlock's text.
//
//   a report notes such channels (report.cpp) ──the network has ended──► say_left_open(): searches those that are still open
//
// There is no list of all ends. Therefore the search covers all objects that the collector knows,
// and the variables of the functions that run (weft/_watching/left_open.py). The search runs once
// all processes have ended and no lock is held. Without an interpreter lock other threads change
// the references of objects during the search; but in such builds the collector knows all ends
// themselves (leaf.hpp).
#include "rounds/left_open.hpp"

#include <set>

#include "channels/channel.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/leaf.hpp"
#include "interpreter/sites.hpp"
#include "processes/run.hpp"
#include "sequences.hpp"

namespace weft::py {

namespace {

// The search for all ends of one side of a channel to which certain objects refer.
struct Search {
  const ChannelObject* channel;
  PyTypeObject* side;
  std::set<PyObject*> found;
  // Containers that the collector does not track, because their references cannot form cycles.
  std::set<PyObject*> inside;

  static int visit(PyObject* o, void* self) {
    auto& s = *static_cast<Search*>(self);
    if (Py_IS_TYPE(o, s.side)) {
      const auto* e = reinterpret_cast<EndObject*>(o);
      if (e->channel == s.channel && e->state == EndState::open) s.found.insert(o);
    } else if ((PyTuple_CheckExact(o) || PyDict_CheckExact(o)) && !PyObject_GC_IsTracked(o) &&
               s.inside.insert(o).second) {
      Py_TYPE(o)->tp_traverse(o, &visit, self);
    }
    return 0;
  }
};

// _made_at(channel, readers, objects): returns the lines that made those open ends of the channel
// to which the objects refer.
PyObject* f_made_at(PyObject*, PyObject* args) {
  PyObject *channel, *objects;
  int readers;
  if (!PyArg_ParseTuple(args, "O!pO!", &ChannelType, &channel, &readers, &PyList_Type, &objects))
    return nullptr;
  Search search{
      reinterpret_cast<ChannelObject*>(channel), readers ? &ReaderType : &WriterType, {}, {}};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); ++i) {
    PyObject* const o = PyList_GET_ITEM(objects, i);
    if (every_end_is_known && !Py_IS_TYPE(o, search.side)) continue;
    Search::visit(o, &search);
    if (every_end_is_known) continue;
    if (o != objects && PyObject_IS_GC(o) && Py_TYPE(o)->tp_traverse)
      Py_TYPE(o)->tp_traverse(o, &Search::visit, &search);
  }
  Owned list(PyList_New(0));
  for (PyObject* end : search.found)
    if (const std::uint32_t number = reinterpret_cast<EndObject*>(end)->site; number && list)
      append(list, Py_BuildValue("(OI)", site_of(number).file, site_of(number).line));
  return list.release();
}

PyMethodDef left_open_functions[] = {{"_made_at", gated<f_made_at>, METH_VARARGS, nullptr}, {}};

}  // namespace

std::string say_left_open(PyRun& run) {
  std::string said;
  const Owned m(run.left_open.empty() ? nullptr
                                      : PyImport_ImportModule("weft._watching.left_open"));
  Owned all(m ? PyList_New(0) : nullptr);
  for (const LeftOpen& l : std::exchange(run.left_open, {})) {
    const Owned channel(l.channel);
    const unsigned long n =
        l.readers ? l.channel->core.reader_ends() : l.channel->core.writer_ends();
    if (all)
      append(all, Py_BuildValue("(NOsk)", to_str(channel_name(l.channel)),
                                reinterpret_cast<PyObject*>(l.channel),
                                l.readers ? "reader" : "writer", n));
  }
  const Owned text(all ? PyObject_CallMethod(m.get(), "sentences", "O", all.get()) : nullptr);
  if (const char* const s = text ? PyUnicode_AsUTF8(text.get()) : nullptr) said = s;
  PyErr_Clear();
  return said;
}

int init_left_open(PyObject* module) { return PyModule_AddFunctions(module, left_open_functions); }

}  // namespace weft::py
