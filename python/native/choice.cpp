#include "native.hpp"
namespace weft::py {
struct SelectMemory {};
void forget_selects(SelectMemory*) noexcept {}
int init_choice(PyObject*) { return 0; }
int init_time(PyObject*) { return 0; }
}
