// Questions that other programs ask over sessions, and this program's own rounds of questions
// (WIRE.md 10.6, 10.8). wire/everywhere.hpp evaluates the answers, both for programs in Python and
// for programs in C++.
//
// rounds.py (weft/_distributed_deadlock/rounds.py) composes this program's answer. It must first
// ask this program's hosts, so it runs on a thread that may wait. This file keeps the news for that
// thread, and rings the thread's bell.
//
//   ASK ──asked_first()──► news ──the bell──► rounds.py: _rounds_news() … _rounds_say() ──► SAID
//   _rounds_ask() … _rounds_say() ──the answers: found()──► news ──the bell──► rounds.py
//   TELL, or _rounds_tell() here ──► runs are condemned; news ──the bell──► rounds.py, which calls
//   _declare_deadlock() to carry it out
//
// Invariants
// - The news is read and changed only in a step of the space, which is taken with the GIL.
// - A run is condemned within the step in which the deadlock is announced. The first program that
//   learns of the deadlock releases the ends of its run. The frames that report this arrive over
//   the same session, and must not let a run here end without an error.
// - A run stays condemned until take_condemned() takes it, or until the run ends.
#include "rounds/rounds.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/lock.hpp"
#include "processes/run.hpp"
#include "rounds/facts.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"
#include "weft/wire/asking.hpp"
#include "weft/wire/everywhere.hpp"

namespace weft::py {

namespace {

using wire::Buffer;
using wire::Bytes;
using wire::Everywhere;

class Questions final : public wire::Asking {
 public:
  Questions(std::shared_ptr<wire::Space> s, int bell) : Asking(std::move(s)), bell_(bell) {}
  wire::Space& space() const noexcept { return *space_; }

  struct News {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> asked;
    std::optional<std::uint32_t> round;  // the number of this program's round that has ended
    Buffer found;
    bool whole = false;
    // The announced deadlocks, each with a list (owned) of the processes that waited here.
    std::vector<std::pair<Buffer, PyObject*>> told;
  };
  News news;
  std::set<PyRun*> condemned;

  // Condemns the runs of a knot. Appends the processes that waited in these runs to the list `who`
  // (facts_at_rest()).
  void condemn(Bytes what, PyObject* who = nullptr) {
    const auto k = Everywhere::Knot::get(what);
    if (!k) return;
    for (PyRun* r : every_run()) {
      if (!r->run.detect_deadlock || !r->run.waits_for_links()) continue;
      const Owned facts(who ? facts_at_rest(*r) : nullptr);
      if (r->run.condemn(k->text, k->paths)) {
        condemned.insert(r);
        if (facts) PyList_Append(who, facts.get());
      }
    }
  }

 private:
  void asked_first(std::uint64_t asker, std::uint32_t round) override {
    news.asked.emplace_back(asker, round);
    ring();
  }
  void found(std::uint32_t round, Bytes all, bool whole) override {
    news.round = round;
    news.found.assign(all.begin(), all.end());
    news.whole = whole;
    ring();
  }
  void on_tell(Bytes what) override {
    PyObject* const who = PyList_New(0);
    condemn(what, who);
    news.told.emplace_back(Buffer(what.begin(), what.end()), who);
    ring();
  }
  // The write does not block. If the pipe is full, the thread has already been woken.
  void ring() const noexcept { [[maybe_unused]] const auto n = ::write(bell_, "?", 1); }

  const int bell_;
};

Questions* questions = nullptr;  // lives as long as the program

Bytes bytes_of(const Py_buffer& b) noexcept {
  return {static_cast<const std::byte*>(b.buf), static_cast<std::size_t>(b.len)};
}
PyObject* to_bytes(const Buffer& b) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(b.data()),
                                   static_cast<Py_ssize_t>(b.size()));
}
// Holds a Python buffer while the object lives.
struct Given : Py_buffer {
  Given() { obj = nullptr; }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  ~Given() {
    if (obj) PyBuffer_Release(this);
  }
};
PyObject* knot_of(const Everywhere::Knot& k) {
  Owned paths(PyList_New(0));
  for (const std::string& p : k.paths)
    if (paths) append(paths, to_str(p));
  return Py_BuildValue("NN", to_str(k.text), paths.release());
}

// _rounds_answer(bell, name): from now on, new links announce that this program answers. All news
// is in _rounds_news(), and a byte `?` is written to the descriptor `bell`.
PyObject* f_answer(PyObject*, PyObject* args) {
  int bell;
  const char* name;
  if (!PyArg_ParseTuple(args, "is", &bell, &name)) return nullptr;
  if (!questions) questions = new Questions(space_named(name), bell);
  Py_RETURN_NONE;
}
// _rounds_news(): returns the news since the last call: ([(asker, its round)], None or (this
// program's round that has ended, the answers, whether all have answered), [(the announcement, the
// processes that waited in the runs that it condemned, in the form of _facts())]).
PyObject* f_news(PyObject*, PyObject*) {
  Questions::News news;
  if (questions) {
    const wire::Space::Step step(questions->space());
    news = std::exchange(questions->news, {});
  }
  Owned asked(PyList_New(0)), told(PyList_New(0));
  for (const auto& [who, round] : news.asked)
    if (asked) append(asked, Py_BuildValue("KI", static_cast<unsigned long long>(who), round));
  for (const auto& [what, who] : news.told) append(told, Py_BuildValue("NN", to_bytes(what), who));
  PyObject* const found = news.round ? Py_BuildValue("INO", *news.round, to_bytes(news.found),
                                                     news.whole ? Py_True : Py_False)
                                     : Py_NewRef(Py_None);
  return Py_BuildValue("NNN", asked.release(), found, told.release());
}
PyObject* no_questions() { return bad_use("rounds: this program does not answer them yet"); }
// _rounds_ask(): begins a round that asks whether all wait. Returns (this program's incarnation,
// the number of the round). _rounds_say() must follow.
PyObject* f_ask(PyObject*, PyObject*) {
  if (!questions) return no_questions();
  const wire::Space::Step step(questions->space());
  return Py_BuildValue("KI", static_cast<unsigned long long>(questions->me()),
                       questions->ask(false));
}
// _rounds_say(asker, its round, this program's answer, whether everything that this program knows
// waits, whether this program knows everything): gives this program's answer.
PyObject* f_say(PyObject*, PyObject* args) {
  unsigned long long who;
  unsigned round;
  Given said;
  int waits, whole;
  if (!PyArg_ParseTuple(args, "KIy*pp", &who, &round, static_cast<Py_buffer*>(&said), &waits,
                        &whole))
    return nullptr;
  if (!questions) return no_questions();
  const wire::Space::Step step(questions->space());
  questions->say(who, round, bytes_of(said), waits != 0, whole != 0);
  Py_RETURN_NONE;
}
// _rounds_tell(what): announces a deadlock, in the form of _rounds_knot(), to all programs, and to
// this one. _declare_deadlock() must follow.
PyObject* f_tell(PyObject*, PyObject* args) {
  Given what;
  if (!PyArg_ParseTuple(args, "y*", static_cast<Py_buffer*>(&what))) return nullptr;
  if (!questions) return no_questions();
  const wire::Space::Step step(questions->space());
  questions->tell(bytes_of(what));
  questions->condemn(bytes_of(what));
  Py_RETURN_NONE;
}

// --- what follows from the answers of a round ----------------------------------------------------

// _rounds_still(answers, whole): returns whether all programs are at a standstill, with nothing
// under way between them.
PyObject* f_still(PyObject*, PyObject* args) {
  Given all;
  int whole;
  if (!PyArg_ParseTuple(args, "y*p", static_cast<Py_buffer*>(&all), &whole)) return nullptr;
  return PyBool_FromLong(Everywhere::get(bytes_of(all), whole != 0).stands_still());
}
// _rounds_moved(first, second): returns whether anything has happened between these two answers.
PyObject* f_moved(PyObject*, PyObject* args) {
  Given first, second;
  if (!PyArg_ParseTuple(args, "y*y*", static_cast<Py_buffer*>(&first),
                        static_cast<Py_buffer*>(&second)))
    return nullptr;
  return PyBool_FromLong(Everywhere::get(bytes_of(second), true)
                             .has_moved_since(Everywhere::get(bytes_of(first), true)));
}
// _rounds_knot(answers): returns (the report, [path of the knot]), both in the form of a TELL.
PyObject* f_knot(PyObject*, PyObject* args) {
  Given all;
  if (!PyArg_ParseTuple(args, "y*", static_cast<Py_buffer*>(&all))) return nullptr;
  const Everywhere::Knot k = Everywhere::get(bytes_of(all), true).knot();
  return Py_BuildValue("NN", knot_of(k), to_bytes(k.encoded()));
}
// _rounds_told(what): returns (the report, [path of the knot]), or None if `what` is no TELL.
PyObject* f_told(PyObject*, PyObject* args) {
  Given what;
  if (!PyArg_ParseTuple(args, "y*", static_cast<Py_buffer*>(&what))) return nullptr;
  const auto k = Everywhere::Knot::get(bytes_of(what));
  if (!k) Py_RETURN_NONE;
  return knot_of(*k);
}
PyMethodDef rounds_functions[] = {{"_rounds_answer", gated<f_answer>, METH_VARARGS, nullptr},
                                  {"_rounds_news", gated<f_news>, METH_NOARGS, nullptr},
                                  {"_rounds_ask", gated<f_ask>, METH_NOARGS, nullptr},
                                  {"_rounds_say", gated<f_say>, METH_VARARGS, nullptr},
                                  {"_rounds_tell", gated<f_tell>, METH_VARARGS, nullptr},
                                  {"_rounds_still", gated<f_still>, METH_VARARGS, nullptr},
                                  {"_rounds_moved", gated<f_moved>, METH_VARARGS, nullptr},
                                  {"_rounds_knot", gated<f_knot>, METH_VARARGS, nullptr},
                                  {"_rounds_told", gated<f_told>, METH_VARARGS, nullptr},
                                  {}};

}  // namespace

namespace {
std::mutex taking;
std::condition_variable taken;
}  // namespace
bool take_condemned(PyRun* run) noexcept {
  if (!questions || !questions->condemned.erase(run)) return false;
  const std::lock_guard g(taking);
  taken.notify_all();
  return true;
}
void await_declared(PyRun* run) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::seconds(1);
  while (questions && questions->condemned.contains(run) && Clock::now() < until) {
    const OutsideGate beyond;
    PyThreadState* const state = give_up_lock();
    std::unique_lock g(taking);
    // The wait is short, because the run might have been taken between the check above and this
    // line.
    taken.wait_for(g, std::chrono::milliseconds(10));
    g.unlock();
    take_lock(state);
  }
}
// Called in the child of a fork, where the space and the questions belong to the parent.
void forget_rounds() noexcept { questions = nullptr; }

int init_rounds(PyObject* m) { return PyModule_AddFunctions(m, rounds_functions); }

}  // namespace weft::py
