// Processes of a network that run in another program: the process that takes the place of such a
// process in this program, and the code that runs the process there.
//
//   here: stand_in() ──"start 3"──► there: serve() ──spawns──► runs_here() ──► the process
//               │ ◄───────────────how it ended────────────────────────┘
//               └──"cancel 3", when stand_in() is asked to end──► serve()
#pragma once
#include <sstream>

#include "play.hpp"

namespace twin {

template <class K>
struct Abroad {
  // Stands for a process that another program runs. The stand-in starts that process in the other
  // program, cancels it when the stand-in itself is cancelled, and ends as that process has ended.
  template <class Unstarted>
  static typename Play<K>::Process stand_in(Play<K>* me, const Proc* p, Unstarted there) {
    co_await me->kind_.command(p->id, "start");
    there.started();
    std::string said;
    while (said.empty()) {
      bool asked = false;
      try {
        said = co_await me->kind_.done(p->id).read();
      } catch (const weft::Cancelled&) {
        asked = true;
      } catch (const weft::TimedOut&) {
        asked = true;
      }
      while (asked) {
        try {
          co_await me->kind_.command(p->id, "cancel");
          asked = false;
        } catch (const weft::Cancelled&) {  // This process has been cancelled a second time.
        } catch (const weft::TimedOut&) {
        }
      }
    }
    if (said == "ok") {
      const std::lock_guard l(me->lock_);
      me->returned_.insert(p->id);
      co_return p->id;
    }
    const std::exception_ptr failure = told(said);
    {
      const std::lock_guard l(me->lock_);
      if (!quiet(failure))
        me->failed_.emplace_back(failure, p->id);
      else
        me->left_[p->id] = failure;
    }
    std::rethrow_exception(failure);
  }
  // Runs, in the other program, one process of the network, and reports how the process ended.
  static weft::Process runs_here(Play<K>* me, const Proc* p, weft::Watch<int> handle) {
    std::exception_ptr left;
    try {
      co_await handle.of(me->make(*p, {}));
    } catch (...) {
      left = std::current_exception();
    }
    std::string said = "ok";
    if (!me->has_returned(p->id)) {
      if (const std::exception_ptr own = me->what_left(p->id)) left = own;
      said = left ? told_of(left) : "Cancelled";
    }
    left = nullptr;
    me->kind_.arrived();  // The ends of the process are closed.
    co_await me->kind_.tells(p->id).write(said);
  }

  // The main process of a program that is asked to run some of the processes.
  static weft::Process serve(Play<K>* me) {
    [[maybe_unused]] const auto going_on = me->kind_.going_on(0);
    std::map<int, weft::Watch<int>> running;
    for (;;) {
      std::istringstream line(co_await me->kind_.commands().read());
      std::string word;
      int pid = 0;
      line >> word >> pid;
      if (word == "start")
        weft::spawn(runs_here(me, me->net_.process(pid), running[pid]));
      else if (word == "cancel")
        running[pid].cancel();
      else
        co_return;
    }
  }
};

}  // namespace twin
