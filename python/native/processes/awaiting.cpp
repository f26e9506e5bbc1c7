// Handles operations that are left before their wake-up. awaiting.hpp has the invariants.
#include "processes/awaiting.hpp"

#include "interpreter/errors.hpp"
#include "processes/outcome.hpp"

namespace weft::py {

namespace {

struct Kept {
  ProcessObject* process;
  PyObject* operation;  // owned
  Late late;
};
std::vector<Kept> kept;  // such operations are rare

}  // namespace

void Outcome::keep(PyObject* owned) noexcept {
  value_.reset(owned);
  error_.reset(owned ? nullptr : take_exception());
}
PyObject* Outcome::take() noexcept {
  if (error_) restore_exception(error_.release());
  return value_.release();
}

PyObject* being_awaited(const char* verb, ProcessObject* by) {
  if (!by)
    return bad_use(
        "%s is already being awaited: one process or task alone can await an operation; make "
        "another for each",
        verb);
  const Owned path(to_str(runtime::path_of(by->base)));
  if (path)
    bad_use(
        "%s is already being awaited, by %U: one process or task alone can await an operation; "
        "make another for each",
        verb, path.get());
  return nullptr;
}

void keep_until_woken(ProcessObject* p, PyObject* owned, Late late) {
  kept.push_back({p, owned, late});
}

void wake_up_came(ProcessObject* p) noexcept {
  p->owed = 0;
  for (std::size_t i = 0; i < kept.size();) {
    if (kept[i].process != p) {
      ++i;
      continue;
    }
    const Kept k = kept[i];
    const Owned held(k.operation);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    k.late(k.operation, p->base);
    i = 0;  // the calls above might have changed the list
  }
}

void drop_awaited(PyObject* o) noexcept {
  if (Py_IS_TYPE(o, &OpType))
    drop_awaited_operation(o);
  else if (Py_IS_TYPE(o, &SelectOpType))
    drop_awaited_select(o);
  else if (Py_IS_TYPE(o, &GroupOpType))
    drop_awaited_group_wait(o);
  else if (Py_IS_TYPE(o, &SocketOpType))
    drop_awaited_socket(o);
  else
    drop_awaited_call(o);
}

}  // namespace weft::py
