#include "interpreter/unawaited.hpp"

#include <array>

#include "gate.hpp"
#include "interpreter/errors.hpp"

namespace weft::py {

namespace {

struct Kind {
  PyTypeObject* type;
  VerbOf verb;
  WasAwaited awaited;
};
std::array<Kind, 6> kinds{};
std::size_t number_of_kinds = 0;

const Kind* kind_of(PyObject* o) noexcept {
  for (std::size_t i = 0; i < number_of_kinds; ++i)
    if (kinds[i].type == Py_TYPE(o)) return &kinds[i];
  return nullptr;
}

// Refuses an operation of the interpreter on a and b, at least one of which is an awaitable.
PyObject* refuse(PyObject* a, PyObject* b = nullptr) {
  const Kind* k = kind_of(a);
  if (!k && b) k = kind_of(b);
  return bad_use("%s was not awaited, and is used as its result: write `await` before it",
                 k ? k->verb(k->type == Py_TYPE(a) ? a : b) : "an operation");
}
PyObject* unary(PyObject* a) { return refuse(a); }
PyObject* binary(PyObject* a, PyObject* b) { return refuse(a, b); }
PyObject* ternary(PyObject* a, PyObject* b, PyObject*) { return refuse(a, b); }
int truth(PyObject* a) { return refuse(a), -1; }
Py_ssize_t length(PyObject* a) { return refuse(a), -1; }
int assign(PyObject* a, PyObject*, PyObject*) { return refuse(a), -1; }

// Containers compare awaitables with each other, so comparison is permitted: two awaitables always
// differ.
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (kind_of(b) && (op == Py_EQ || op == Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return refuse(a, b);
}

PyObject* iterate(PyObject* o) {
  const Kind* const k = kind_of(o);
  return k && k->awaited(o) ? Py_NewRef(o) : refuse(o);
}

PyNumberMethods number{};
PyMappingMethods mapping{};

}  // namespace

void refuse_as_result(PyTypeObject& type, VerbOf verb, WasAwaited awaited) {
  kinds.at(number_of_kinds++) = {&type, verb, awaited};
  for (binaryfunc PyNumberMethods::*slot :
       {&PyNumberMethods::nb_add, &PyNumberMethods::nb_subtract, &PyNumberMethods::nb_multiply,
        &PyNumberMethods::nb_remainder, &PyNumberMethods::nb_divmod, &PyNumberMethods::nb_lshift,
        &PyNumberMethods::nb_rshift, &PyNumberMethods::nb_and, &PyNumberMethods::nb_xor,
        &PyNumberMethods::nb_or, &PyNumberMethods::nb_floor_divide,
        &PyNumberMethods::nb_true_divide, &PyNumberMethods::nb_matrix_multiply})
    number.*slot = gated<binary>;
  for (unaryfunc PyNumberMethods::*slot :
       {&PyNumberMethods::nb_negative, &PyNumberMethods::nb_positive, &PyNumberMethods::nb_absolute,
        &PyNumberMethods::nb_invert, &PyNumberMethods::nb_int, &PyNumberMethods::nb_float,
        &PyNumberMethods::nb_index})
    number.*slot = gated<unary>;
  number.nb_power = gated<ternary>;
  number.nb_bool = gated<truth>;
  mapping.mp_length = gated<length>;
  mapping.mp_subscript = gated<binary>;
  mapping.mp_ass_subscript = gated<assign>;
  type.tp_as_number = &number;
  type.tp_as_mapping = &mapping;
  type.tp_richcompare = gated<compare>;
  type.tp_hash = PyBaseObject_Type.tp_hash;
  type.tp_iter = gated<iterate>;
}

}  // namespace weft::py
