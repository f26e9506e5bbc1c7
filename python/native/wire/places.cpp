// Places (parts of slots as buffers), and arrays sent to another OS process without a copy.
#include "wire/places.hpp"

#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include "declare.hpp"
#include "owned.hpp"
#include "wire/giving.hpp"
#include "wire/plain.hpp"
#include "wire/tables.hpp"

namespace weft::py {

using wire::Slot;

namespace {

// The space in a slot in front of a place: for the table, the head, and zeros, which pickle skips.
constexpr std::size_t kFront = 4096, kLengths = tables::aligned(8 * 3);

struct PartObject {
  PyObject_HEAD std::shared_ptr<Slot>* slot;
  std::byte* at;
  Py_ssize_t size;
};
PyTypeObject PartType{PyVarObject_HEAD_INIT(nullptr, 0)};
PartObject* part_of(PyObject* o) noexcept { return reinterpret_cast<PartObject*>(o); }

struct Place {
  std::shared_ptr<Slot> slot;
  std::size_t size;
  // The place of weft.processes.empty that was not sent yet; null for a place of numpy's.
  PartObject* of_empty;
};
std::mutex places_lock;
// The places, by their addresses. Never destroyed: arrays can outlive the program's statics.
auto& places = *new std::unordered_map<const void*, Place>;

// The opcodes with which a Python function calls an object with arguments from its stack, and the
// number of bytes of an instruction. Empty if they are not known.
PyObject* plain_calls = nullptr;  // a bytes object

void part_dealloc(PyObject* o) {
  {
    const std::lock_guard g(places_lock);
    const auto it = places.find(part_of(o)->at);
    if (it != places.end() && it->second.of_empty == part_of(o)) places.erase(it);
  }
  delete part_of(o)->slot;
  PyObject_Free(o);
}
int part_buffer(PyObject* o, Py_buffer* view, int flags) {
  return PyBuffer_FillInfo(view, o, part_of(o)->at, part_of(o)->size, 0, flags);
}
PartObject* new_part(const std::shared_ptr<Slot>& s, std::size_t at, std::size_t size) {
  PartObject* const p = PyObject_New(PartObject, &PartType);
  if (!p) return nullptr;
  p->slot = new std::shared_ptr<Slot>(s);
  p->at = s->data() + at;
  p->size = static_cast<Py_ssize_t>(size);
  return p;
}

// Returns whether the calling Python function has just put the one argument of this call on its
// stack. The result is false for f(*arguments), because a tuple still has the argument then.
bool is_called_plainly() noexcept {
  PyFrameObject* const frame =
      plain_calls && PyBytes_GET_SIZE(plain_calls) > 0 ? PyEval_GetFrame() : nullptr;
  if (!frame) return false;
  PyObject* const f = reinterpret_cast<PyObject*>(frame);
  const Owned at(PyObject_GetAttrString(f, "f_lasti"));
  const Owned code(at ? PyObject_GetAttrString(f, "f_code") : nullptr);
  const Owned bytes(code ? PyObject_GetAttrString(code.get(), "co_code") : nullptr);
  const Py_ssize_t i = bytes ? PyLong_AsSsize_t(at.get()) : -1;
  if (!bytes || !PyBytes_Check(bytes.get()) || i < 0 || i + 1 >= PyBytes_GET_SIZE(bytes.get())) {
    PyErr_Clear();
    return false;
  }
  const char* const now = PyBytes_AS_STRING(bytes.get()) + i;
  return now[1] == 1 && std::memchr(PyBytes_AS_STRING(plain_calls), now[0],
                                    static_cast<std::size_t>(PyBytes_GET_SIZE(plain_calls)));
}

// Returns whether nothing in this program but an array, and the caller, refers to a part of a slot.
bool is_alone_here(PartObject* part) noexcept {
  return Py_REFCNT(part) == 2 && part->slot->use_count() == 1;
}

// Writes the table and the head of an array of `size` bytes in front of the array, which begins at
// `front`. Returns false if there is no room.
bool write_front(Slot& slot, std::size_t front, PyObject* head, std::size_t size) noexcept {
  const auto length = static_cast<std::size_t>(PyBytes_GET_SIZE(head));
  if (front < kLengths || length > front - kLengths) return false;
  const std::uint64_t lengths[] = {2, front - kLengths, static_cast<std::uint64_t>(size)};
  std::memset(slot.data(), 0, front);
  std::memcpy(slot.data(), lengths, sizeof(lengths));
  std::memcpy(slot.data() + kLengths, PyBytes_AS_STRING(head), length);
  return true;
}

// Returns the object that owns the memory of this array: None for an array that has its own memory,
// or the last `base` of views. Returns null if anything else refers to an array of that chain.
Owned<> sole_owner(PyObject* array) {
  Owned at = new_ref(array);
  while (true) {
    Owned base(PyObject_GetAttrString(at.get(), "base"));
    if (!base) PyErr_Clear();
    if (!base || !is_plain_array(base.get())) return base;
    if (Py_REFCNT(base.get()) != 2) return {};  // this function has one, the view the other
    at = std::move(base);
  }
}

// Returns the slot of an array that came from another OS process, or that was sent before.
std::shared_ptr<Slot> of_part(PyObject* head, PyObject* array, const Py_buffer& b) {
  const Owned owner = sole_owner(array);
  if (!owner || !Py_IS_TYPE(owner.get(), &PartType)) return nullptr;
  PartObject* const part = part_of(owner.get());
  // The program that has sent the array keeps its share until it knows that the array was received.
  if (part->at != b.buf || part->size != b.len || !is_alone_here(part) ||
      !(*part->slot)->is_alone())
    return nullptr;
  const std::shared_ptr<Slot> slot = *part->slot;
  const auto parts = tables::parts_of(slot->data(), slot->size());
  const auto front = static_cast<std::size_t>(part->at - slot->data());
  if (parts.size() != 2 || parts[1].first != front ||
      parts[1].second != static_cast<std::size_t>(b.len))
    return nullptr;
  return write_front(*slot, front, head, parts[1].second) ? slot : nullptr;
}

PyMethodDef places_functions[] = {
    {"_place", gated<[](PyObject*, PyObject* bytes) -> PyObject* {
       const std::size_t size = PyLong_AsSize_t(bytes);
       if (PyErr_Occurred()) return nullptr;
       const std::shared_ptr<Slot> slot = size < SIZE_MAX / 2 ? Slot::make(kFront + size) : nullptr;
       if (!slot) Py_RETURN_NONE;
       PartObject* const part = new_part(slot, kFront, size);
       if (!part) return nullptr;
       {
         const std::lock_guard g(places_lock);
         places[part->at] = {slot, size, part};
       }
       const Owned owned(reinterpret_cast<PyObject*>(part));
       return PyMemoryView_FromObject(owned.get());
     }>,
     METH_O, nullptr},
    {"_set_calls", gated<keep_given<&plain_calls>>, METH_VARARGS, nullptr},
    {}};

}  // namespace

void forget_places() noexcept {
  new (&places_lock) std::mutex;  // a thread of the parent might have held the lock
  // The arrays that numpy has made must still free their places, which count as the parent's.
  std::erase_if(places, [](const auto& p) { return p.second.of_empty != nullptr; });
}

PyObject* part_of(const std::shared_ptr<Slot>& s, std::size_t at, std::size_t size) {
  const Owned part(reinterpret_cast<PyObject*>(new_part(s, at, size)));
  return part ? PyMemoryView_FromObject(part.get()) : nullptr;
}

bool is_received_alone(PyObject* base) noexcept {
  return Py_IS_TYPE(base, &PartType) && is_alone_here(part_of(base));
}

thread_local bool moves_now = false;
Moves::Moves() noexcept { moves_now = true; }
Moves::~Moves() { moves_now = false; }

bool is_given_away(PyObject* value, int by_writer) noexcept {
#ifdef Py_GIL_DISABLED
  return false;  // another thread could take a reference meanwhile
#else
  if (by_writer == 0 || Py_REFCNT(value) != by_writer || !is_plain_array(value)) return false;
  // If there is one reference, only the operation has the array. If there are two, the second is on
  // the stack of a caller, which might be any code.
  if (by_writer != 1 && !moves_now && !is_called_plainly()) return false;
  const Owned owner = sole_owner(value);
  return owner && (owner == Py_None || Py_IS_TYPE(owner.get(), &PartType));
#endif
}

std::shared_ptr<Slot> of_array(PyObject* head, PyObject* array, bool given_away) {
  Py_buffer b;
  if (PyObject_GetBuffer(array, &b, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();
    return nullptr;
  }
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard g(places_lock);
    const auto it = places.find(b.buf);
    if (it != places.end() && it->second.size == static_cast<std::size_t>(b.len) &&
        (it->second.of_empty || given_away)) {
      slot = it->second.slot;
      // From now on the array of empty() counts as sent.
      if (it->second.of_empty) places.erase(it);
    }
  }
  if (slot) {
    if (!write_front(*slot, kFront, head, static_cast<std::size_t>(b.len))) slot = nullptr;
  } else if (given_away) {
    slot = of_part(head, array, b);
  }
  PyBuffer_Release(&b);
  return slot;
}

void* take_place(std::size_t size) noexcept try {
  if (size > SIZE_MAX / 2 || !Slot::is_roomy()) return nullptr;
  const std::shared_ptr<Slot> slot = Slot::make(kFront + size);
  if (!slot) return nullptr;
  std::byte* const at = slot->data() + kFront;
  const std::lock_guard g(places_lock);
  places[at] = {slot, size, nullptr};
  return at;
} catch (const std::bad_alloc&) {
  return nullptr;
}
std::size_t place_size(void* at) noexcept {
  const std::lock_guard g(places_lock);
  const auto it = places.find(at);
  return it == places.end() || it->second.of_empty ? 0 : it->second.size;
}
bool drop_place(void* at) noexcept {
  std::shared_ptr<Slot> slot;  // destroyed after the lock is released
  const std::lock_guard g(places_lock);
  const auto it = places.find(at);
  if (it == places.end() || it->second.of_empty) return false;
  slot = std::move(it->second.slot);
  places.erase(it);
  return true;
}

int init_places(PyObject* m) {
  static PyBufferProcs buffer{&part_buffer, nullptr};
  PartType.tp_name = "weft._Part";
  PartType.tp_basicsize = sizeof(PartObject);
  PartType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PartType.tp_dealloc = part_dealloc;
  PartType.tp_as_buffer = &buffer;
  return PyType_Ready(&PartType) < 0 ? -1 : PyModule_AddFunctions(m, places_functions);
}

}  // namespace weft::py
