// Several values at a time: reader.read_many(most), reader.blocks(most), writer.write_many(values).
//
//   read_many:  a read ──► its value, then what is in the buffer, without waiting: gather()
//   write_many: values into the buffer, without waiting: pass_on() ──► a write of the next, if there are more ──► pass_on() …
//
// One operation in a block is an ordinary read or write (operation.cpp): it may wait, be cancelled,
// meet the channel's end and let other processes run. The other values are moved in one loop under
// the GIL, at moments when no party waits: ChannelEngine::pass().
//
// Invariants
//  1 Observers see operations, so while there is an observer, each value is an operation of its
//    own. Each value is an operation of its own at a rendezvous too, and at channels to other OS
//    processes.
//  2 Every value taken from the buffer is in the list that is returned. Therefore the list is made
//    before the read begins, and room for a value is made in it before the value is taken. If a
//    value cannot be converted to a Python object, the exception is raised and the list is lost.
#include <algorithm>

#include "channels/ends.hpp"
#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "channels/operations.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/returned.hpp"
#include "interpreter/unawaited.hpp"
#include "processes/asyncio.hpp"
#include "processes/loops.hpp"
#include "processes/process.hpp"
#include "watching/observing.hpp"
#include "wire/values.hpp"

namespace weft::py {

namespace {

bool one_by_one(const ChannelObject* c) noexcept {
  return observing() || !c->core.ring || is_wired(c) || is_far(c);
}

// The largest number of values that are moved before the next operation, which lets others run and
// notices a cancellation.
constexpr Py_ssize_t kAtOnce = 4096;

// Counts n operations that have completed without waiting. When a process has completed as many as
// it is allowed to, its next operation lets other processes run (rule 7.7).
void count(Py_ssize_t n) noexcept {
  const auto all = static_cast<std::size_t>(n);
  if (LinkObject* const l = in_task() ? link_here() : nullptr) {
    if (count_at_once(*l, current_task(), all)) l->at_once = runtime::Standing::kAtOnce;
  } else if (ProcessBase* const p = this_process()) {
    p->line.at_once(all);
  }
  PyErr_Clear();
}

// Moves the values in the buffer into the list. Returns -1 with an exception.
int gather(PyObject* reader, PyObject* list, Py_ssize_t most) {
  ChannelObject* const c = end_of(reader)->channel;
  if (one_by_one(c)) return 0;
  most = std::min(most, kAtOnce);
  const Py_ssize_t before = PyList_GET_SIZE(list);
  Py_ssize_t n = before;
  int r = 0;
  for (; n < most && end_of(reader)->state == EndState::open; ++n) {
    if (PyList_Append(list, Py_None) < 0) {  // memory has run out, and the rest stays in the buffer
      PyErr_Clear();
      break;
    }
    Value slot;
    PyObject* const v = c->core.pass<Side::in>(&slot) ? taken_from(c, slot.take()) : nullptr;
    if (!v) {
      Py_SET_SIZE(list, n);
      Py_DECREF(Py_None);  // removes the slot that was reserved for the value
      r = PyErr_Occurred() ? -1 : 0;
      break;
    }
    PyList_SetItem(list, n, v);
  }
  if (r < 0) return -1;
  count(n - before);
  run_deferred();
  return 0;
}
Owned<> new_block() {
  Owned list(PyList_New(1));
  if (list) PyList_SET_ITEM(list.get(), 0, Py_NewRef(Py_None));
  return list;
}
// Returns the list, filled with the value that was read and the values from the buffer.
PyObject* block_of(PyObject* reader, Owned<> list, Owned<> first, Py_ssize_t most) {
  PyList_SetItem(list.get(), 0, first.release());
  return gather(reader, list.get(), most) < 0 ? nullptr : list.release();
}

// Moves values into the buffer, beginning with number `done`. Sets `done` to the number of the
// first value that did not fit. Returns -1 with an exception.
int pass_on(PyObject* writer, PyObject* values, Py_ssize_t& done) {
  ChannelObject* const c = end_of(writer)->channel;
  const Py_ssize_t n = std::min(PyTuple_GET_SIZE(values), done + kAtOnce);
  if (one_by_one(c)) return 0;
  const Py_ssize_t before = done;
  for (; done < n && end_of(writer)->state == EndState::open; ++done) {
    PyObject* v = PyTuple_GET_ITEM(values, done);
    if (is_end(v)) break;
    Py_INCREF(v);
    if (packs(c) && !(v = pack(c, v))) return -1;
    Value slot(v);
    if (c->core.pass<Side::out>(&slot)) continue;
    Owned back(slot.take());  // the write will convert the value again
    if (packs(c)) back.reset(unsent(back.release()));
    break;
  }
  if (done > 0 && this_process()) c->core.last_writer = this_process()->id;
  count(done - before);
  return 0;
}

// --- where operations are awaited ----------------------------------------------------------------

struct ManyObject {
  PyObject_HEAD PyObject* end;
  PyObject* op;      // the operation that waits, or that is to be awaited; null if there is none
                     // yet
  PyObject* values;  // for write_many: the tuple of values; otherwise null
  PyObject* list;    // for read_many: the list of values read; otherwise null
  // for read_many: the largest number of values to read; for write_many: the number of values
  // written
  Py_ssize_t number;
  bool begun, over, awaited;
};
ManyObject* many(PyObject* o) noexcept { return reinterpret_cast<ManyObject*>(o); }
PyTypeObject ManyType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* new_many(PyObject* end, Owned<> values, Owned<> list, Py_ssize_t number) {
  ManyObject* const m = PyObject_New(ManyObject, &ManyType);
  if (!m) return nullptr;
  m->list = list.release();
  m->end = Py_NewRef(end);
  m->op = nullptr;
  m->values = values.release();
  m->number = number;
  m->begun = m->over = m->awaited = false;
  return reinterpret_cast<PyObject*>(m);
}
const char* verb_of(const ManyObject* m) noexcept { return m->values ? "write_many" : "read_many"; }

void many_dealloc(PyObject* o) {
  ManyObject* const m = many(o);
  if (!m->begun && m->values) {  // for read_many, the read itself gives this warning
    const SavedException kept;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "write_many on channel %s was never awaited: write `await` before it",
                         channel_name(end_of(m->end)->channel).c_str()) < 0)
      PyErr_WriteUnraisable(Py_None);
  }
  Py_XDECREF(m->op);
  Py_XDECREF(m->values);
  Py_XDECREF(m->list);
  Py_DECREF(m->end);
  PyObject_Free(o);
}

// Continues with the waiting operation. `step` returns the operation's outcome. A write continues
// with the next value.
template <class Step>
PySendResult go_on(ManyObject* m, PyObject** r, Step step) {
  *r = nullptr;
  for (PySendResult s = step(); s != PYGEN_ERROR;) {
    if (s == PYGEN_NEXT) return s;
    if (m->op) {  // the operation has put its result into *r
      Py_CLEAR(m->op);
      Owned given(std::exchange(*r, nullptr));
      if (!m->values) {
        m->over = true;
        *r = block_of(m->end, Owned(std::exchange(m->list, nullptr)), std::move(given), m->number);
        return *r ? PYGEN_RETURN : PYGEN_ERROR;
      }
      ++m->number;
    }
    if (pass_on(m->end, m->values, m->number) < 0) break;
    if (m->number == PyTuple_GET_SIZE(m->values)) {
      m->over = true;
      *r = Py_NewRef(Py_None);
      return PYGEN_RETURN;
    }
    if (!(m->op = operation_write(m->end, PyTuple_GET_ITEM(m->values, m->number)))) break;
    s = PyIter_Send(m->op, Py_None, r);
  }
  m->over = true;
  Py_CLEAR(m->op);
  return PYGEN_ERROR;
}

PySendResult many_send(PyObject* o, PyObject* arg, PyObject** r) {
  ManyObject* const m = many(o);
  *r = nullptr;
  if (m->over) {
    bad_use("%s was awaited already: make another operation", verb_of(m));
    return PYGEN_ERROR;
  }
  m->begun = true;
  return go_on(m, r, [&] { return m->op ? PyIter_Send(m->op, arg, r) : PYGEN_RETURN; });
}
PyObject* many_iternext(PyObject* o) { return iternext_by(gated<many_send>, o); }
PyObject* many_pysend(PyObject* o, PyObject*) { return send_by(gated<many_send>, o); }
// Throws the exception into the waiting operation. In a task that operation may already have
// committed. Then it completes (rule 6.3); the cancellation takes effect at the next write, or
// after the block read.
PyObject* many_throw(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  ManyObject* const m = many(o);
  m->begun = true;
  if (!m->op) {
    m->over = true;
    return raise_thrown(args, n);
  }
  const auto thrown = [&](PyObject** r) {
    const Owned throws(PyObject_GetAttrString(m->op, "throw"));
    *r = throws ? PyObject_Vectorcall(throws.get(), args, static_cast<std::size_t>(n), nullptr)
                : nullptr;
    if (*r) return PYGEN_NEXT;
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return PYGEN_ERROR;
    const Owned stop(take_exception());
    *r = PyObject_GetAttrString(stop.get(), "value");
    return *r ? PYGEN_RETURN : PYGEN_ERROR;
  };
  PyObject* r;
  const PySendResult s = go_on(m, &r, [&] { return thrown(&r); });
  if (s != PYGEN_RETURN) return r;
  const Owned value(r);
  if (PyObject* const stop = PyObject_CallOneArg(PyExc_StopIteration, r)) restore_exception(stop);
  return nullptr;
}
PyObject* many_close(PyObject* o, PyObject*) {
  ManyObject* const m = many(o);
  m->begun = m->over = true;
  const Owned op(std::exchange(m->op, nullptr));
  return op ? PyObject_CallMethod(op.get(), "close", nullptr) : Py_NewRef(Py_None);
}
PyMethodDef many_methods[] = {{"send", gated<many_pysend>, METH_O, nullptr},
                              {"throw", method(gated<many_throw>), METH_FASTCALL, nullptr},
                              {"close", gated<many_close>, METH_NOARGS, nullptr},
                              {}};

bool awaits() noexcept { return current_coroutine() || in_task(); }

Py_ssize_t most_of(PyObject* number, const char* verb) {
  if (!PyIndex_Check(number)) {
    PyErr_Format(PyExc_TypeError, "%s: the most values to read must be an int, not %R", verb,
                 number);
    return -1;
  }
  const Py_ssize_t n = PyNumber_AsSsize_t(number, nullptr);
  if (n < 1 && !PyErr_Occurred())
    bad_use("%s: the most values to read must be at least 1, not %zd", verb, n);
  return PyErr_Occurred() ? -1 : n;
}

// If `next` is true, the function returns null without an exception at the end of the channel.
PyObject* read_block(PyObject* reader, Py_ssize_t most, bool next) {
  const bool waits = awaits();
  Owned list(new_block());
  if (!list) return nullptr;
  // steps that can fail come first, since an operation that is never awaited gives a warning
  if (waits) {
    Owned m(new_many(reader, {}, std::move(list), most));
    if (m && !(many(m.get())->op = operation_read(reader, next))) return nullptr;
    return m.release();
  }
  Owned r(operation_read(reader, next));
  return r ? block_of(reader, std::move(list), std::move(r), most) : nullptr;
}

PyObject* write_all(PyObject* writer, PyObject* values) {
  Py_ssize_t done = 0;
  while (pass_on(writer, values, done) == 0) {
    if (done == PyTuple_GET_SIZE(values)) return Py_NewRef(Py_None);
    const Owned one(operation_write(writer, PyTuple_GET_ITEM(values, done)));
    if (!one) break;
    ++done;
  }
  return nullptr;
}

// --- blocks --------------------------------------------------------------------------------------

struct BlocksObject {
  PyObject_HEAD PyObject* reader;
  Py_ssize_t most;
};
BlocksObject* blocks(PyObject* o) noexcept { return reinterpret_cast<BlocksObject*>(o); }
PyTypeObject BlocksType{PyVarObject_HEAD_INIT(nullptr, 0)};
void blocks_dealloc(PyObject* o) {
  Py_DECREF(blocks(o)->reader);
  PyObject_Free(o);
}
PyObject* blocks_next(PyObject* o) {
  if (awaits())
    return bad_use(
        "for over blocks of a reader blocks: in a coroutine process or an asyncio task use `async "
        "for`");
  return read_block(blocks(o)->reader, blocks(o)->most, true);
}
PyObject* blocks_anext(PyObject* o) {
  if (!awaits())
    return bad_use(
        "async for over blocks of a reader is for coroutine processes and asyncio tasks: use for");
  return read_block(blocks(o)->reader, blocks(o)->most, true);
}

}  // namespace

PyObject* reader_read_many(PyObject* o, PyObject* number) {
  const Py_ssize_t most = most_of(number, "read_many");
  return most < 0 ? nullptr : read_block(o, most, false);
}
PyObject* reader_blocks(PyObject* o, PyObject* number) {
  const Py_ssize_t most = most_of(number, "blocks");
  if (most < 0 || check_end(end_of(o), "read") < 0) return nullptr;
  BlocksObject* const b = PyObject_New(BlocksObject, &BlocksType);
  if (!b) return nullptr;
  b->reader = Py_NewRef(o);
  b->most = most;
  return reinterpret_cast<PyObject*>(b);
}
PyObject* writer_write_many(PyObject* o, PyObject* values) {
  run_deferred();
  if (check_end(end_of(o), "write") < 0) return nullptr;
  if (PyUnicode_Check(values) || PyDict_Check(values)) {
    PyErr_Format(PyExc_TypeError,
                 "write_many takes the values to write, as a list of them, not a %.100s",
                 Py_TYPE(values)->tp_name);
    return nullptr;
  }
  Owned all(PySequence_Tuple(values));
  if (!all) return nullptr;
  return awaits() ? new_many(o, std::move(all), {}, 0) : write_all(o, all.get());
}

int init_many(PyObject*) {
  static PyAsyncMethods many_async{}, blocks_async{};
  refuse_as_result<ManyObject>(ManyType, many_async,
                               [](PyObject* o) noexcept { return verb_of(many(o)); });
  many_async.am_send = gated<many_send>;
  ManyType.tp_name = "weft.Operations";
  ManyType.tp_basicsize = sizeof(ManyObject);
  ManyType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ManyType.tp_dealloc = gated<many_dealloc>;
  ManyType.tp_iternext = gated<many_iternext>;
  ManyType.tp_methods = many_methods;
  ManyType.tp_as_async = &many_async;
  blocks_async.am_aiter = PyObject_SelfIter;
  blocks_async.am_anext = gated<blocks_anext>;
  BlocksType.tp_name = "weft.Blocks";
  BlocksType.tp_basicsize = sizeof(BlocksObject);
  BlocksType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  BlocksType.tp_dealloc = gated<blocks_dealloc>;
  BlocksType.tp_iter = PyObject_SelfIter;
  BlocksType.tp_iternext = gated<blocks_next>;
  BlocksType.tp_as_async = &blocks_async;
  return PyType_Ready(&ManyType) < 0 || PyType_Ready(&BlocksType) < 0 ? -1 : 0;
}

}  // namespace weft::py
