// Blocks of native values, and arrays: those lent to a component, and views of a component's own
// arrays (native_types.hpp).
//
//   Python's array ──lend(): its buffer is exported, or its tensor taken──► Lent ──give_back_lent() by any thread──► lent_back
//        ──release_lent(), with the GIL──► given back
//   a component's array ──view_of()──► memoryview of an ArrayObject, which has the block
#include <algorithm>
#include <memory>
#include <mutex>

#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/numbers_alone.hpp"
#include "owned.hpp"
#include "values/native_type.hpp"
#include "values/native_types.hpp"
#include "weft/prim.hpp"
#include "wire/giving.hpp"

namespace weft::py {

namespace {

struct alignas(16) BlockHead {
  void (*give_back)(void* block) noexcept;  // null if the block is plain memory
  // Blocks that are released with this one: a list linked by `next` and `before`.
  BlockHead* parts;
  BlockHead *next, *before;
};
BlockHead* head_of(void* block) noexcept { return static_cast<BlockHead*>(block) - 1; }

struct DLManaged;
struct Loan {    // exists while the debug mode is on
  Owned<> note;  // the lender and the place of the loan, for the debug mode
  // The checksum of the numbers during the time in which nothing may change them.
  std::uint64_t sum;
  std::string touched;  // how a change was noticed; empty if there was none
  std::string holder;   // the process that has the array, or that had it last
};
struct Lent {  // a block that lends an array
  weft_array array;
  Py_buffer view;
  DLManaged* tensor;  // null if the array came by the buffer protocol
  bool constant;
  Loan* loan;  // null if the debug mode is off
};
prim::atomic<bool> watching{false};
// Two Python functions: (value, channel) -> note, and (note, text).
PyObject *note_loan = nullptr, *tell_loan = nullptr;

std::uint64_t sum_of(const weft_buffer& b) noexcept {
  std::uint64_t h = b.bytes, w = 0;
  const char* p = static_cast<const char*>(b.data);
  std::uint64_t left = b.bytes;
  for (; left >= 8; left -= 8, p += 8) {
    std::memcpy(&w, p, 8);
    h = (h ^ w) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
  }
  w = 0;
  if (left) std::memcpy(&w, p, left);
  return (h ^ w) * 0x9E3779B97F4A7C15ull;
}
void compare(Lent* l, const std::string& when) {
  if (l->loan->touched.empty() && sum_of(l->array.buffer) != l->loan->sum) l->loan->touched = when;
}
prim::Mutex lent_lock;
std::vector<Lent*> lent_back;  // protected by lent_lock
prim::atomic<bool> any_back{false};

int release_when_called(void*) {
  release_lent();
  return 0;
}
// This function can be called without the GIL, and under a lock of the core, where no finaliser can
// run.
void give_back_lent(void* block) noexcept {
  bool first;
  {
    const std::lock_guard g(lent_lock);
    first = lent_back.empty();
    lent_back.push_back(static_cast<Lent*>(block));
    any_back.store(true, std::memory_order_release);
  }
  // If the call cannot be queued, the next safe point of any thread releases the blocks.
  if (first) Py_AddPendingCall(gated<release_when_called>, nullptr);
}

// --- the buffer protocol -------------------------------------------------------------------------

// Returns the type of the numbers in a format of the buffer protocol: i, u or f; 0 for an unknown
// format.
char kind_of_format(const char* f) noexcept {
  if (!f) return 'u';
  if (*f && std::strchr("@=<", *f)) ++f;  // the byte order of this machine
  if (!*f || f[1]) return 0;
  return std::strchr("bhilqn", *f)   ? 'i'
         : std::strchr("BHILQN", *f) ? 'u'
         : std::strchr("fd", *f)     ? 'f'
                                     : 0;
}
char kind_of(const NativeType* t) noexcept {
  return t->code == 'f' || t->code == 'd' ? 'f' : t->code < 'a' ? 'u' : 'i';
}

// A type with one dimension accepts an array of any shape, and reads its numbers in memory order.
int take_shape(const NativeType* t, PyObject* v, int dimensions, const Py_ssize_t* extents,
               Lent* l) {
  if (t->dimensions == 1) return 0;
  if (dimensions != t->dimensions) {
    PyErr_Format(PyExc_TypeError, "expected %s, but this %.100s has %d dimension%s",
                 describe(t).c_str(), Py_TYPE(v)->tp_name, dimensions, dimensions == 1 ? "" : "s");
    return -1;
  }
  for (int i = 0; i < dimensions; ++i) l->array.extents[i] = static_cast<std::uint64_t>(extents[i]);
  return 0;
}

int lend_buffer(const NativeType* t, PyObject* v, Lent* l) {
  if (const std::string more = more_than_numbers(v); !more.empty()) {
    PyErr_Format(PyExc_TypeError, "expected %s: %s", describe(t).c_str(), more.c_str());
    return -1;
  }
  if (PyObject_GetBuffer(v, &l->view,
                         (t->constant ? 0 : PyBUF_WRITABLE) | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) <
      0) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
      return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "expected %s, but %R of type %.100s is not contiguous memory%s: make a copy of it",
                 describe(t).c_str(), v, Py_TYPE(v)->tp_name,
                 t->constant ? "" : " that may be written to");
    return -1;
  }
  if (kind_of_format(l->view.format) != kind_of(t) ||
      static_cast<std::size_t>(l->view.itemsize) != t->item()) {
    PyErr_Format(PyExc_TypeError,
                 "expected %s, but the items of %.100s are of format '%s', %zd bytes each",
                 describe(t).c_str(), Py_TYPE(v)->tp_name, l->view.format ? l->view.format : "B",
                 l->view.itemsize);
  } else if (take_shape(t, v, l->view.ndim, l->view.shape, l) == 0) {
    l->array.buffer = {l->view.buf, static_cast<std::uint64_t>(l->view.len)};
    return 0;
  }
  PyBuffer_Release(&l->view);
  return -1;
}

// --- DLPack --------------------------------------------------------------------------------------
// A capsule "dltensor" holds a DLManaged. A consumer that takes the tensor out renames the capsule
// to show that it has done so, and later calls the deleter.

struct DLTensor {
  void* data;
  std::int32_t device_type, device_id;
  std::int32_t dimensions;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;  // in items; null means row by row
  std::uint64_t byte_offset;
};
struct DLManaged {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManaged*);
};
constexpr long kCpu = 1;

bool contiguous(const DLTensor& d) noexcept {
  std::int64_t step = 1;
  for (int i = d.dimensions - 1; d.strides && i >= 0; --i) {
    if (d.shape[i] != 1 && d.strides[i] != step) return false;
    step *= d.shape[i];
  }
  return true;
}

int take_tensor(const NativeType* t, PyObject* v, const DLTensor& d, Lent* l) {
  constexpr char kinds[] = {'i', 'u', 'f'};
  const char kind = d.lanes == 1 && d.code < std::size(kinds) ? kinds[d.code] : 0;
  if (kind != kind_of(t) || d.bits != 8 * t->item()) {
    constexpr const char* names[] = {"int", "uint", "float"};  // by DLPack's code
    if (d.lanes != 1)
      PyErr_Format(PyExc_TypeError,
                   "expected %s, but each item of this %.100s is a vector of %d numbers",
                   describe(t).c_str(), Py_TYPE(v)->tp_name, d.lanes);
    else if (d.code < std::size(names))
      PyErr_Format(PyExc_TypeError,
                   "expected %s, but the items of this %.100s are %s%d: convert it first",
                   describe(t).c_str(), Py_TYPE(v)->tp_name, names[d.code], d.bits);
    else
      PyErr_Format(
          PyExc_TypeError,
          "expected %s, but the items of this %.100s are of DLPack's code %d, %d bits each",
          describe(t).c_str(), Py_TYPE(v)->tp_name, d.code, d.bits);
    return -1;
  }
  if (!contiguous(d)) {
    PyErr_Format(PyExc_TypeError,
                 "expected %s, but this %.100s is not contiguous memory: make a copy of it",
                 describe(t).c_str(), Py_TYPE(v)->tp_name);
    return -1;
  }
  const std::vector<Py_ssize_t> extents(d.shape, d.shape + std::max(d.dimensions, 0));
  std::uint64_t count = 1;
  for (const Py_ssize_t n : extents) count *= static_cast<std::uint64_t>(n);
  l->array.buffer = {static_cast<char*>(d.data) + d.byte_offset, count * t->item()};
  return take_shape(t, v, d.dimensions, extents.data(), l);
}

// Lends a tensor. Returns 1 if `v` does not support DLPack.
int lend_tensor(const NativeType* t, PyObject* v, Lent* l) {
  if (!PyObject_HasAttrString(v, "__dlpack__") || !PyObject_HasAttrString(v, "__dlpack_device__"))
    return 1;
  const Owned device(PyObject_CallMethod(v, "__dlpack_device__", nullptr));
  long type = 0, number = 0;
  if (!device || !PyArg_ParseTuple(device.get(), "ll", &type, &number)) return -1;
  if (type != kCpu) {
    PyErr_Format(PyExc_TypeError,
                 "expected %s, but this %.100s is on another device (DLPack device type %ld): "
                 "copy it to the CPU",
                 describe(t).c_str(), Py_TYPE(v)->tp_name, type);
    return -1;
  }
  // The capsule's destructor gives the tensor back, unless the capsule has been renamed.
  const Owned capsule(PyObject_CallMethod(v, "__dlpack__", nullptr));
  auto* const managed =
      capsule ? static_cast<DLManaged*>(PyCapsule_GetPointer(capsule.get(), "dltensor")) : nullptr;
  if (!managed) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "expected %s, but this %.100s does not lend memory that may be written to: make "
                 "a copy of it",
                 describe(t).c_str(), Py_TYPE(v)->tp_name);
    return -1;
  }
  if (take_tensor(t, v, managed->tensor, l) < 0 ||
      PyCapsule_SetName(capsule.get(), "used_dltensor") < 0)
    return -1;
  l->tensor = managed;
  return 0;
}

// --- what a component has written ----------------------------------------------------------------

struct ArrayObject {  // the exporter of a memoryview
  PyObject_HEAD void* block;
  const NativeType* type;
  Py_ssize_t count;
  Py_ssize_t shape[6], strides[6];
  char format[2];
};
PyTypeObject ArrayType{PyVarObject_HEAD_INIT(nullptr, 0)};
void array_dealloc(PyObject* o) {
  release_block(reinterpret_cast<ArrayObject*>(o)->block);
  PyObject_Free(o);
}
int array_buffer(PyObject* o, Py_buffer* view, int flags) {
  auto* const a = reinterpret_cast<ArrayObject*>(o);
  static char nothing[8];
  void* const data = a->block ? static_cast<weft_buffer*>(a->block)->data : nothing;
  const auto item = static_cast<Py_ssize_t>(a->type->item());
  if (PyBuffer_FillInfo(view, o, data, a->count * item, a->type->constant, flags) < 0) return -1;
  view->itemsize = item;
  if (flags & PyBUF_FORMAT) view->format = a->format;
  if ((flags & PyBUF_ND) != PyBUF_ND) return 0;
  view->ndim = a->type->dimensions;
  view->shape = a->shape;
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = a->strides;
  return 0;
}

}  // namespace

void loan_moves(void* block, const char* process, const char* component, bool taken) {
  if (!block || !watching.load(std::memory_order_relaxed)) [[likely]]
    return;
  for (BlockHead* p = head_of(block)->parts; p; p = p->next)
    loan_moves(p + 1, process, component, taken);
  if (head_of(block)->give_back != &give_back_lent) return;
  auto* const l = static_cast<Lent*>(block);
  if (!l->loan) return;
  const std::string who = std::string("process ") + process + " of component " + component;
  if (taken)
    compare(l, "before " + who + " had it");
  else if (l->constant)
    compare(l, "while " + who + " had it, which only reads it");
  else
    l->loan->sum = sum_of(l->array.buffer);
  l->loan->holder = taken ? who : "";
}

namespace {
// Ends the loan; needs the GIL.
void end_loan(Lent* l, const char* how) {
  if (!l->loan) return;
  const std::unique_ptr<Loan> loan(std::exchange(l->loan, nullptr));
  if (loan->touched.empty() && (loan->holder.empty() || l->constant) &&
      sum_of(l->array.buffer) != loan->sum)
    loan->touched =
        loan->holder.empty() ? how : "while " + loan->holder + " had it, which only reads it";
  const SavedException kept;
  if (!loan->touched.empty() && tell_loan) {
    const Owned r(PyObject_CallFunction(tell_loan, "Os", loan->note.get(), loan->touched.c_str()));
    if (!r) PyErr_WriteUnraisable(tell_loan);
  }
}

PyObject* f_watch_loans(PyObject*, PyObject* args) {
  PyObject *note, *tell;
  if (!PyArg_ParseTuple(args, "OO", &note, &tell)) return nullptr;
  Py_XSETREF(note_loan, note == Py_None ? nullptr : Py_NewRef(note));
  Py_XSETREF(tell_loan, note == Py_None ? nullptr : Py_NewRef(tell));
  watching.store(note != Py_None, std::memory_order_relaxed);
  Py_RETURN_NONE;
}
PyMethodDef native_arrays_functions[] = {
    {"_watch_loans", gated<f_watch_loans>, METH_VARARGS, nullptr}, {}};
}  // namespace

int check_only(PyObject* v) {
  const char* why = nullptr;
#if PY_VERSION_HEX >= 0x030E0000
  const bool only = PyUnstable_Object_IsUniqueReferencedTemporary(v) != 0;
#else
  const bool only = Py_REFCNT(v) == 1;
#endif
  if (!PyObject_CheckBuffer(v)) {
    why = "it has no buffer of Python's protocol, so it is not known who else has its memory";
  } else if (!only) {
    why =
        "somebody else refers to it, perhaps a variable here: write what was just made, or popped";
  } else if (PyMemoryView_Check(v)) {
    PyObject* const of = PyMemoryView_GET_BUFFER(v)->obj;
    if (of && Py_REFCNT(of) > 1) why = "it is a view of memory that somebody else refers to";
    // An array of numpy has this attribute.
  } else if (const Owned base(PyObject_GetAttrString(v, "base")); base) {
    if (base != Py_None && !is_received_alone(base.get()))
      why = "it is a view of another array: write that, or a copy";
  } else {
    PyErr_Clear();
  }
  if (!why) return 0;
  bad_use(
      "write(move=True) needs the only reference to an array, and for this %.100s it is not: %s",
      Py_TYPE(v)->tp_name, why);
  return -1;
}

PyObject* view_of(const NativeType* t, weft_value& v) {
  if (v.block && head_of(v.block)->give_back == &give_back_lent)
    end_loan(static_cast<Lent*>(v.block), "on its way back to Python");
  const Owned a(PyObject_New(ArrayObject, &ArrayType));
  if (!a) {
    drop_native(v);
    return nullptr;
  }
  a->block = std::exchange(v.block, nullptr);
  a->type = t;
  a->count = static_cast<Py_ssize_t>(v.bits);
  a->format[0] = t->code;
  a->format[1] = 0;
  const auto* const array = static_cast<const weft_array*>(a->block);
  auto step = static_cast<Py_ssize_t>(t->item());
  for (int i = t->dimensions - 1; i >= 0; --i) {
    a->shape[i] = t->dimensions == 1 ? a->count
                  : array            ? static_cast<Py_ssize_t>(array->extents[i])
                                     : 0;
    a->strides[i] = step;
    step *= a->shape[i];
  }
  return PyMemoryView_FromObject(reinterpret_cast<PyObject*>(a.get()));
}

int lend(const NativeType* t, PyObject* v, weft_value& to) {
  void* const memory = allocate_block(sizeof(Lent));
  if (!memory) {
    PyErr_NoMemory();
    return -1;
  }
  auto* const l = new (memory) Lent{};
  l->constant = t->constant;
  int r = PyObject_CheckBuffer(v) ? lend_buffer(t, v, l) : lend_tensor(t, v, l);
  if (r != 0) {
    release_block(memory);
    return r < 0 ? -1 : refuse(t, v);
  }
  head_of(memory)->give_back = &give_back_lent;
  if (watching.load(std::memory_order_relaxed)) [[unlikely]] {
    Owned note(note_loan
                   ? PyObject_CallFunction(note_loan, "OO", v, lending_to ? lending_to : Py_None)
                   : nullptr);
    if (note)
      l->loan = new Loan{std::move(note), sum_of(l->array.buffer), {}, {}};
    else
      PyErr_WriteUnraisable(v);
  }
  to = {l->array.buffer.bytes / t->item(), memory};
  return 0;
}

// --- blocks --------------------------------------------------------------------------------------

void* allocate_block(std::size_t bytes) noexcept {
  auto* const h = static_cast<BlockHead*>(std::malloc(sizeof(BlockHead) + bytes));
  if (!h) return nullptr;
  *h = {};
  return h + 1;
}
void release_block(void* block) noexcept {
  if (!block) return;
  while (BlockHead* const p = head_of(block)->parts) {
    take_part(block, p + 1);
    release_block(p + 1);
  }
  if (const auto give_back = head_of(block)->give_back) return give_back(block);
  std::free(head_of(block));
}
void keep_part(void* block, void* part) noexcept {
  if (!block || !part) return;
  BlockHead *const h = head_of(block), *const p = head_of(part);
  p->next = h->parts;
  p->before = nullptr;
  if (h->parts) h->parts->before = p;
  h->parts = p;
}
void take_part(void* block, void* part) noexcept {
  if (!block || !part) return;
  BlockHead *const h = head_of(block), *const p = head_of(part);
  (p->before ? p->before->next : h->parts) = p->next;
  if (p->next) p->next->before = p->before;
  p->next = p->before = nullptr;
}
void release_lent() noexcept {
  if (!any_back.load(std::memory_order_acquire)) [[likely]]
    return;
  std::vector<Lent*> all;
  {
    const std::lock_guard g(lent_lock);
    all.swap(lent_back);
    any_back.store(false, std::memory_order_release);
  }
  const OutsideGate beyond;
  for (Lent* l : all) {
    end_loan(l, "before anybody had it");
    if (!l->tensor)
      PyBuffer_Release(&l->view);
    else if (l->tensor->deleter)
      l->tensor->deleter(l->tensor);
    std::free(head_of(l));
  }
}

int init_native_arrays(PyObject* m) {
  static PyBufferProcs buffer{&array_buffer, nullptr};
  ArrayType.tp_name = "weft.native.Array";
  ArrayType.tp_basicsize = sizeof(ArrayObject);
  ArrayType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ArrayType.tp_dealloc = array_dealloc;
  ArrayType.tp_as_buffer = &buffer;
  return PyType_Ready(&ArrayType) < 0 ? -1 : PyModule_AddFunctions(m, native_arrays_functions);
}

}  // namespace weft::py
