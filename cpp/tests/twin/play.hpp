// Plays a network: one coroutine per process, with a stack of its own for the blocks of the
// network, and prints its history, a JSON object a line.
//
//   statement ──ok──► next
//       └──exception──► unwind(): leaves blocks (an extended read's is released), up to a try that
//                       catches it; else the exception leaves the coroutine
//
// Limits (rule 7.12) are weft::Timeouts. In the history, the TimedOut of a limit is Cancelled, and
// Timeout leaves the limit's block. If a network cancels a process by its number, or awaits its
// end, a Watch runs each process, within another process that ends as the watched process did.
//
// A process holds its ends in its coroutine's parameters, so the library handles them when the
// process ends. If an end is given to several processes (a slot of the maker), each process gets a
// copy; closing one copy closes all, because for the rules they are one end (rule 2.2). K
// determines the types of ends and how ends are made: near.hpp (one program), far.hpp (several).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include <weft/weft.hpp>

#include "network.hpp"
#include "records.hpp"

namespace twin {
template <class K>
struct Abroad;  // defined in abroad.hpp

template <class K>
class Play {
 public:
  using Process = weft::ProcessOf<int>;

 private:
  friend struct Abroad<K>;
  using P = typename K::P;
  using V = typename K::V;
  using R = typename K::R;
  using W = typename K::W;

  // The end of a process: at most one of the pointers is set; the copies of one end share `number`.
  struct Slot {
    R* reader = nullptr;
    W* writer = nullptr;
    int number = -1;
    bool open() const { return reader ? static_cast<bool>(*reader) : static_cast<bool>(*writer); }
    void close(bool died) const {
      if (reader) K::close(*reader, died);
      if (writer) K::close(*writer, died);
    }
  };
  // The ends that a process is given, in vectors, so that the library knows their holder.
  struct Given {
    std::vector<R> readers;
    std::vector<W> writers;
    std::vector<std::pair<char, int>> slots;  // side, and number of the end
  };
  enum class Kind { body, loop, iter, ext, limit, attempt };
  struct Frame {
    Kind kind;
    const Body* body;
    std::size_t pc = 0;
    int left = 0;  // the number of remaining rounds of a loop, or of remaining turns of an iter
    const Statement* of = nullptr;
    std::shared_ptr<void> extended{};
    std::unique_ptr<weft::Timeout> limit{};
  };

 public:
  Play(const Network& n, K& kind, unsigned cores = 0)
      : net_(n), kind_(kind), pool_(cores ? std::optional<weft::Cores>(cores) : std::nullopt) {
    if constexpr (K::kSpread)
      barriers_ = kind.barriers();
    else
      for (unsigned b : n.barriers) barriers_.emplace_back(b);
    if (n.handles)
      for (const int pid : n.ids()) handles_.try_emplace(pid);
  }

  void run() {
    std::string out;
    try {
      weft::RunOptions o{K::kClock};
      if (pool_) o.on = &*pool_;
      weft::run(o, begun(*net_.main, make(*net_.main, {})));
      out = "[\"ok\"]";
    } catch (const weft::Deadlock& d) {
      // The library knows the process that last used an end, but not every process that holds a
      // copy: with several ends on a side the knot may differ. Between programs no knot is known.
      out = net_.simple() && !net_.handles && !K::kSpread
                ? "[\"Deadlock\", {\"knot\": [" + knot(d) + "]}]"
                : "[\"Deadlock\"]";
    } catch (...) {
      out = raised(std::current_exception(), "par", {});
    }
    say("{\"e\": \"run\", \"out\": " + out + "}");
  }
  static void tell_dropped(const std::vector<std::uint64_t>& dropped) {
    std::string all;
    for (const std::uint64_t n : dropped) all += (all.empty() ? "" : ", ") + std::to_string(n);
    say("{\"e\": \"stat\", \"dropped\": [" + all + "]}");
  }

 private:
  // --- making processes --------------------------------------------------------------------------

  Process make(const Proc& p, const std::vector<Slot>& of_maker) {
    if constexpr (K::kSpread)
      if (kind_.is_away(p.id))
        return watched(p,
                       Abroad<K>::stand_in(this, &p, kind_.unstarted(p.id)).named(p.name.c_str()));
    Given g;  // outside the try block: unwinding would poison these ends, not close them
    std::exception_ptr failure;
    try {
      for (std::size_t i = 0; i < p.ends.size(); ++i) give(g, p, i, of_maker);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      g = Given();
      std::rethrow_exception(failure);
    }
    Process made = play(this, &p, std::move(g.readers), std::move(g.writers), std::move(g.slots))
                       .named(p.name.c_str());
    return watched(p, std::move(made));
  }
  Process watched(const Proc& p, Process made) {
    if (!net_.handles) return made;
    return held(this, p.id, handles_.at(p.id).of(std::move(made)));
  }
  // A process that can be cancelled and awaited. It ends as `inner` ends.
  static Process held(Play* me, int pid, weft::Process inner) {
    try {
      co_await std::move(inner);
    } catch (const weft::Cancelled&) {
      // A request can arrive after the inner process has ended; the rules know only the inner one.
      if (!me->has_returned(pid)) throw;
    }
    if (me->has_returned(pid)) co_return pid;
    if (const std::exception_ptr left = me->what_left(pid)) std::rethrow_exception(left);
    throw weft::Cancelled();  // The process was cancelled before it began to run.
  }
  bool has_returned(int pid) const {
    const std::lock_guard l(lock_);
    return returned_.count(pid) != 0;
  }
  std::exception_ptr what_left(int pid) {
    const std::lock_guard l(lock_);
    // Both held() and runs_here() rethrow this exception, so it is kept. It carries no end.
    if (K::kSpread) return left_[pid];
    return std::exchange(left_[pid], nullptr);
  }
  // Called when the process is about to be started; from then on a cancellation applies to it.
  Process begun(const Proc& p, Process made) {
    const std::lock_guard l(lock_);
    begun_.insert(p.id);
    return made;
  }
  void cancel(int by, int pid) {
    {
      const std::lock_guard l(lock_);
      if (pid == by || begun_.count(pid) == 0) return;
    }
    handles_.at(pid).cancel();
  }
  std::string how(int pid) const {
    weft::Ending how = handles_.at(pid).get().how;
    if (how == weft::Ending::cancelled && has_returned(pid))  // held() reports the same.
      how = weft::Ending::returned;
    return std::string("{\"how\": \"") + word_of(how) + "\"}";
  }
  static const char* word_of(weft::Ending how) {
    const char* const words[] = {"returned", "retired", "poisoned", "cancelled", "failed"};
    return words[static_cast<int>(how)];
  }
  // Returns the result in the model's form: the process's number, or how it ended (rule 7.1).
  static std::string result_of(const weft::Result<int>& r) {
    if (r) return std::to_string(*r);
    return r.missing() ? std::string("\"<") + word_of(r.missing()->how) + ">\"" : "null";
  }
  void give(Given& g, const Proc& p, std::size_t i, const std::vector<Slot>& of_maker) {
    const End& e = p.ends[i];
    if (e.slot >= 0) {
      const Slot& s = slot(of_maker, e.slot);
      if (s.reader)
        g.readers.push_back(*s.reader);
      else
        g.writers.push_back(*s.writer);
      g.slots.emplace_back(s.reader ? 'r' : 'w', s.number);
    } else {
      if (e.side == 'r')
        g.readers.push_back(kind_.reader(p, i));
      else
        g.writers.push_back(kind_.writer(p, i));
      const std::lock_guard l(lock_);
      g.slots.emplace_back(e.side, ends_++);
    }
  }
  static const Slot& slot(const std::vector<Slot>& slots, int i) {
    if (i < 0 || static_cast<std::size_t>(i) >= slots.size())
      throw weft::BadUse("a slot that was never filled");
    return slots[static_cast<std::size_t>(i)];
  }
  static R& reader(const std::vector<Slot>& slots, int i) { return *slot(slots, i).reader; }
  static W& writer(const std::vector<Slot>& slots, int i) { return *slot(slots, i).writer; }

  // Closes all copies of an end, in every process.
  void close(const Slot& s, bool died) {
    if (!s.open()) return;
    const int n = s.number;
    std::vector<const Slot*> all;
    {
      const std::lock_guard l(lock_);
      for (auto& [process, slots] : live_)
        for (const Slot& x : *slots)
          if (x.number == n) all.push_back(&x);
    }
    for (const Slot* x : all) x->close(died);
  }

  // --- records -----------------------------------------------------------------------------------

  void call(int pid, const char* kind, const std::vector<std::string>& made = {}) {
    std::string s = std::string("\"") + kind + "\"";
    for (const std::string& m : made) s += ", \"" + m + "\"";
    say(of(pid) + "\"call\", \"op\": [" + s + "]}");
  }
  void ret(int pid, const std::string& out) {
    say(of(pid) + "\"ret\", \"out\": " + out +
        ", \"t\": " + std::to_string(weft::now() / 1'000'000'000) + "}");
  }
  static std::string of(int pid) { return "{\"p\": " + std::to_string(pid) + ", \"e\": "; }
  std::string raised(const std::exception_ptr& x, const std::string& kind,
                     const std::vector<std::string>& made) {
    std::string more;
    auto add = [&](const std::string& m) { more += (more.empty() ? "" : ", ") + m; };
    const bool composed = kind == "par" || kind == "seq";
    try {
      std::rethrow_exception(x);
    } catch (const weft::ChannelEnd& e) {
      if (!composed && kind == "select") add("\"guard\": " + std::to_string(e.guard));
      if (!composed && kind == "write" && !made.empty()) {
        const V* v = e.template value<V>();
        add("\"value\": \"" + (v ? v->text : "missing") + "\"");
      }
      if (const auto* p = dynamic_cast<const weft::Poisoned*>(&e); p && !composed)
        add("\"strength\": " + std::to_string(p->strength));
    } catch (...) {
    }
    if (composed) {
      std::string pids;
      if (const int p = left_by(x); p >= 0) {
        pids = std::to_string(p);
      } else {
        try {
          std::rethrow_exception(x);
        } catch (const weft::Failures& f) {
          for (const auto& y : f.all)
            pids += (pids.empty() ? "" : ", ") + std::to_string(left_by(y));
        } catch (...) {
        }
      }
      if (!pids.empty()) add("\"pids\": [" + pids + "]");
    }
    return "[\"" + name_of(x) + "\"" + (more.empty() ? "" : ", {" + more + "}") + "]";
  }
  // Returns the process that this failure left last, or -1.
  int left_by(const std::exception_ptr& x) const {
    const std::lock_guard l(lock_);
    for (auto f = failed_.rbegin(); f != failed_.rend(); ++f)
      if (f->first == x) return f->second;
    return -1;
  }
  // --- one process -------------------------------------------------------------------------------

  static Process play(Play* me, const Proc* proc, std::vector<R> readers, std::vector<W> writers,
                      std::vector<std::pair<char, int>> given) {
    constexpr std::size_t kMaxEnds = 64;  // the largest number of ends of one process
    readers.reserve(kMaxEnds);
    writers.reserve(kMaxEnds);
    std::vector<Slot> slots;
    {
      std::size_t r = 0, w = 0;
      for (auto [side, number] : given)
        slots.push_back(side == 'r' ? Slot{&readers[r++], nullptr, number}
                                    : Slot{nullptr, &writers[w++], number});
    }
    const int pid = proc->id;
    struct Live {
      Play* me;
      int pid;
      Live(Play* m, int p, std::vector<Slot>* s) : me(m), pid(p) {
        const std::lock_guard l(me->lock_);
        me->live_[p] = s;
      }
      ~Live() {
        const std::lock_guard l(me->lock_);
        me->live_.erase(pid);
      }
    } live(me, pid, &slots);
    [[maybe_unused]] const auto going_on = me->kind_.going_on(pid);

    int made = 0;
    std::vector<Frame> frames;
    frames.push_back({Kind::body, proc->body});
    std::exception_ptr failure;
    while (!frames.empty()) {
      Frame& f = frames.back();
      const Statement* s = nullptr;
      std::string kind;
      if (f.pc >= f.body->statements.size()) {
        if (f.kind == Kind::loop && f.left > 1) {
          --f.left;
          f.pc = 0;
          continue;
        }
        if (f.kind == Kind::iter) {
          if (f.of->args.size() > 1 && f.left == 0) {
            frames.pop_back();
            continue;
          }
          s = f.of;
          kind = "read";
        } else if (f.kind == Kind::ext) {
          release(me, pid, f);
          frames.pop_back();
          continue;
        } else if (f.kind == Kind::limit) {
          leave(me, pid, f, nullptr);
          frames.pop_back();
          continue;
        } else {
          frames.pop_back();
          continue;
        }
      } else {
        s = &f.body->statements[f.pc++];
        kind = s->word;
      }
      if (kind == "loop") {
        if (s->args[0] > 0) frames.push_back({Kind::loop, s->inner, 0, s->args[0], s});
        continue;
      }
      if (kind == "try") {
        frames.push_back({Kind::attempt, s->inner, 0, 0, s});
        continue;
      }
      if (kind == "iter") {  // The frame begins at the end of a turn, so the iter reads first.
        frames.push_back({Kind::iter, s->inner, s->inner->statements.size(),
                          s->args.size() > 1 ? s->args[1] : -1, s});
        continue;
      }

      std::vector<std::string> values;
      if (kind == "write") values.push_back(me->value(pid, made));
      if (kind == "select")
        for (const Guard& g : s->guards)
          if (g.kind == "out") values.push_back(me->value(pid, made));
      me->call(pid, kind.c_str(), values);
      std::string out = "[\"ok\"]";
      std::exception_ptr failed;
      try {
        if (kind == "read" && s->word == "iter") {
          R& r = reader(slots, s->args[0]);
          if (auto v = co_await K::next(r)) {
            out = received(*v, readers, writers, slots);
            Frame& it = frames.back();
            it.pc = 0;
            if (it.left > 0) --it.left;
          } else {
            out = "[\"stop\"]";
            frames.pop_back();
          }
        } else if (kind == "read") {
          R& r = reader(slots, s->args[0]);
          V v = co_await r.read();
          out = received(v, readers, writers, slots);
        } else if (kind == "ext") {
          R& r = reader(slots, s->args[0]);
          std::shared_ptr<void> kept;
          if constexpr (K::kSpread) {
            if (const auto* far = r.there()) {
              auto x = co_await far->extended();
              out = received(*x, readers, writers, slots);
              kept = me->kind_.kept(std::move(x));
            }
          }
          if (!kept) {
            auto x = co_await K::here(r).extended();
            out = received(*x, readers, writers, slots);
            kept = std::make_shared<weft::Extended<V, P>>(std::move(x));
          }
          frames.push_back({Kind::ext, s->inner, 0, 0, s, std::move(kept)});
        } else if (kind == "write") {
          W& w = writer(slots, s->args[0]);
          co_await w.write(V(values[0]));
          me->kind_.written(w);
        } else if (kind == "send") {
          W& w = writer(slots, s->args[0]);
          const Slot moved = slot(slots, s->args[1]);
          if constexpr (K::kMoves) {
            V v(moved.reader ? *moved.reader : R(), moved.writer ? *moved.writer : W(),
                moved.number);
            if (!moved.open()) throw weft::BadUse("the end that is sent is closed");
            co_await w.write(std::move(v));
            me->close(moved, false);
          } else {
            throw weft::BadUse("this twin sends no ends");
          }
        } else if (kind == "select") {
          std::size_t index = 0;
          std::optional<V> value;
          bool chosen = false;
          if constexpr (K::kSpread) {
            if (me->has_far(*s, slots)) {
              auto select = me->far_select(*s, slots, values);
              index = static_cast<std::size_t>(co_await select.go());
              if (s->guards[index].kind == "in") value = select.template value<V>();
              chosen = true;
            }
          }
          if (!chosen) {
            auto guards = me->guards(*s, slots, values);
            const auto mode = s->mode == "priority" ? weft::Mode::priority
                              : s->mode == "random" ? weft::Mode::random
                                                    : weft::Mode::fair;
            auto c = co_await weft::select_among<V, P>(guards, mode);
            index = c.index;
            value = std::move(c.value);
          }
          out = "[\"ok\", " + std::to_string(index);
          const Guard& taken = s->guards[index];
          if (value) out += ", " + received(*value, readers, writers, slots).substr(7);
          if (taken.kind == "ended") out += ", " + me->how(taken.at);
          if (!value) out += "]";
        } else if (kind == "sync") {
          const auto b = static_cast<std::size_t>(s->args[0]);
          bool met = false;
          if constexpr (K::kSpread) {
            if (const auto* far = me->kind_.far_barrier(b)) {
              co_await far->sync();
              met = true;
            }
          }
          if (!met) co_await me->barriers_[b].sync();
        } else if (kind == "enrol") {
          me->barriers_[static_cast<std::size_t>(s->args[0])].enrol();
        } else if (kind == "resign") {
          me->barriers_[static_cast<std::size_t>(s->args[0])].resign();
        } else if (kind == "sleep") {
          co_await weft::sleep(K::span(s->args[0]));
        } else if (kind == "limit") {
          const weft::Span t = K::span(s->args[0]);
          frames.push_back({Kind::limit, s->inner, 0, 0, s});
          frames.back().limit.reset(s->mode == "deadline" ? new weft::Timeout(weft::Timeout::until(
                                                                me->kind_.moment(s->args[0])))
                                                          : new weft::Timeout(t));
        } else if (kind == "reschedule") {
          const auto f = std::find_if(frames.rbegin(), frames.rend(),
                                      [](const Frame& x) { return x.kind == Kind::limit; });
          if (f == frames.rend()) throw weft::BadUse("no limit to reschedule");
          f->limit->reschedule(K::span(s->args[0]));
        } else if (kind == "cancel") {
          me->cancel(pid, s->args[0]);
        } else if (kind == "ended") {
          co_await me->handles_.at(s->args[0]).ended();
          out = "[\"ok\", " + me->how(s->args[0]) + "]";
        } else if (kind == "yield") {
          co_await weft::yield();
        } else if (kind == "retire" || kind == "die") {
          me->close(slot(slots, s->args[0]), kind == "die");
          me->kind_.arrived();
        } else if (kind == "poison") {
          const Slot& e = slot(slots, s->args[0]);
          const auto strength = static_cast<std::uint8_t>(s->args[1]);
          if (e.reader)
            e.reader->poison(strength);
          else
            e.writer->poison(strength);
          me->kind_.arrived();
        } else if (kind == "fail") {
          throw Fail();
        } else if (kind == "spawn") {
          weft::spawn(me->begun(*s->procs[0], me->make(*s->procs[0], slots)));
        } else if (kind == "par" || kind == "seq") {
          std::vector<Process> ps;
          for (const Proc* p : s->procs) ps.push_back(me->make(*p, slots));
          std::vector<weft::Result<int>> results;
          if (kind == "par") {
            for (std::size_t i = 0; i < ps.size(); ++i)
              ps[i] = me->begun(*s->procs[i], std::move(ps[i]));
            results = co_await weft::par(std::move(ps));
          } else {
            for (std::size_t i = 0; i < ps.size(); ++i) {
              std::vector<Process> one;
              one.push_back(me->begun(*s->procs[i], std::move(ps[i])));
              auto r = co_await weft::par(std::move(one));
              results.push_back(r[0]);
            }
          }
          out = "[\"ok\", [";
          for (std::size_t i = 0; i < results.size(); ++i)
            out += (i ? ", " : "") + result_of(results[i]);
          out += "]]";
        } else {
          throw weft::BadUse("a statement of unknown kind " + kind);
        }
      } catch (...) {
        failed = std::current_exception();
      }
      me->ret(pid, failed ? me->raised(failed, kind, values) : out);
      if (failed && !unwind(me, pid, frames, failed)) failure = failed;
    }
    say(of(pid) + "\"end\", \"out\": [\"" + (failure ? name_of(failure) : "ok") + "\"]}");
    if (failure) {
      const std::lock_guard l(me->lock_);
      if (!quiet(failure))
        me->failed_.emplace_back(failure, pid);
      else if (K::kSpread || me->net_.handles)
        me->left_[pid] = failure;
      std::rethrow_exception(failure);
    }
    if (K::kSpread || me->net_.handles) {
      const std::lock_guard l(me->lock_);
      me->returned_.insert(pid);
    }
    co_return pid;
  }

  // Leaves blocks until one handles the failure: a try, or its limit. Returns false if none does.
  static bool unwind(Play* me, int pid, std::vector<Frame>& frames, std::exception_ptr& failed) {
    std::string name = name_of(failed);
    while (!frames.empty()) {
      Frame& f = frames.back();
      if (f.kind == Kind::limit) {
        const bool own = leave(me, pid, f, failed), ends_here = own && f.of->mode == "move_on";
        frames.pop_back();
        if (ends_here) return true;
        if (own) failed = std::make_exception_ptr(Late());
        name = name_of(failed);
        continue;
      }
      const bool catches =
          f.kind == Kind::attempt &&
          std::find(f.of->caught.begin(), f.of->caught.end(), name) != f.of->caught.end();
      if (f.kind == Kind::ext) release(me, pid, f);
      const Statement* of = f.of;
      frames.pop_back();
      if (catches) {
        frames.push_back({Kind::body, of->handler});
        return true;
      }
    }
    return false;
  }
  static void release(Play* me, int pid, Frame& f) {
    me->call(pid, "release");
    f.extended.reset();
    me->kind_.arrived();
    me->ret(pid, "[\"ok\"]");
  }

  // Leaves a block with a limit. Returns true if the limit has ended the block.
  static bool leave(Play* me, int pid, Frame& f, const std::exception_ptr& failed) {
    bool own = false;
    try {
      if (failed) std::rethrow_exception(failed);
    } catch (const weft::TimedOut& e) {
      own = e.of(*f.limit);
    } catch (...) {
    }
    me->call(pid, "leave");
    f.limit.reset();
    const bool raises = own && f.of->mode != "move_on";
    me->ret(pid, raises ? "[\"Timeout\"]"
                 : own  ? "[\"ok\", {\"expired\": true}]"
                        : "[\"ok\", {\"expired\": false}]");
    return own;
  }

  static std::string value(int pid, int& made) {
    return std::to_string(pid) + "." + std::to_string(made++);
  }

  static std::string received(V& v, [[maybe_unused]] std::vector<R>& readers,
                              [[maybe_unused]] std::vector<W>& writers,
                              [[maybe_unused]] std::vector<Slot>& slots) {
    if constexpr (K::kMoves) {
      if (v.reader) {
        readers.push_back(std::move(v.reader));
        slots.push_back({&readers.back(), nullptr, v.end});
        return "[\"ok\", \"end\"]";
      }
      if (v.writer) {
        writers.push_back(std::move(v.writer));
        slots.push_back({nullptr, &writers.back(), v.end});
        return "[\"ok\", \"end\"]";
      }
    }
    return "[\"ok\", \"" + v.text + "\"]";
  }

  std::vector<weft::AnyGuard<V, P>> guards(const Statement& s, const std::vector<Slot>& slots,
                                           const std::vector<std::string>& values) {
    std::vector<weft::AnyGuard<V, P>> r;
    std::size_t made = 0;
    for (const Guard& g : s.guards) {
      const auto push = [&](auto guard) {
        r.push_back(g.ends ? std::move(guard).ends().when(g.on) : std::move(guard).when(g.on));
      };
      if (g.kind == "in") {
        push(weft::in(K::here(reader(slots, g.at))));
      } else if (g.kind == "out") {
        const std::string text = values[made++];
        if (g.fn.empty())
          push(weft::Out<V, P>(weft::out(K::here(writer(slots, g.at)), V(text))));
        else
          push(weft::out_with(K::here(writer(slots, g.at)), maker(g, text)));
      } else if (g.kind == "timeout") {
        r.push_back(weft::after(K::span(g.at)).when(g.on));
      } else if (g.kind == "deadline") {
        r.push_back(weft::at(kind_.moment(g.at)).when(g.on));
      } else if (g.kind == "skip") {
        r.push_back(weft::skip().when(g.on));
      } else if (g.kind == "ended") {
        r.push_back(handles_.at(g.at).ended().when(g.on));
      } else {
        r.push_back(weft::meet(barriers_[static_cast<std::size_t>(g.at)]).when(g.on));
      }
    }
    return r;
  }

  static std::function<V()> maker(const Guard& g, const std::string& text) {
    return [text, bad = g.fn == "raise"] {
      if (bad) throw Fail();
      return V(text);
    };
  }

  // --- several programs (far.hpp) ----------------------------------------------------------------

  static bool has_far(const Statement& s, const std::vector<Slot>& slots) {
    for (const Guard& g : s.guards) {
      if (g.kind == "in" && reader(slots, g.at).there()) return true;
      if (g.kind == "out" && writer(slots, g.at).there()) return true;
    }
    return false;
  }
  auto far_select(const Statement& s, const std::vector<Slot>& slots,
                  const std::vector<std::string>& values) {
    typename K::Select r;
    std::size_t made = 0;
    for (const Guard& g : s.guards) {
      if (g.kind == "in") {
        K::in(r, reader(slots, g.at));
      } else if (g.kind == "out") {
        const std::string& text = values[made++];
        if (g.fn.empty())
          K::out(r, writer(slots, g.at), V(text));
        else
          K::out_with(r, writer(slots, g.at), maker(g, text));
      } else if (g.kind == "timeout") {
        r.on(weft::after(K::span(g.at)).when(g.on));
      } else if (g.kind == "deadline") {
        r.on(weft::at(kind_.moment(g.at)).when(g.on));
      } else if (g.kind == "skip") {
        r.on(weft::skip().when(g.on));
      } else if (g.kind == "ended") {
        r.on(handles_.at(g.at).ended().when(g.on));
      } else {
        throw std::logic_error("a barrier beside an end of another program: see placed()");
      }
      if (g.kind != "in" && g.kind != "out") continue;
      if (!g.on) r.when(false);
      if (g.ends) r.ends();
    }
    if (s.mode != "priority")
      r.from(static_cast<int>(turns_.fetch_add(1) % static_cast<unsigned>(s.guards.size())));
    return r;
  }

  const Network& net_;
  K& kind_;
  std::atomic<unsigned> turns_{0};
  std::vector<weft::Barrier> barriers_;
  const std::optional<weft::Cores> pool_;
  std::map<int, weft::Watch<int>> handles_;                 // filled if the network needs handles
  mutable std::mutex lock_;                                 // protects the fields below
  std::map<int, std::vector<Slot>*> live_;                  // the ends of the processes that run
  std::vector<std::pair<std::exception_ptr, int>> failed_;  // each with the process that it left
  std::set<int> begun_;
  std::set<int> returned_;                  // the processes run by held() that have returned
  std::map<int, std::exception_ptr> left_;  // the quiet ends of processes run by held()
  int ends_ = 0;
};

}  // namespace twin
