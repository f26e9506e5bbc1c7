// Processes of a component that follow the orders of native_driver.py, one operation after another.
// native_driver.py plays a network's statements, and this file performs each operation, through
// <weft/component.hpp>. The driver is called directly, without a channel, so the runtime sees only
// the network's own channels.
#include <memory>
#include <sstream>
#include <weft/component.hpp>

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

class Player {
 public:
  Player(std::int64_t pid, std::vector<std::uint32_t> ends, Barrier a, Barrier b)
      : pid_(pid), ends_(std::move(ends)) {
    barriers_.push_back(std::move(a));
    barriers_.push_back(std::move(b));
  }

  void run() {
    std::string went = "begin", next(4096, '\0');
    for (;;) {
      step(pid_, now().count(), went.c_str(), next.data(), next.size());
      std::istringstream words(next.c_str());
      const auto op = word<std::string>(words);
      if (op == "return") return;
      if (op == "rethrow") std::rethrow_exception(thrown_.at(word<std::size_t>(words)));
      if (op == "throw")
        throw std::runtime_error(word<std::string>(words) + " of p" + std::to_string(pid_));
      went = outcome(op, words);
    }
  }

 private:
  template <class T>
  static T word(std::istringstream& words) {
    T value;
    if (!(words >> value)) throw std::logic_error("a word is missing: " + words.str());
    return value;
  }
  std::string outcome(const std::string& op, std::istringstream& words) {
    guard_ = -1;
    try {
      return "ok " + perform(op, words);
    } catch (const Retired&) {
      return failed("Retired");
    } catch (const Poisoned&) {
      return failed("Poisoned");
    } catch (const PeerDied&) {
      return failed("PeerDied");
    } catch (const Cancelled&) {
      return failed("Cancelled");
    } catch (const BadUse&) {
      return failed("BadUse");
    } catch (const Fail&) {
      return failed("Fail");
    }
  }
  // The exception is kept, because the process might let it propagate later.
  std::string failed(const char* name) {
    thrown_.push_back(std::current_exception());
    return std::string(name) + " " + std::to_string(thrown_.size() - 1) + " " +
           std::to_string(guard_);
  }

  Reader<std::string> reader(std::istringstream& words) {
    return Reader<std::string>(detail::End{ends_.at(word<std::size_t>(words))});
  }
  Writer<std::string> writer(std::istringstream& words) {
    return Writer<std::string>(detail::End{ends_.at(word<std::size_t>(words))});
  }
  Barrier& barrier(std::istringstream& words) { return barriers_.at(word<std::size_t>(words)); }

  std::string perform(const std::string& op, std::istringstream& words) {
    if (op == "read") return reader(words).read();
    if (op == "ext") {
      Reader<std::string> r = reader(words);
      return **held_.emplace_back(new Extended<std::string>(r.extended()));
    }
    if (op == "select") return select(words);
    if (op == "release")
      held_.pop_back();
    else if (op == "write") {
      Writer<std::string> w = writer(words);
      w.write(word<std::string>(words));
    } else if (op == "retire")
      reader(words).retire();  // either side retires and poisons an end in the same way
    else if (op == "poison") {
      Reader<std::string> r = reader(words);
      r.poison(static_cast<std::uint8_t>(word<int>(words)));
    } else if (op == "sync")
      barrier(words).sync();
    else if (op == "enrol")
      barrier(words).enrol();
    else if (op == "resign")
      barrier(words).resign();
    else if (op == "sleep")
      sleep(std::chrono::nanoseconds(word<std::int64_t>(words)));
    else if (op != "yield")  // a thread need not do anything to yield
      throw std::logic_error("no such operation: " + op);
    return "";
  }

  // select FAIR N, and for each guard KIND ON ENDS and its arguments. The function uses the table
  // of C functions, because the number of guards is not known at compile time.
  std::string select(std::istringstream& words) {
    const weft_api& api = *detail::running.api;
    weft_process* const process = detail::running.process;
    const bool fair = word<int>(words) != 0;
    const auto n = word<std::size_t>(words);
    detail::Guards guards(n);
    std::vector<std::string> kinds, values(n);
    const std::int64_t time = api.now(process);
    for (std::size_t k = 0; k < n; ++k) {
      const std::string& kind = kinds.emplace_back(word<std::string>(words));
      weft_guard g{};
      g.on = word<std::uint32_t>(words);
      g.ends = word<std::uint32_t>(words);
      if (kind == "in" || kind == "out" || kind == "make" || kind == "raise")
        g.end = ends_.at(word<std::size_t>(words));
      if (kind == "in") {
        g.kind = WEFT_INPUT;
      } else if (kind == "skip") {
        g.kind = WEFT_SKIP;
      } else if (kind == "barrier") {
        g.kind = WEFT_SYNC;
        g.end = number(word<std::size_t>(words));
      } else if (kind == "timeout") {
        const auto on = std::exchange(g.on, 0);
        g = After{std::chrono::nanoseconds(word<std::int64_t>(words))}.guard(time);
        g.on = on;
      } else if (kind == "deadline") {
        g.kind = WEFT_TIMER;
        g.deadline = word<std::int64_t>(words);
      } else {
        g.kind = kind == "out" ? WEFT_OUTPUT : WEFT_COMPUTED;
        values[k] = word<std::string>(words);
        if (kind == "out" && g.on) {
          detail::Block b;
          detail::encode(values[k], b, api.allocate);
          g.value = std::exchange(b.value, {});
        }
      }
      guards.all.push_back(g);
    }
    auto chosen = static_cast<std::uint32_t>(n);
    const weft_status s = api.select(process, guards.all.data(), static_cast<std::uint32_t>(n),
                                     fair, &chosen, {__FILE__, __LINE__});
    if (chosen < n) guard_ = static_cast<int>(chosen);
    detail::check(s, chosen < n ? guards.all[chosen].end : 0);
    std::string said = std::to_string(chosen);
    if (kinds[chosen] == "in") {
      detail::Block b(std::exchange(guards.all[chosen].value, {}));
      said += " " + detail::decode<std::string>(b);
    } else if (kinds[chosen] == "raise") {
      api.deliver(process, nullptr);
      throw Fail();
    } else if (kinds[chosen] == "make") {
      detail::Block b;
      detail::encode(values[chosen], b, api.allocate);
      detail::check(api.deliver(process, &b.value), guards.all[chosen].end);
      b.value.block = nullptr;
    }
    return said;
  }
  std::uint32_t number(std::size_t b) const { return barriers_.at(b).guard(0).end; }

  const std::int64_t pid_;
  const std::vector<std::uint32_t> ends_;
  std::vector<Barrier> barriers_;
  std::vector<std::unique_ptr<Extended<std::string>>> held_;
  std::vector<std::exception_ptr> thrown_;
  int guard_ = -1;
};

using R = Reader<std::string>;
using W = Writer<std::string>;
constexpr std::size_t kMaxEnds = 4;  // the greatest number of ends of a process

template <class... E>
struct With {
  static void play(E... ends, Barrier a, Barrier b, std::int64_t pid) {
    Player(pid, {ends.number()...}, std::move(a), std::move(b)).run();
  }
  // Declares p, pr, pw, prr, …: one process function for each list of ends.
  static void declare(Component& component, const std::string& name) {
    static const std::string mine = name;
    static const char* const names[kMaxEnds] = {"e0", "e1", "e2", "e3"};
    Process& p = component.process<&With::play>(mine.c_str());
    for (std::size_t k = 0; k < sizeof...(E); ++k) p.argument(names[k]);
    p.argument("a").argument("b").argument("pid");
    if constexpr (sizeof...(E) < kMaxEnds) {
      With<E..., R>::declare(component, name + "r");
      With<E..., W>::declare(component, name + "w");
    }
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void set_step(Step s) { step = s; }

WEFT_COMPONENT(player, "Processes that do what they are told.") { With<>::declare(component, "p"); }
