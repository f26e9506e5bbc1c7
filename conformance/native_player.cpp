// Processes of a component that follow the orders of native_driver.py, one operation after another.
// native_driver.py plays a network's statements, and this file performs each operation, through
// <weft/component.hpp> on a thread, or through <weft/component_tasks.hpp> in a coroutine. The
// driver is called directly, without a channel, so the runtime sees only the network's own
// channels.
#include <memory>
#include <sstream>
#include <weft/component_tasks.hpp>

using namespace weft::native;

namespace {

// A function of the driver. It receives the outcome of the previous operation and writes the next
// operation to `next`; both are words. The driver sets `step`.
using Step = void (*)(std::int64_t pid, std::int64_t now, const char* went, char* next,
                      std::size_t room);
Step step = nullptr;

struct Fail : std::runtime_error {
  Fail() : std::runtime_error("Fail") {}
};

class Orders;

// The guards of a select, whose number is not known at compile time. The words of the order are
// FAIR N, and for each guard KIND ON ENDS and its arguments.
struct Choice {
  explicit Choice(Orders& orders);
  const bool fair;
  std::uint32_t chosen;  // the number of guards, until one is chosen
  detail::Guards guards;
  std::vector<std::string> kinds, values;

 private:
  weft_guard guard(Orders& orders, std::size_t k, std::int64_t time);
};

// The orders of one process: what players on a thread and players in a coroutine have in common.
class Orders {
 public:
  Orders(std::int64_t pid, std::vector<std::uint32_t> ends, std::vector<std::uint32_t> barriers)
      : pid_(pid), ends_(std::move(ends)), barriers_(std::move(barriers)) {}

  // Gets the next order. Returns false if the process returns.
  bool next() {
    std::string said(4096, '\0');
    step(pid_, now().count(), went_.c_str(), said.data(), said.size());
    words_ = std::istringstream(said.c_str());
    op = word<std::string>();
    if (op == "rethrow") std::rethrow_exception(thrown_.at(word<std::size_t>()));
    if (op == "throw")
      throw std::runtime_error(word<std::string>() + " of p" + std::to_string(pid_));
    guard_ = -1;
    return op != "return";
  }
  void went_well(const std::string& with) { went_ = "ok " + with; }
  // Called while the exception of the operation is handled. The exception is kept, because the
  // process might let it propagate later. Another exception than those of operations goes on.
  void failed() {
    thrown_.push_back(std::current_exception());
    went_ = std::string(name_of_exception()) + " " + std::to_string(thrown_.size() - 1) + " " +
            std::to_string(guard_);
  }

  template <class T>
  T word() {
    T value;
    if (!(words_ >> value)) throw std::logic_error("a word is missing: " + words_.str());
    return value;
  }
  std::uint32_t end() { return ends_.at(word<std::size_t>()); }
  std::uint32_t barrier() { return barriers_.at(word<std::size_t>()); }

  // Performs an operation that never waits.
  void at_once() {
    if (op == "retire")  // either side retires and poisons an end in the same way
      Reader<std::string>(detail::End{end()}).retire();
    else if (op == "poison") {
      Reader<std::string> r{detail::End{end()}};
      r.poison(static_cast<std::uint8_t>(word<int>()));
    } else if (op == "enrol")
      Barrier(detail::End{barrier()}).enrol();
    else if (op == "resign")
      Barrier(detail::End{barrier()}).resign();
    else if (op != "yield")  // a process of a component need not do anything to yield
      throw std::logic_error("no such operation: " + op);
  }

  // Returns what the select has taken, in words; throws if the select has failed.
  std::string taken(Choice& c, weft_status s) {
    const weft_api& api = *detail::running.api;
    weft_process* const process = detail::running.process;
    auto& all = c.guards.all;
    const std::uint32_t chosen = c.chosen;
    if (chosen < all.size()) guard_ = static_cast<int>(chosen);
    detail::check(s, chosen < all.size() ? all[chosen].end : 0);
    std::string said = std::to_string(chosen);
    if (c.kinds[chosen] == "in") {
      detail::Block b(std::exchange(all[chosen].value, {}));
      said += " " + detail::decode<std::string>(b);
    } else if (c.kinds[chosen] == "raise") {
      api.deliver(process, nullptr);
      throw Fail();
    } else if (c.kinds[chosen] == "make") {
      detail::Block b;
      detail::encode(c.values[chosen], b, api.allocate);
      detail::check(api.deliver(process, &b.value), all[chosen].end);
      b.value.block = nullptr;
    }
    return said;
  }

  std::string op;

 private:
  static const char* name_of_exception() {
    try {
      throw;
    } catch (const Retired&) {
      return "Retired";
    } catch (const Poisoned&) {
      return "Poisoned";
    } catch (const PeerDied&) {
      return "PeerDied";
    } catch (const Cancelled&) {
      return "Cancelled";
    } catch (const BadUse&) {
      return "BadUse";
    } catch (const Fail&) {
      return "Fail";
    }
  }
  const std::int64_t pid_;
  const std::vector<std::uint32_t> ends_, barriers_;
  std::string went_ = "begin";
  std::istringstream words_;
  std::vector<std::exception_ptr> thrown_;
  int guard_ = -1;
};

Choice::Choice(Orders& o)
    : fair(o.word<int>() != 0), chosen(o.word<std::uint32_t>()), guards(chosen), values(chosen) {
  const std::int64_t time = detail::running.api->now(detail::running.process);
  for (std::size_t k = 0; k < values.size(); ++k) guards.all.push_back(guard(o, k, time));
}
weft_guard Choice::guard(Orders& o, std::size_t k, std::int64_t time) {
  const std::string& kind = kinds.emplace_back(o.word<std::string>());
  weft_guard g{};
  g.on = o.word<std::uint32_t>();
  g.ends = o.word<std::uint32_t>();
  if (kind == "in" || kind == "out" || kind == "make" || kind == "raise") g.end = o.end();
  if (kind == "in") {
    g.kind = WEFT_INPUT;
  } else if (kind == "skip") {
    g.kind = WEFT_SKIP;
  } else if (kind == "barrier") {
    g.kind = WEFT_SYNC;
    g.end = o.barrier();
  } else if (kind == "timeout") {
    const auto on = std::exchange(g.on, 0);
    g = After{std::chrono::nanoseconds(o.word<std::int64_t>())}.guard(time);
    g.on = on;
  } else if (kind == "deadline") {
    g.kind = WEFT_TIMER;
    g.deadline = o.word<std::int64_t>();
  } else {
    g.kind = kind == "out" ? WEFT_OUTPUT : WEFT_COMPUTED;
    values[k] = o.word<std::string>();
    if (kind == "out" && g.on) {
      detail::Block b;
      detail::encode(values[k], b, detail::running.api->allocate);
      g.value = std::exchange(b.value, {});
    }
  }
  return g;
}

// --- a process on a thread -----------------------------------------------------------------------

class Player {
 public:
  explicit Player(Orders orders) : o_(std::move(orders)) {}
  void run() {
    while (o_.next()) try {
        o_.went_well(perform());
      } catch (...) {
        o_.failed();
      }
  }

 private:
  std::string perform() {
    const std::string& op = o_.op;
    if (op == "read") return Reader<std::string>(detail::End{o_.end()}).read();
    if (op == "ext") {
      Reader<std::string> r{detail::End{o_.end()}};
      return **held_.emplace_back(new Extended<std::string>(r.extended()));
    }
    if (op == "select") {
      Choice c(o_);
      auto& all = c.guards.all;
      const weft_status s = detail::running.api->select(detail::running.process, all.data(),
                                                        static_cast<std::uint32_t>(all.size()),
                                                        c.fair, &c.chosen, {__FILE__, __LINE__});
      return o_.taken(c, s);
    }
    if (op == "release")
      held_.pop_back();
    else if (op == "write") {
      Writer<std::string> w{detail::End{o_.end()}};
      w.write(o_.word<std::string>());
    } else if (op == "sync")
      Barrier(detail::End{o_.barrier()}).sync();
    else if (op == "sleep")
      sleep(std::chrono::nanoseconds(o_.word<std::int64_t>()));
    else
      o_.at_once();
    return "";
  }

  Orders o_;
  std::vector<std::unique_ptr<Extended<std::string>>> held_;
};

// --- a process that is a coroutine ---------------------------------------------------------------

class TaskChoice : public detail::TaskOperation {
 public:
  explicit TaskChoice(Choice& c) noexcept : c_(c) {}
  bool await_ready() {
    auto& all = c_.guards.all;
    return begun(detail::running.api->start_select(detail::running.process, all.data(),
                                                   static_cast<std::uint32_t>(all.size()), c_.fair,
                                                   &c_.chosen, {__FILE__, __LINE__}));
  }
  weft_status await_resume() { return ended(); }

 private:
  Choice& c_;
};

// (No operation is awaited in a condition, since g++ 12 lays out such frames wrongly.)
tasks::Task<> play_in_coroutine(Orders o) {
  while (o.next()) {
    try {
      std::string with;
      if (o.op == "read") {
        tasks::Reader<std::string> r{detail::End{o.end()}};
        with = co_await r.read();
      } else if (o.op == "write") {
        tasks::Writer<std::string> w{detail::End{o.end()}};
        const auto value = o.word<std::string>();
        co_await w.write(value);
      } else if (o.op == "select") {
        Choice c(o);
        const weft_status s = co_await TaskChoice(c);
        with = o.taken(c, s);
      } else if (o.op == "sync") {
        tasks::Barrier b{detail::End{o.barrier()}};
        co_await b.sync();
      } else if (o.op == "sleep") {
        co_await tasks::sleep(std::chrono::nanoseconds(o.word<std::int64_t>()));
      } else {
        o.at_once();
      }
      o.went_well(with);
    } catch (...) {
      o.failed();
    }
  }
}

using R = Reader<std::string>;
using W = Writer<std::string>;
constexpr std::size_t kMaxEnds = 4;  // the greatest number of ends of a process

// An end of a process on a thread, as an end of a coroutine.
template <class E>
struct OfTask;
template <>
struct OfTask<R> {
  using type = tasks::Reader<std::string>;
};
template <>
struct OfTask<W> {
  using type = tasks::Writer<std::string>;
};

std::uint32_t number(const Barrier& b) { return b.guard(0).end; }
std::uint32_t number(const tasks::Barrier& b) { return b.guard(0).end; }

template <class... E>
struct With {
  static void play(E... ends, Barrier a, Barrier b, std::int64_t pid) {
    Player(Orders(pid, {ends.number()...}, {number(a), number(b)})).run();
  }
  static tasks::Task<> play_task(typename OfTask<E>::type... ends, tasks::Barrier a,
                                 tasks::Barrier b, std::int64_t pid) {
    return play_in_coroutine(Orders(pid, {ends.number()...}, {number(a), number(b)}));
  }
  // Declares p, pr, pw, prr, …, and for coroutines c, cr, cw, …: one process function for each list
  // of ends.
  static void declare(Component& component, const std::string& ends) {
    static const std::string thread = "p" + ends, coroutine = "c" + ends;
    add(component.process<&With::play>(thread.c_str()));
    add(component.process<&With::play_task>(coroutine.c_str()));
    if constexpr (sizeof...(E) < kMaxEnds) {
      With<E..., R>::declare(component, ends + "r");
      With<E..., W>::declare(component, ends + "w");
    }
  }

 private:
  static void add(Process& p) {
    static const char* const names[kMaxEnds] = {"e0", "e1", "e2", "e3"};
    for (std::size_t k = 0; k < sizeof...(E); ++k) p.argument(names[k]);
    p.argument("a").argument("b").argument("pid");
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void set_step(Step s) { step = s; }

WEFT_COMPONENT(player, "Processes that do what they are told.") { With<>::declare(component, ""); }
