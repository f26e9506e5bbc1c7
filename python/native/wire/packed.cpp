// Values under way to another OS process: the bytes of a pickle, and the object from which they
// were made if it was made in this program. Values for a board are CBOR (WIRE-LINKS.md 12.8), which
// weft.serial makes and reads. Values for an untrusted program on another machine are CBOR too
// (WIRE-NETWORKS.md 17.15), which weft.net makes and reads.
//
//   A value of up to kInFrame bytes goes in a frame. A larger one, or one with a buffer of kApart
//   bytes or more (an array), goes as a table in a slot (slot.hpp).
//
// A table has the number of parts, then the length of each part, in 8 bytes each; then the pickle
// and its buffers, each at a multiple of 64 bytes. A plain array has the head of plain.hpp in place
// of the pickle. The receiver of the value uses the buffers in place, and may write to them, since
// no other code refers to them.
//
// An array may already be in a slot, and is sent from there without a copy (places.hpp).
#include "wire/packed.hpp"

#include "channels/marks.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/owners.hpp"
#include "sequences.hpp"
#include "values/cells.hpp"
#include "weft/wire/cbor.hpp"
#include "wire/carries.hpp"
#include "wire/moved.hpp"
#include "wire/places.hpp"
#include "wire/plain.hpp"
#include "wire/shared.hpp"
#include "wire/tables.hpp"
#include "wire/values.hpp"

namespace weft::py {

using tables::aligned;
using tables::parts_of;
using wire::Slot;

namespace {

constexpr Py_ssize_t kInFrame = 65'000, kApart = 16'384;

struct PackedObject {
  // The bytes of the value; null if they are in the slot. For a large typed value this is a
  // bytearray, for a refusal the exception.
  PyObject_HEAD PyObject* bytes;
  PyObject* original;           // the value, if this program has written it; otherwise null
  std::shared_ptr<Slot>* slot;  // null if the value is in `bytes`
  bool table;                   // whether the bytes are a table
  Carries what;                 // the form of the bytes
  AllSealed* sealed;            // the arrays of Shared objects in the value (shared.hpp), or null
  AllMoved* moved;              // the ends of channels in the value (moved.hpp), or null
};

PyTypeObject PackedType{PyVarObject_HEAD_INIT(nullptr, 0)};
// A function of weft._hosts.pickling, (value, channel) -> bytes. It is also used for values that
// pickle refuses.
PyObject* dumps = nullptr;
PyObject* pickle_dumps = nullptr;
PyObject* pickle_loads = nullptr;
PyObject* dumps_keywords = nullptr;  // ("buffer_callback",)
struct CborCodec {
  PyObject* dumps = nullptr;  // (value, channel) -> bytes
  PyObject* loads = nullptr;  // (bytes, channel or None) -> value
};
CborCodec of_boards, of_networks;  // the functions of weft.serial, and those of weft.net
CborCodec& codec_of(Carries what) noexcept {
  return what == Carries::typed ? of_networks : of_boards;
}
PyObject* loads_keywords = nullptr;  // ("buffers",)
// (memoryview) -> an object that pickle accepts instead. A function of weft._hosts.pickling.
PyObject* numbers = nullptr;
PyObject* protocol = nullptr;

PackedObject* packed_of(PyObject* o) noexcept { return reinterpret_cast<PackedObject*>(o); }

// Makes a packed value, which takes ownership of both references.
PyObject* new_packed(Owned<> bytes, std::shared_ptr<Slot> slot, bool table,
                     Owned<> original) noexcept {
  PackedObject* p = PyObject_New(PackedObject, &PackedType);
  if (!p) return nullptr;
  p->bytes = bytes.release();
  p->original = original.release();
  p->slot = slot ? new std::shared_ptr<Slot>(std::move(slot)) : nullptr;
  p->table = table;
  p->what = Carries::pickle;
  p->sealed = nullptr;
  p->moved = nullptr;
  // The thread of a link makes the packed values that it receives. It also drops the packed values
  // that were sent, with the ends in them.
  count_alike(reinterpret_cast<PyObject*>(p));
  return reinterpret_cast<PyObject*>(p);
}

void packed_dealloc(PyObject* o) {
  Py_XDECREF(packed_of(o)->bytes);
  PyObject* const original = packed_of(o)->original;
  const bool of_another = original && made_by_another(original);
  Py_XDECREF(original);
  if (of_another) wake_owners();
  delete packed_of(o)->slot;
  delete packed_of(o)->sealed;
  delete packed_of(o)->moved;
  PyObject_Free(o);
}
// Attaches the ends of channels that travel beside the value.
PyObject* with_moved(PyObject* packed, AllMoved&& all) noexcept {
  if (packed && !all.empty()) packed_of(packed)->moved = new AllMoved(std::move(all));
  return packed;
}
// Attaches the shared arrays that travel beside the value.
PyObject* with_sealed(PyObject* packed, AllSealed&& all) noexcept {
  if (packed && !all.empty()) packed_of(packed)->sealed = new AllSealed(std::move(all));
  return packed;
}

// Returns a part of the bytes as a copy, because the receiver can write to the part.
PyObject* part_of(PyObject* bytes, std::size_t at, std::size_t size) {
  return PyByteArray_FromStringAndSize(PyBytes_AS_STRING(bytes) + at,
                                       static_cast<Py_ssize_t>(size));
}

// --- tables --------------------------------------------------------------------------------------

// The pickle and its buffers, one after another.
class Parts {
 public:
  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    for (Py_buffer& b : views_) PyBuffer_Release(&b);
  }
  bool add(PyObject* o) {
    Py_buffer b;
    if (PyObject_GetBuffer(o, &b, PyBUF_SIMPLE) < 0) return false;
    views_.push_back(b);
    return true;
  }
  std::size_t size() const noexcept {
    std::size_t n = aligned(8 * (views_.size() + 1));
    for (const Py_buffer& b : views_) n += aligned(static_cast<std::size_t>(b.len));
    return n;
  }
  void write(std::byte* to) const noexcept {
    const std::uint64_t n = views_.size();
    std::memcpy(to, &n, 8);
    std::size_t at = aligned(8 * (n + 1));
    for (std::size_t i = 0; i < n; ++i) {
      const auto length = static_cast<std::uint64_t>(views_[i].len);
      std::memcpy(to + 8 * (i + 1), &length, 8);
      if (length) std::memcpy(to + at, views_[i].buf, length);
      at += aligned(length);
    }
  }

 private:
  std::vector<Py_buffer> views_;
};

// Decides whether a buffer is sent beside the pickle. This is the callback of pickle.dumps, bound
// to the list of such buffers.
PyObject* apart(PyObject* list, PyObject* buffer) {
  Py_buffer b;
  // If the buffer is not contiguous, pickle copies it.
  if (PyObject_GetBuffer(buffer, &b, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();
    Py_RETURN_TRUE;
  }
  const bool large = b.len >= kApart;
  PyBuffer_Release(&b);
  if (!large) Py_RETURN_TRUE;
  if (PyList_Append(list, buffer) < 0) return nullptr;
  Py_RETURN_FALSE;
}
PyMethodDef apart_def{"apart", apart, METH_O, nullptr};

// Returns the bytes of a pickle, or the head of an array (plain.hpp); null with an exception on
// failure. `list` receives the buffers that go beside the pickle.
PyObject* pickled(PyObject* value, PyObject* channel, Owned<>& list) {
  if (PyObject* const plain = plain_pickle(value)) return plain;
  if (PyErr_Occurred()) return nullptr;
  Owned bytes(array_head(value, kApart));
  if (bytes) {
    list.reset(PyList_New(1));
    if (list) PyList_SET_ITEM(list.get(), 0, Py_NewRef(value));
    return list ? bytes.release() : nullptr;
  }
  if (PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
      PyFloat_CheckExact(value)) {
    PyObject* const args[] = {value, protocol};
    bytes.reset(PyObject_Vectorcall(pickle_dumps, args, 2, nullptr));
  } else if (list.reset(PyList_New(0)), list) {
    if (const Owned callback(PyCFunction_New(&apart_def, list.get())); callback) {
      PyObject* const args[] = {value, protocol, callback.get()};
      bytes.reset(PyObject_Vectorcall(pickle_dumps, args, 2, dumps_keywords));
    }
  }
  if (bytes ||
      !(PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_GeneratorExit)))
    return bytes.release();
  PyErr_Clear();
  list.reset();
  // This call raises an error whose message explains the problem.
  return PyObject_CallFunctionObjArgs(dumps, value, channel, nullptr);
}

// Packs these bytes and buffers for sending.
PyObject* pack_parts(PyObject* bytes, PyObject* list, PyObject* value, bool given_away) {
  Parts parts;
  const Py_ssize_t n = list ? PyList_GET_SIZE(list) : 0;
  if (!parts.add(bytes)) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!parts.add(PyList_GET_ITEM(list, i))) return nullptr;
  if (n == 1)
    if (std::shared_ptr<Slot> made = of_array(bytes, PyList_GET_ITEM(list, 0), given_away))
      return new_packed({}, std::move(made), true, new_ref(value));
  const std::size_t size = parts.size();
  if (auto slot = Slot::make(size)) {
    parts.write(slot->data());
    return new_packed({}, std::move(slot), true, new_ref(value));
  }
  Owned whole(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!whole) return nullptr;
  parts.write(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(whole.get())));
  return new_packed(std::move(whole), nullptr, true, new_ref(value));
}

// Makes the value of a table of `size` bytes at `data`; `part(at, size)` makes its parts.
template <class Part>
PyObject* load_table(const std::byte* data, std::size_t size, Part&& part) {
  const std::vector<std::pair<std::size_t, std::size_t>> parts = parts_of(data, size);
  if (parts.empty()) return bad_use("a malformed value has come: its parts do not add up");
  const wire::Bytes first{data + parts[0].first, parts[0].second};
  const bool array = parts.size() == 2 && is_array_head(first);
  Owned<> bytes;
  if (!array) bytes.reset(part(parts[0].first, parts[0].second));
  Owned buffers(array || bytes ? PyList_New(0) : nullptr);
  for (std::size_t i = 1; buffers && i < parts.size(); ++i)
    append(buffers, part(parts[i].first, parts[i].second));
  if (!buffers) return nullptr;
  if (array) return array_of(first, PyList_GET_ITEM(buffers.get(), 0));
  PyObject* const args[] = {bytes.get(), buffers.get()};
  return PyObject_Vectorcall(pickle_loads, args, 1, loads_keywords);
}

PyObject* f_set_cbor(PyObject*, PyObject* args) {
  PyObject *d, *l;
  int typed = 0;
  if (!PyArg_ParseTuple(args, "OO|p", &d, &l, &typed)) return nullptr;
  CborCodec& codec = typed ? of_networks : of_boards;
  Py_XSETREF(codec.dumps, Py_NewRef(d));
  Py_XSETREF(codec.loads, Py_NewRef(l));
  Py_RETURN_NONE;
}
// _cbor_fault(bytes, typed): returns the reason why the bytes are not a value for a board's channel
// or, with `typed`, for a program on another machine. Returns None if they are such a value.
PyObject* f_cbor_fault(PyObject*, PyObject* args) {
  PyObject* bytes;
  int typed = 0;
  if (!PyArg_ParseTuple(args, "S|p", &bytes, &typed)) return nullptr;
  const wire::Bytes in(reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(bytes)),
                       static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)));
  const char* const wrong = wire::cbor_fault(in, typed != 0);
  if (!wrong) Py_RETURN_NONE;
  return PyUnicode_FromString(wrong);
}
// _unpacked(packed): unpacks a value that came back from a process that died (WIRE.md 4.7).
PyObject* f_unpacked(PyObject*, PyObject* packed) { return unpack(nullptr, Py_NewRef(packed)); }
PyMethodDef packed_functions[] = {
    {"_set_pickling", gated<keep_given<&dumps, &pickle_dumps, &pickle_loads>>, METH_VARARGS,
     nullptr},
    {"_set_numbers", gated<keep_given<&numbers>>, METH_VARARGS, nullptr},
    {"_set_cbor", gated<f_set_cbor>, METH_VARARGS, nullptr},
    {"_unpacked", gated<f_unpacked>, METH_O, nullptr},
    {"_cbor_fault", gated<f_cbor_fault>, METH_VARARGS, nullptr},
    {}};

PyObject* as_cbor(PyObject* bytes, PyObject* original, Carries what) noexcept {
  Owned given(bytes), its(original);
  PyObject* const packed =
      bytes ? new_packed(std::move(given), nullptr, false, std::move(its)) : nullptr;
  if (packed) packed_of(packed)->what = what;
  return packed;
}
PyObject* pack_cbor(ChannelObject* c, PyObject* value) {
  const Carries what = carries(c);
  PyObject* const bytes = PyObject_CallFunctionObjArgs(codec_of(what).dumps, value,
                                                       reinterpret_cast<PyObject*>(c), nullptr);
  return bytes ? as_cbor(bytes, Py_NewRef(value), what) : nullptr;
}

}  // namespace

bool is_packed(PyObject* o) noexcept { return Py_IS_TYPE(o, &PackedType); }

// Writes the beginning of a value that has shared arrays: the byte 4, three zeros, the number of
// arrays in 4 bytes; then for each its length in 8 bytes, and its wire::Sealed.
constexpr std::byte kSealedMark{4};
#ifdef __linux__
void put_sealed(const AllSealed& all, wire::Buffer& out, wire::Carrier& by) {
  out.assign(4, std::byte{0});
  out[0] = kSealedMark;
  wire::detail::put(out, static_cast<std::uint32_t>(all.size()));
  for (const Sealed& s : all) {
    const std::size_t at = out.size();
    wire::detail::put(out, std::uint64_t{0});
    s->put(out, by);
    const std::uint64_t length = out.size() - at - 8;
    std::memcpy(out.data() + at, &length, 8);
    wire::detail::pad(out);
  }
}
// Reads the shared arrays from the beginning of `in`, and removes their bytes. Returns false if the
// lengths do not fit.
bool take_sealed(wire::Bytes& in, AllSealed& all, wire::Carrier& by) {
  if (in.size() < 8) return false;
  const auto n = wire::detail::get<std::uint32_t>(in.data() + 4);
  in = in.subspan(8);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (in.size() < 8) return false;
    const auto length = wire::detail::get<std::uint64_t>(in.data());
    in = in.subspan(8);
    if (length > in.size() || wire::padded(static_cast<std::size_t>(length)) > in.size())
      return false;
    Sealed s = wire::Sealed::get(in.first(static_cast<std::size_t>(length)), by,
                                 wire::Sealed::Accepts::trusting);
    if (!s) return false;
    all.push_back(std::move(s));
    in = in.subspan(wire::padded(static_cast<std::size_t>(length)));
  }
  return !in.empty();
}
#else
void put_sealed(const AllSealed&, wire::Buffer&, wire::Carrier&) {}
bool take_sealed(wire::Bytes&, AllSealed&, wire::Carrier&) { return false; }
#endif

namespace {
PyObject* packed_from_bytes(const wire::Payload& p, wire::Carrier& by) noexcept;
}
PyObject* packed_from(const wire::Payload& all, wire::Carrier& by) noexcept {
  if (!all.in_body || all.bytes.empty()) return nullptr;
  wire::Payload p = all;
  if (p.bytes[0] == kSealedMark) {
    AllSealed sealed;
    if (!take_sealed(p.bytes, sealed, by) || p.bytes[0] == kSealedMark) return nullptr;
    return with_sealed(packed_from(p, by), std::move(sealed));
  }
  if (p.bytes[0] == kMovedMark) {
    AllMoved moved;
    if (!take_moved(p.bytes, moved, by) || p.bytes[0] == kMovedMark || p.bytes[0] == kSealedMark)
      return nullptr;
    return with_moved(packed_from(p, by), std::move(moved));
  }
  return packed_from_bytes(p, by);
}
namespace {
// Makes the packed value of a payload without shared arrays or ends beside it.
PyObject* packed_from_bytes(const wire::Payload& p, wire::Carrier& by) noexcept {
  std::unique_ptr<Slot> slot;
  const std::byte* data = p.bytes.data();
  std::size_t size = p.bytes.size();
  // In a frame a table begins with the byte 2 and seven zeros. No pickle begins with the byte 2.
  bool table = data[0] == std::byte{2};
  if (Slot::is_described(p.bytes)) {
    if (!(slot = Slot::take(p.bytes, by))) return nullptr;
    if (Slot::crowded())
      Slot::copied.fetch_add(1, std::memory_order_relaxed);
    else if (PyObject* const o = new_packed({}, std::move(slot), true, {}))
      return o;
    if (!slot) return nullptr;
    data = slot->data(), size = slot->size(), table = true;
  } else if (table) {
    if (size < 8) return nullptr;
    data += 8, size -= 8;
  }
  Owned bytes(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(data),
                                        static_cast<Py_ssize_t>(size)));
  if (bytes) count_alike(bytes.get());
  return bytes ? new_packed(std::move(bytes), nullptr, table, {}) : nullptr;
}
}  // namespace

// A large value becomes a bytearray, and an array of numpy is made over it without a copy.
PyObject* cbor_from(const wire::Payload& p, Carries what) noexcept {
  if (!p.in_body || wire::cbor_fault(p.bytes, what == Carries::typed)) return nullptr;
  const auto* const data = reinterpret_cast<const char*>(p.bytes.data());
  const auto size = static_cast<Py_ssize_t>(p.bytes.size());
  const bool large = what == Carries::typed && size >= kApart;
  PyObject* const o =
      large ? PyByteArray_FromStringAndSize(data, size) : PyBytes_FromStringAndSize(data, size);
  if (o) count_alike(o);
  return as_cbor(o, nullptr, what);
}

Coming::~Coming() {
  if (bytes_) defer_decref(bytes_);
}
bool Coming::will_come(Carries what, std::size_t bytes) noexcept {
  if (what != Carries::typed || bytes < static_cast<std::size_t>(kApart) ||
      bytes > wire::detail::kAtOnce || bytes_)
    return false;
  bytes_ = PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes));
  if (!bytes_) PyErr_Clear();
  return bytes_ != nullptr;
}
void Coming::more(wire::Bytes piece) noexcept {
  if (piece.size() > static_cast<std::size_t>(PyByteArray_GET_SIZE(bytes_)) - had_) return;
  if (!piece.empty()) std::memcpy(PyByteArray_AS_STRING(bytes_) + had_, piece.data(), piece.size());
  had_ += piece.size();
}
PyObject* Coming::last(wire::Bytes piece) noexcept {
  more(piece);
  const auto* const data = reinterpret_cast<const std::byte*>(PyByteArray_AS_STRING(bytes_));
  if (had_ != static_cast<std::size_t>(PyByteArray_GET_SIZE(bytes_)) ||
      wire::cbor_fault({data, had_}, true))
    return nullptr;
  PyObject* const o = std::exchange(bytes_, nullptr);
  count_alike(o);
  return as_cbor(o, nullptr, Carries::typed);
}

// The keeper owns the bytes, because the packed value itself might be the last owner of the Python
// object from which it was made. A bytes object runs no code when it is dropped.
wire::Keeper packed_keeper(PyObject* packed) {
  PyObject* const bytes = packed_of(packed)->bytes;
  if (!bytes || !PyBytes_CheckExact(bytes)) return {};  // other code can write to a bytearray
  return {Py_NewRef(bytes), defer_decref};
}

namespace {
wire::Payload out_alone(const PackedObject* p, wire::Buffer& keep, wire::Carrier& by);
}
bool has_ends(PyObject* packed) noexcept {
  return packed_of(packed)->sealed || packed_of(packed)->moved;
}
wire::Payload packed_out(PyObject* packed, wire::Buffer& keep, wire::Carrier& by) {
  const PackedObject* const p = packed_of(packed);
  if (!p->sealed && !p->moved) return out_alone(p, keep, by);
  wire::Buffer rest;
  keep.clear();
  if (p->sealed) put_sealed(*p->sealed, keep, by);
  if (p->moved) put_moved(*p->moved, keep, by);
  const wire::Payload alone = out_alone(p, rest, by);
  keep.insert(keep.end(), alone.bytes.begin(), alone.bytes.end());
  return {0, keep, true, false};
}
namespace {
wire::Bytes bytes_of(const PackedObject* p) noexcept {
  if (p->slot) return {(*p->slot)->data(), (*p->slot)->size()};
  const char* const data =
      PyByteArray_Check(p->bytes) ? PyByteArray_AS_STRING(p->bytes) : PyBytes_AS_STRING(p->bytes);
  return {reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(Py_SIZE(p->bytes))};
}
wire::Payload out_alone(const PackedObject* p, wire::Buffer& keep, wire::Carrier& by) {
  const wire::Bytes all = bytes_of(p);
  const std::byte* const data = all.data();
  const std::size_t size = all.size();
  const bool table = p->slot || p->table;
  if ((table || size > kInFrame) && by.passes()) {
    std::unique_ptr<Slot> made;
    const Slot* slot = p->slot ? p->slot->get() : nullptr;
    if (!slot && table && (made = Slot::make(size))) {
      std::memcpy(made->data(), data, size);
      slot = made.get();
    }
    if (slot && slot->lend_to(by, keep)) return {0, keep, true, false};
  }
  if (!table) return {0, {data, size}, true, false, !p->slot && PyBytes_CheckExact(p->bytes)};
  keep.assign(8, std::byte{0});
  keep[0] = std::byte{2};
  keep.insert(keep.end(), data, data + size);
  return {0, keep, true, false};
}
}  // namespace

PyObject* as_sent(PyObject* view) noexcept {
  if (!PyMemoryView_Check(view)) return view;
  const Owned taken(view);
  return PyObject_CallOneArg(numbers, view);
}

PyObject* pack(ChannelObject* c, PyObject* value, int by_writer) {
  if (is_native(c) && !is_wired(c)) {
    PyObject* const cell = pack_native(c, value);
    if (!cell || !is_wired(c)) return cell;
    // The conversion has run user code, so the channel might have been wired meanwhile. If so, the
    // value must not be sent as a cell.
    value = unpack_native(cell);
    if (!value) return nullptr;
  }
  if (is_packed(value)) return value;
  const bool given_away = is_given_away(value, by_writer);
  const Owned taken(value);
  PyObject* packed = nullptr;
  const Owned sent(is_native(c) ? plain_native(c, value) : Py_NewRef(value));
  if (!sent) return nullptr;
  {
    const OutsideGate beyond;
    Owned<> list;
    AllSealed sealed;
    AllMoved moved;
    const Beside gathers(sealed);
    const Moving moves(moved);
    if (is_board(c)) {
      packed = pack_cbor(c, value);
    } else if (Owned bytes(pickled(sent.get(), reinterpret_cast<PyObject*>(c), list)); bytes) {
      if (PyBytes_GET_SIZE(bytes.get()) > kInFrame || (list && PyList_GET_SIZE(list.get()) > 0))
        packed = pack_parts(bytes.get(), list.get(), value, given_away);
      else
        packed = new_packed(std::move(bytes), nullptr, false, new_ref(value));
    }
    with_sealed(packed, std::move(sealed));
    with_moved(packed, std::move(moved));
  }
  return packed;
}

PyObject* unpack(const ChannelObject* c, PyObject* packed) {
  if (is_cell(packed)) return unpack_native(packed);
  if (!is_packed(packed)) return packed;
  const Owned taken(packed);
  if (PyObject* const why = why_refused(packed)) {
    restore_exception(why);
    return nullptr;
  }
  PyObject* r;
  {
    const OutsideGate beyond;
    const PackedObject* const p = packed_of(packed);
    AllSealed none;
    AllMoved nobody;
    const Beside finds(p->sealed ? *p->sealed : none);
    const Moving comes(p->moved ? *p->moved : nobody);
    if (p->slot) {
      const std::shared_ptr<Slot> slot = *p->slot;
      slot->close_if_crowded();
      r = load_table(slot->data(), slot->size(),
                     [&](std::size_t at, std::size_t size) { return part_of(slot, at, size); });
    } else if (p->table) {
      r = load_table(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(p->bytes)),
                     static_cast<std::size_t>(PyBytes_GET_SIZE(p->bytes)),
                     [&](std::size_t at, std::size_t size) { return part_of(p->bytes, at, size); });
    } else if (p->what == Carries::pickle) {
      r = plain_value(p->bytes);
      if (!r && !PyErr_Occurred()) r = PyObject_CallOneArg(pickle_loads, p->bytes);
    } else {
      PyObject* const at = c ? reinterpret_cast<PyObject*>(const_cast<ChannelObject*>(c)) : Py_None;
      // Makes the value writable, since it belongs to its reader. If another read can receive the
      // value too (an extended read can give it back), the reader receives a copy.
      const Owned whole(PyByteArray_Check(p->bytes) && Py_REFCNT(packed) > 1
                            ? PyBytes_FromObject(p->bytes)
                            : Py_NewRef(p->bytes));
      r = whole ? PyObject_CallFunctionObjArgs(codec_of(p->what).loads, whole.get(), at, nullptr)
                : nullptr;
    }
  }
  return r;
}

PyObject* refusal(PyObject* value, PyObject* why) noexcept {
  return new_packed(Owned(why), nullptr, false, Owned(value));
}
PyObject* why_refused(PyObject* o) noexcept {
  return o && is_packed(o) && packed_of(o)->bytes && PyExceptionInstance_Check(packed_of(o)->bytes)
             ? Py_NewRef(packed_of(o)->bytes)
             : nullptr;
}

PyObject* unsent(PyObject* packed) noexcept {
  if (packed && is_cell(packed)) return unsent_native(packed);
  if (!packed || !is_packed(packed) || !packed_of(packed)->original) return packed;
  const Owned taken(packed);
  return Py_NewRef(packed_of(packed)->original);
}

int init_packed(PyObject* m) {
  PackedType.tp_name = "weft._Packed";
  PackedType.tp_basicsize = sizeof(PackedObject);
  PackedType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PackedType.tp_dealloc = gated<packed_dealloc>;
  if (PyType_Ready(&PackedType) < 0) return -1;
  if (!(dumps_keywords = Py_BuildValue("(s)", "buffer_callback")) ||
      !(loads_keywords = Py_BuildValue("(s)", "buffers")) || !(protocol = PyLong_FromLong(5)))
    return -1;
  return PyModule_AddFunctions(m, packed_functions);
}

}  // namespace weft::py
