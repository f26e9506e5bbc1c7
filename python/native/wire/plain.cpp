// Pickles small values, and describes arrays, without a call of `pickle` (plain.hpp).
#include "wire/plain.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "interpreter/errors.hpp"
#include "owned.hpp"

namespace weft::py {

namespace {

// The form of a small pickle, which `pickle` can read and also writes:
//
//  128 5 (the protocol), the opcode, its bytes if it has any, 46 (the end)
constexpr unsigned char kProtocol = 0x80, kFive = 5, kEnd = '.', kByte = 'K', kTwoBytes = 'M',
                        kFourBytes = 'J', kLong = 0x8a, kNone = 'N', kTrue = 0x88, kFalse = 0x89;
}  // namespace

PyObject* plain_pickle(PyObject* value) noexcept {
  unsigned char out[13] = {kProtocol, kFive};
  std::size_t n = 3;
  const auto put = [&](unsigned char what, std::uint64_t bits, std::size_t bytes) {
    out[2] = what;
    for (std::size_t i = 0; i < bytes; ++i) out[n++] = static_cast<unsigned char>(bits >> 8 * i);
  };
  if (PyLong_CheckExact(value)) {
    int beyond = 0;
    const long long v = PyLong_AsLongLongAndOverflow(value, &beyond);
    if (beyond) return nullptr;
    const auto bits = static_cast<std::uint64_t>(v);
    if (v >= 0 && v < 256)
      put(kByte, bits, 1);
    else if (v >= 0 && v < 65'536)
      put(kTwoBytes, bits, 2);
    else if (v >= INT32_MIN && v <= INT32_MAX)
      put(kFourBytes, bits, 4);
    else
      put(kLong, 8, 1), put(kLong, bits, 8);
  } else if (value == Py_None || value == Py_True || value == Py_False) {
    out[2] = value == Py_None ? kNone : value == Py_True ? kTrue : kFalse;
  } else {
    return nullptr;
  }
  out[n++] = kEnd;
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(out), static_cast<Py_ssize_t>(n));
}

static bool may_be_plain(const unsigned char* in, std::size_t size) noexcept {
  return size >= 4 && size <= 13 && in[0] == kProtocol && in[1] == kFive && in[size - 1] == kEnd;
}

PyObject* plain_value(PyObject* pickle) noexcept {
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(pickle));
  const auto* const in = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(pickle));
  if (!may_be_plain(in, size)) return nullptr;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < bytes; ++i) bits |= std::uint64_t{in[at + i]} << 8 * i;
    return bits;
  };
  const auto is = [&](unsigned char code, std::size_t bytes) {
    return in[2] == code && size == bytes;
  };
  if (is(kByte, 5)) return PyLong_FromLong(in[3]);
  if (is(kTwoBytes, 6)) return PyLong_FromLong(static_cast<long>(number(3, 2)));
  if (is(kFourBytes, 8)) return PyLong_FromLong(static_cast<std::int32_t>(number(3, 4)));
  if (is(kLong, 13) && in[3] == 8) return PyLong_FromLongLong(static_cast<long long>(number(4, 8)));
  if (is(kNone, 4)) return Py_NewRef(Py_None);
  return is(kTrue, 4) ? Py_NewRef(Py_True) : is(kFalse, 4) ? Py_NewRef(Py_False) : nullptr;
}

// --- arrays of numpy -----------------------------------------------------------------------------

namespace {

// The head of an array: the byte 5 (no pickle begins with it), the number of dimensions, the length
// of the type's text, five zeros; each dimension in 8 bytes; the text, as in numpy.dtype.str.
constexpr std::byte kArray{5};
constexpr std::size_t kFixed = 8, kMaxDimensions = 32;
constexpr Py_ssize_t kMaxText = 16;

PyObject *name_dtype, *name_str, *name_kind, *name_metadata;  // interned

// Types that have occurred before; they are kept forever. No Python function is called under the
// lock, because without a GIL several threads run this code.
std::atomic<PyTypeObject*> ndarray{nullptr};
std::mutex lock;
std::unordered_map<PyObject*, PyObject*> texts;    // the key is the type; both references are owned
std::unordered_map<std::string, PyObject*> types;  // the key is the text; the reference is owned
// The maximum number of entries of each of these two maps.
constexpr std::size_t kKept = 64;

template <class Map>
PyObject* found(const Map& all, const typename Map::key_type& key) {
  const std::lock_guard g(lock);
  const auto it = all.find(key);
  return it == all.end() ? nullptr : Py_NewRef(it->second);
}

bool is_array(PyObject* o) noexcept {
  PyTypeObject* const type = Py_TYPE(o);
  if (PyTypeObject* const known = ndarray.load(std::memory_order_relaxed)) return type == known;
  // A type that a program defines is a heap type, which numpy.ndarray is not.
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ||
      std::strcmp(type->tp_name, "numpy.ndarray") != 0)
    return false;
  ndarray = reinterpret_cast<PyTypeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(type)));
  return true;
}

// Returns the text of a type of plain numbers; null if the type is another one, or if an exception
// is set.
PyObject* text_of(PyObject* dtype) {
  if (PyObject* const text = found(texts, dtype)) return text;
  const Owned kind(PyObject_GetAttr(dtype, name_kind));
  const Owned metadata(kind ? PyObject_GetAttr(dtype, name_metadata) : nullptr);
  const char* const k =
      kind && PyUnicode_Check(kind.get()) ? PyUnicode_AsUTF8(kind.get()) : nullptr;
  Owned<> text;
  if (k && *k && std::strchr("biufc", *k) && metadata == Py_None)
    text.reset(PyObject_GetAttr(dtype, name_str));
  if (!text || !PyUnicode_Check(text.get()) || PyUnicode_GET_LENGTH(text.get()) > kMaxText)
    return nullptr;
  const std::lock_guard g(lock);
  if (texts.size() < kKept && texts.try_emplace(dtype, text.get()).second)
    Py_INCREF(dtype), Py_INCREF(text.get());
  return text.release();
}

// Returns the type with that text; null with an exception on failure.
PyObject* type_of_text(const std::string& text) {
  if (PyObject* const type = found(types, text)) return type;
  const Owned numpy(PyImport_ImportModule("numpy"));
  Owned type(numpy ? PyObject_CallMethod(numpy.get(), "dtype", "s", text.c_str()) : nullptr);
  const Owned array(type ? PyObject_GetAttrString(numpy.get(), "ndarray") : nullptr);
  if (!array) return nullptr;
  if (!ndarray.load(std::memory_order_relaxed))
    ndarray = reinterpret_cast<PyTypeObject*>(Py_NewRef(array.get()));
  const std::lock_guard g(lock);
  if (types.size() < kKept && types.try_emplace(text, type.get()).second) Py_INCREF(type.get());
  return type.release();
}

}  // namespace

PyObject* array_head(PyObject* value, Py_ssize_t least) {
  if (!is_array(value)) return nullptr;
  Py_buffer b;
  if (PyObject_GetBuffer(value, &b, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    return nullptr;
  }
  PyObject* head = nullptr;
  const auto n = static_cast<std::size_t>(b.ndim);
  const Owned dtype(b.len >= least && n <= kMaxDimensions ? PyObject_GetAttr(value, name_dtype)
                                                          : nullptr);
  const Owned text(dtype ? text_of(dtype.get()) : nullptr);
  if (text) {
    Py_ssize_t length = 0;
    const char* const chars = PyUnicode_AsUTF8AndSize(text.get(), &length);
    head =
        chars ? PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(kFixed + 8 * n) + length)
              : nullptr;
    if (head) {
      char* const to = PyBytes_AS_STRING(head);
      std::memset(to, 0, kFixed);
      to[0] = static_cast<char>(kArray);
      to[1] = static_cast<char>(n);
      to[2] = static_cast<char>(length);
      for (std::size_t i = 0; i < n; ++i) {
        const auto d = static_cast<std::uint64_t>(b.shape[i]);
        std::memcpy(to + kFixed + 8 * i, &d, 8);
      }
      std::memcpy(to + kFixed + 8 * n, chars, static_cast<std::size_t>(length));
    }
  }
  PyBuffer_Release(&b);
  if (!head) PyErr_Clear();  // pickle handles the array, and will report the error
  return head;
}

bool is_array_head(wire::Bytes head) noexcept { return !head.empty() && head[0] == kArray; }

PyObject* array_of(wire::Bytes head, PyObject* buffer) {
  const std::size_t n = head.size() < kFixed ? 0 : static_cast<std::size_t>(head[1]);
  const std::size_t length = head.size() < kFixed ? 0 : static_cast<std::size_t>(head[2]);
  if (length == 0 || length > static_cast<std::size_t>(kMaxText) || n > kMaxDimensions ||
      head.size() < kFixed + 8 * n + length)
    return bad_use("a malformed value has come: the head of an array does not add up");
  const Owned type(type_of_text(
      std::string(reinterpret_cast<const char*>(head.data()) + kFixed + 8 * n, length)));
  const Owned shape(type ? PyTuple_New(static_cast<Py_ssize_t>(n)) : nullptr);
  bool good = shape != nullptr;
  for (std::size_t i = 0; good && i < n; ++i) {
    std::uint64_t d;
    std::memcpy(&d, head.data() + kFixed + 8 * i, 8);
    PyObject* const number = PyLong_FromUnsignedLongLong(d);
    good = number != nullptr;
    PyTuple_SET_ITEM(shape.get(), static_cast<Py_ssize_t>(i), number);
  }
  PyObject* const args[] = {shape.get(), type.get(), buffer};
  PyObject* const value =
      good ? PyObject_Vectorcall(reinterpret_cast<PyObject*>(ndarray.load()), args, 3, nullptr)
           : nullptr;
  return value;
}

int init_plain(PyObject*) {
  name_dtype = PyUnicode_InternFromString("dtype");
  name_str = PyUnicode_InternFromString("str");
  name_kind = PyUnicode_InternFromString("kind");
  name_metadata = PyUnicode_InternFromString("metadata");
  return name_dtype && name_str && name_kind && name_metadata ? 0 : -1;
}

}  // namespace weft::py
