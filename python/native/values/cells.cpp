// Cells, and channels that carry them (cells.hpp).
#include "values/cells.hpp"

#include <unordered_map>

#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "choice/choices.hpp"
#include "gate.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/errors.hpp"
#include "values/native_types.hpp"
#include "wire/values.hpp"

namespace weft::py {

// --- cells ---------------------------------------------------------------------------------------

namespace {

struct CellObject {
  PyObject_HEAD const NativeType* type;
  weft_value value;
};
PyTypeObject CellType{PyVarObject_HEAD_INIT(nullptr, 0)};
CellObject* cell_of(PyObject* o) noexcept { return reinterpret_cast<CellObject*>(o); }

struct Native {
  const NativeType* type;
  std::string by;
};
std::unordered_map<const ChannelObject*, Native> natives;  // protected by the GIL

}  // namespace

bool is_cell(PyObject* o) noexcept { return Py_IS_TYPE(o, &CellType); }

PyObject* new_cell(const NativeType* t, weft_value v) noexcept {
  auto* const c = static_cast<CellObject*>(std::calloc(1, sizeof(CellObject)));
  if (!c) return nullptr;
  c->type = t;
  c->value = v;
  // Does what PyObject_Init() does, which must not be called without the GIL. The type is static,
  // so its references are not counted.
#ifdef Py_GIL_DISABLED
  c->ob_base.ob_ref_shared = _Py_REF_SHARED(1, _Py_REF_MERGED);  // no thread owns the cell
  c->ob_base.ob_type = &CellType;
#else
  c->ob_base.ob_refcnt = 1;
  c->ob_base.ob_type = &CellType;
#endif
  return reinterpret_cast<PyObject*>(c);
}
weft_value take_cell(PyObject* o) noexcept {
  const weft_value v = cell_of(o)->value;
  std::free(o);
  return v;
}
void drop_cell(PyObject* o) noexcept {
  release_block(cell_of(o)->value.block);
  std::free(o);
}

// --- channels ------------------------------------------------------------------------------------

const NativeType* type_of(const ChannelObject* c) noexcept {
  const auto at = natives.find(c);
  return at == natives.end() ? nullptr : at->second.type;
}
void forget_native(ChannelObject* c) noexcept { natives.erase(c); }

namespace {

// If the current exception means that a value does not convert, replaces it by a BadUse that names
// the channel. Other exceptions remain.
PyObject* explain(ChannelObject* c, const Native& n, const char* what) {
  Owned why(take_exception());
  if (!says_no_value(why.get())) {
    restore_exception(why.release());
    return nullptr;
  }
  const Owned text(PyObject_Str(why.get()));
  if (!text) return nullptr;
  bad_use("%s channel %s, which carries %s (%s): %U", what, channel_name(c).c_str(),
          describe(n.type).c_str(), n.by.c_str(), text.get());
  return nullptr;
}

// Returns the place of a value that waits at the channel, in a writer's slot or in the buffer, and
// that is not a cell yet; null if there is none.
Value* first_bare(Engine& c) {
  Value* found = nullptr;
  c.with_lock([&](core::Queue&, core::Queue& writers) {
    for (core::Link* l = writers.front(); l && !found; l = l->next) {
      auto* const v = static_cast<Value*>(static_cast<core::Node*>(l)->slot);
      if (v && v->o && !is_cell(v->o)) found = v;
    }
    if (core::Ring<Value>* r = c.ring)
      for (std::uint32_t i = 0; i < r->size && !found; ++i) {
        Value& v = r->data[(r->head + i) % r->capacity];
        if (!is_cell(v.o)) found = &v;
      }
  });
  return found;
}

PyObject* convert(ChannelObject* c, const Native& n, PyObject* value, const char* what) {
  weft_value v;
  PyObject* const before = std::exchange(lending_to, reinterpret_cast<PyObject*>(c));
  const int r = to_native(n.type, value, v);
  lending_to = before;
  if (r < 0) {
    drop_native(v);
    return explain(c, n, what);
  }
  PyObject* const cell = new_cell(n.type, v);
  if (cell) return cell;
  drop_native(v);
  return PyErr_NoMemory();
}

// Checks that each value that waits at a channel converts. The values remain unchanged. Returns -1
// with BadUse if a value does not convert.
int check_waiting(ChannelObject* c, const Native& n) {
  if (is_far(c)) return 0;  // a far channel's home checks these values
  std::vector<Owned<>> all;
  const bool wired = is_wired(c);
  c->core.with_lock([&](core::Queue&, core::Queue& writers) {
    const auto add = [&](const Value& v) {
      if (v.o && (wired ? is_packed(v.o) : !is_cell(v.o))) all.push_back(new_ref(v.o));
    };
    for (core::Link* l = writers.front(); l; l = l->next)
      if (const auto* const v = static_cast<Value*>(static_cast<core::Node*>(l)->slot)) add(*v);
    if (const core::Ring<Value>* r = c->core.ring)
      for (std::uint32_t i = 0; i < r->size; ++i) add(r->data[(r->head + i) % r->capacity]);
  });
  int r = 0;
  for (Owned<>& waiting : all) {
    const Owned o(r < 0 ? nullptr : wired ? unpack(c, waiting.release()) : waiting.release());
    weft_value v{0, nullptr};
    if (r == 0 && (!o || to_native(n.type, o.get(), v) < 0)) {
      explain(c, n, "a value that waits at");
      r = -1;
    }
    drop_native(v);
  }
  release_lent();
  return r;
}

// For a channel that already carries a type: returns 0 if that type is `t`, otherwise -1 with
// BadUse.
int same_type(ChannelObject* c, const Native& is, const NativeType* t, const char* who) {
  if (is.type == t) return 0;
  bad_use("channel %s carries %s (%s), and %s wants %s: give it another channel",
          channel_name(c).c_str(), describe(is.type).c_str(), is.by.c_str(), who,
          describe(t).c_str());
  return -1;
}
int no_board(ChannelObject* c, const char* who) {
  if (!is_wired(c) || !is_board(c)) return 0;
  bad_use(
      "channel %s has ends on a board, and %s is native: a board cannot take part in a native "
      "channel; put a Python process between them",
      channel_name(c).c_str(), who);
  return -1;
}

}  // namespace

int may_attach(ChannelObject* c, const NativeType* t, const char* who) {
  if (const auto at = natives.find(c); at != natives.end()) return same_type(c, at->second, t, who);
  return no_board(c, who) < 0 ? -1 : check_waiting(c, Native{t, who});
}

// Values that waited at a channel, each with the cell that replaced it.
using Converted = std::vector<std::pair<Owned<>, PyObject*>>;

static int becomes_native(ChannelObject* c, const Native& n) {
  natives.emplace(c, n);
  // Makes alternatives that hold values for the channel check these values again.
  ++ends_closed;
  c->generation |= kNative;
  return 0;
}

// Puts the values back in place of their cells, because an attach that fails must change nothing.
static void convert_back(Engine& core, const Converted& done) {
  core.with_lock([&](core::Queue&, core::Queue& writers) {
    const auto back = [&](Value& v) {
      if (v.o && is_cell(v.o))
        for (const auto& [value, cell] : done)
          if (v.o == cell) {
            v.o = Py_NewRef(value.get());
            drop_cell(cell);
          }
    };
    for (core::Link* l = writers.front(); l; l = l->next)
      if (auto* const v = static_cast<Value*>(static_cast<core::Node*>(l)->slot)) back(*v);
    if (core::Ring<Value>* ring = core.ring)
      for (std::uint32_t i = 0; i < ring->size; ++i)
        back(ring->data[(ring->head + i) % ring->capacity]);
  });
}

int attach(ChannelObject* c, const NativeType* t, const char* who) {
  if (const auto at = natives.find(c); at != natives.end()) return same_type(c, at->second, t, who);
  const Native n{t, who};
  if (is_wired(c)) {
    if (no_board(c, who) < 0 || check_waiting(c, n) < 0) return -1;
    if (natives.contains(c)) return attach(c, t, who);  // another thread has attached a type first
    return becomes_native(c, n);
  }
  // From now on all reads examine the values that they take, including reads that already wait.
  carry_ends(c);
  Converted done;
  int r = 0;
  for (Value* v; r == 0 && (v = first_bare(c->core));) {
    const Owned value = new_ref(v->o);
    PyObject* const cell = convert(c, n, value.get(), "a value that waits at");
    // The conversion might have let other code run, so the value might have left its slot.
    if (!cell) {
      r = -1;
    } else if (first_bare(c->core) == v && v->o == value.get()) {
      done.emplace_back(std::exchange(v->o, cell), cell);
    } else {
      drop_cell(cell);
    }
  }
  if (r < 0) convert_back(c->core, done);
  for (auto& d : done) defer_decref(d.first.release());
  return r < 0 ? -1 : becomes_native(c, n);
}

constexpr const char* kTyped = "Channel(type=...)";
int type_channel(ChannelObject* c, PyObject* type) {
  const NativeType* const t = native_type_of(type);
  return t ? attach(c, t, kTyped) : -1;
}
int type_like(const ChannelObject* c, ChannelObject* to) {
  const auto at = natives.find(c);
  return at == natives.end() || at->second.by != kTyped ? 0 : attach(to, at->second.type, kTyped);
}

int check_move(ChannelObject* c, PyObject* value) {
  const NativeType* const t = type_of(c);
  if (!t || is_array(t)) return check_only(value);
  bad_use(
      "write(move=True) on channel %s, which carries %s: it is for arrays alone; write it without",
      channel_name(c).c_str(), describe(t).c_str());
  return -1;
}

PyObject* pack_native(ChannelObject* c, PyObject* value) {
  if (is_cell(value)) return value;
  const Owned taken(value);
  release_lent();
  const auto at = natives.find(c);
  const Native n = at->second;
  PyObject* const cell = convert(c, n, value, "a value written to");
  if (!cell) only_failed(c, "write", "converted");
  return cell;
}

PyObject* unpack_native(PyObject* cell) {
  release_lent();
  const NativeType* const t = cell_of(cell)->type;
  PyObject* const r = to_python(t, cell_of(cell)->value);
  drop_cell(cell);
  return r;
}

PyObject* unsent_native(PyObject* cell) noexcept {
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  PyObject* const r = unpack_native(cell);
  if (!r) PyErr_Clear();
  PyErr_Restore(t, v, tb);
  return r;
}

// --- native channels that are wired as well ------------------------------------------------------

PyObject* plain_native(ChannelObject* c, PyObject* value) {
  release_lent();
  const Native n = natives.find(c)->second;
  weft_value v;
  if (to_native(n.type, value, v) < 0) {
    drop_native(v);
    explain(c, n, "a value written to");
    only_failed(c, "write", "converted");
    return nullptr;
  }
  PyObject* const r = to_python(n.type, v);
  drop_native(v);
  return r ? as_sent(r) : nullptr;
}

int value_native(ChannelObject* c, const NativeType* t, PyObject* o, weft_value& to) {
  if (to_native(t, o, to) == 0) return 0;
  drop_native(to);
  const auto at = natives.find(c);
  explain(c, at == natives.end() ? Native{t, "a native component"} : at->second,
          "a value read from");
  return -1;
}

int cells_to_objects(ChannelObject* c) {
  // Until the slot has its new content, no other code may take the value. Therefore no finaliser
  // runs here, and components wait for the GIL.
  const bool collects = PyGC_Disable();
  std::vector<PyObject*> done;  // the replaced cells; views own their arrays now
  int r = 0;
  const auto change = [&](Value& v) {
    if (r < 0 || !v.o || !is_cell(v.o)) return;
    PyObject* const o = to_python(cell_of(v.o)->type, cell_of(v.o)->value);
    if (!o) {
      r = -1;
      return;
    }
    done.push_back(std::exchange(v.o, o));
  };
  c->core.with_lock([&](core::Queue&, core::Queue& writers) {
    for (core::Link* l = writers.front(); l; l = l->next)
      if (auto* const v = static_cast<Value*>(static_cast<core::Node*>(l)->slot)) change(*v);
    if (core::Ring<Value>* ring = c->core.ring)
      for (std::uint32_t i = 0; i < ring->size; ++i)
        change(ring->data[(ring->head + i) % ring->capacity]);
  });
  for (PyObject* cell : done) drop_cell(cell);
  if (collects) PyGC_Enable();
  return r;
}

namespace {
PyObject* f_is_native(PyObject*, PyObject* o) {
  return PyBool_FromLong(Py_IS_TYPE(o, &ChannelType) &&
                         is_native(reinterpret_cast<ChannelObject*>(o)));
}
PyMethodDef cells_functions[] = {{"_is_native", gated<f_is_native>, METH_O, nullptr}, {}};
}  // namespace

int init_cells(PyObject* m) {
  CellType.tp_name = "weft._Cell";
  CellType.tp_basicsize = sizeof(CellObject);
  CellType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  CellType.tp_dealloc = drop_cell;
  return PyType_Ready(&CellType) < 0 ? -1 : PyModule_AddFunctions(m, cells_functions);
}

}  // namespace weft::py
