// Tests how the plug-and-play processes end: each process, by retirement and by poison of each of
// its channels, as coroutines on local and shared channels and on threads.
#include "plugnplay.hpp"

#include <functional>
#include <sstream>

using namespace test;
namespace pnp = weft::plugnplay;

namespace {

// The other side of one channel of the process under test. Ports run in virtual time, so that a
// port that waits for a time lets the other processes run first.
struct Port {
  bool input;
  bool optional;  // whether the process continues without this port
  std::function<Process()> leave, poison;
  // Writes or reads until the port learns of the channel's end, or at most n times.
  std::function<Process(std::string*, int)> watch;
};
template <class E>
Process leaving(E) {
  co_await weft::yield();
}
template <class E>
Process poisoning(E end) {
  co_await weft::yield();
  end.poison(3);
}
// Names the way in which a channel ended.
std::string way_of_end(std::exception_ptr failure) {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const weft::Poisoned& e) {
    return "poison " + std::to_string(e.strength);
  } catch (const weft::Retired&) {
    return "retired";
  }
}

template <class P>
class Network {
 public:
  std::vector<Port> ports;
  std::function<Process()> process;

  template <class T>
  weft::Channel<T, P> in(std::vector<T> values, bool optional = false, weft::Span pause = {}) {
    weft::Channel<T, P> c;
    const auto watch = [c, values, pause](std::string* heard, int most) {
      return writing(c.writer(), values, pause, heard, most);
    };
    ports.push_back({true, optional, [c] { return leaving(c.writer()); },
                     [c] { return poisoning(c.writer()); }, watch});
    return c;
  }
  weft::Channel<int, P> in() { return in<int>({1}); }
  weft::Channel<int, P> in_or_none() { return in<int>({1}, true); }
  template <class T = int>
  weft::Channel<T, P> out() {
    weft::Channel<T, P> c;
    const auto watch = [c](std::string* heard, int most) {
      return reading(c.reader(), heard, most);
    };
    ports.push_back({false, false, [c] { return leaving(c.reader()); },
                     [c] { return poisoning(c.reader()); }, watch});
    return c;
  }

 private:
  template <class T>
  static Process writing(weft::Writer<T, P> w, std::vector<T> values, weft::Span pause,
                         std::string* heard, int most) {
    try {
      for (int i = 0; i != most; ++i) {
        T value = values[static_cast<std::size_t>(i) % values.size()];
        co_await w.write(std::move(value));
        if (pause.count() > 0) co_await weft::sleep(pause);
      }
      *heard = "enough";
    } catch (const weft::ChannelEnd&) {
      *heard = way_of_end(std::current_exception());
    }
  }
  template <class T>
  static Process reading(weft::Reader<T, P> r, std::string* heard, int most) {
    try {
      for (int i = 0; i != most; ++i) co_await r.read();
      *heard = "enough";
    } catch (const weft::ChannelEnd&) {
      *heard = way_of_end(std::current_exception());
    }
  }
};

template <class P>
struct Subject {
  std::string name;
  std::function<void(Network<P>&)> make;
};
// Returns every process of the library.
template <class P>
std::vector<Subject<P>> all_processes() {
  using N = Network<P>;
  using Packet = pnp::Packet<int>;
  const auto unary = [](auto make) {
    return [make](N& n) {
      auto a = n.in(), b = n.out();
      n.process = [=] { return make(a, b); };
    };
  };
  const auto binary = [](auto make) {
    return [make](N& n) {
      auto a = n.in(), b = n.in(), c = n.out();
      n.process = [=] { return make(a, b, c); };
    };
  };
  return {
      {"identity", unary([](auto a, auto b) { return pnp::identity<int>(a, b); })},
      {"successor", unary([](auto a, auto b) { return pnp::successor<int>(a, b); })},
      {"mult", unary([](auto a, auto b) { return pnp::mult<int>(2, a, b); })},
      {"substitute", unary([](auto a, auto b) { return pnp::substitute<int>(a, b, 5); })},
      {"transform",
       unary([](auto a, auto b) { return pnp::transform(a, b, [](int x) { return x; }); })},
      {"sign",
       [](N& n) {
         auto a = n.in();
         auto b = n.template out<std::string>();
         n.process = [=] { return pnp::sign(a, b, "= "); };
       }},
      {"plus", binary([](auto a, auto b, auto c) { return pnp::plus<int>(a, b, c); })},
      {"times", binary([](auto a, auto b, auto c) { return pnp::times<int>(a, b, c); })},
      {"and_", binary([](auto a, auto b, auto c) { return pnp::and_<int>(a, b, c); })},
      {"or_", binary([](auto a, auto b, auto c) { return pnp::or_<int>(a, b, c); })},
      {"xor_", binary([](auto a, auto b, auto c) { return pnp::xor_<int>(a, b, c); })},
      {"nand", binary([](auto a, auto b, auto c) { return pnp::nand<int>(a, b, c); })},
      {"nor", binary([](auto a, auto b, auto c) { return pnp::nor<int>(a, b, c); })},
      {"prefix", unary([](auto a, auto b) { return pnp::prefix<int>(1, a, b); })},
      {"tail", unary([](auto a, auto b) { return pnp::tail<int>(a, b); })},
      {"pairs", unary([](auto a, auto b) { return pnp::pairs<int>(a, b); })},
      {"numbers",
       [](N& n) {
         auto a = n.out();
         n.process = [=] { return pnp::numbers<int>(a); };
       }},
      {"generate",
       [](N& n) {
         auto a = n.out();
         n.process = [=] { return pnp::generate<int>(a, 4); };
       }},
      {"black_hole",
       [](N& n) {
         auto a = n.in();
         n.process = [=] { return pnp::black_hole<int>(a); };
       }},
      {"printer",
       [](N& n) {
         auto a = n.in();
         auto text = std::make_shared<std::ostringstream>();
         n.process = [=] { return pnp::printer<int>(a, "", "", *text); };
       }},
      {"merge",
       [](N& n) {
         auto a = n.in_or_none(), b = n.in_or_none(), c = n.out();
         n.process = [=] { return pnp::merge<int>({a, b}, c); };
       }},
      {"delta",
       [](N& n) {
         auto a = n.in(), b = n.out(), c = n.out();
         n.process = [=] { return pnp::delta<int>(a, {b, c}); };
       }},
      {"sequential_delta",
       [](N& n) {
         auto a = n.in(), b = n.out(), c = n.out();
         n.process = [=] { return pnp::sequential_delta<int>(a, {b, c}); };
       }},
      {"dynamic_delta",
       [](N& n) {
         // The channel carries ends that dynamic_delta adds, removes, adds, …
         weft::Channel<int, P> more{weft::buffer(1, weft::Overflow::drop_newest)};
         auto a = n.in();
         auto config = n.template in<weft::Writer<int, P>>({more.writer()}, true, 1ms);
         auto b = n.out(), c = n.out();
         n.process = [=] { return pnp::dynamic_delta<int>(a, config, {b, c}); };
       }},
      {"plex",
       [](N& n) {
         auto a = n.in_or_none(), b = n.in_or_none(), c = n.out();
         n.process = [=] { return pnp::plex<int>({a, b}, c); };
       }},
      {"multiplex",
       [](N& n) {
         auto a = n.in_or_none(), b = n.in_or_none();
         auto c = n.template out<Packet>();
         n.process = [=] { return pnp::multiplex<int>({a, b}, c); };
       }},
      {"demultiplex",
       [](N& n) {
         auto a = n.template in<Packet>({{0, 1}, {1, 1}});
         auto b = n.out(), c = n.out();
         n.process = [=] { return pnp::demultiplex<int>(a, {b, c}); };
       }},
      {"paraplex",
       [](N& n) {
         auto a = n.in(), b = n.in();
         auto c = n.template out<Ints>();
         n.process = [=] { return pnp::paraplex<int>({a, b}, c); };
       }},
      {"deparaplex",
       [](N& n) {
         auto a = n.template in<Ints>({{1, 2}});
         auto b = n.out(), c = n.out();
         n.process = [=] { return pnp::deparaplex<int>(a, {b, c}); };
       }},
      {"fixed_delay", unary([](auto a, auto b) { return pnp::fixed_delay<int>(5ms, a, b); })},
      {"regular",
       [](N& n) {
         auto a = n.out();
         n.process = [=] { return pnp::regular<int>(a, 4, 5ms); };
       }},
      {"regulate",
       [](N& n) {
         auto a = n.in();
         auto reset = n.template in<weft::Span>({5ms}, true, 1ms);
         auto b = n.out();
         n.process = [=] { return pnp::regulate<int>(a, reset, b, 5ms); };
       }},
  };
}
// Runs each process with `role(port, index, heard)` at its channels; calls `check` with the outcome
// at each port.
template <class Form, class Role, class Check>
void run_with_role(const Subject<typename Form::P>& s, Role role, Check check) {
  Network<typename Form::P> n;
  s.make(n);
  std::vector<std::string> heard(n.ports.size());
  std::vector<Process> others;
  for (std::size_t i = 0; i < n.ports.size(); ++i) others.push_back(role(n.ports[i], i, &heard[i]));
  weft::run(virtually, weft::par{std::move(others), Form::as(n.process())});
  for (std::size_t i = 0; i < n.ports.size(); ++i) check(n.ports[i], i, heard[i]);
}
template <class P>
std::vector<Port> ports_of(const Subject<P>& s) {
  Network<P> n;
  s.make(n);
  return n.ports;
}

}  // namespace

TEST_CASE_TEMPLATE(
    "rule 4.3: poison of any channel of any plug-and-play process reaches all its others", Form,
    FORMS) {
  using P = typename Form::P;
  for (const Subject<P>& s : all_processes<P>()) {
    CAPTURE(s.name);
    for (std::size_t k = 0; k < ports_of(s).size(); ++k) {
      CAPTURE(k);
      run_with_role<Form>(
          s,
          [k](Port& p, std::size_t i, std::string* heard) {
            return i == k ? p.poison() : p.watch(heard, -1);
          },
          [k](Port&, std::size_t i, const std::string& heard) {
            CHECK(heard == (i == k ? "" : "poison 3"));
          });
    }
  }
}

TEST_CASE_TEMPLATE(
    "rules 3.3, 3.5: a plug-and-play process ends with any channel that it needs, and so do its "
    "others",
    Form, FORMS) {
  using P = typename Form::P;
  for (const Subject<P>& s : all_processes<P>()) {
    CAPTURE(s.name);
    const std::vector<Port> ports = ports_of(s);
    for (std::size_t k = 0; k < ports.size(); ++k) {
      CAPTURE(k);
      if (!ports[k].optional) {
        run_with_role<Form>(
            s,
            [k](Port& p, std::size_t i, std::string* heard) {
              return i == k ? p.leave() : p.watch(heard, -1);
            },
            [k](Port&, std::size_t i, const std::string& heard) {
              CHECK(heard == (i == k ? "" : "retired"));
            });
        continue;
      }
      // The process continues without this port. The user of the last channel, which is an output,
      // then stops reading and closes it, and all processes end.
      const std::size_t last = ports.size() - 1;
      run_with_role<Form>(
          s,
          [k, last](Port& p, std::size_t i, std::string* heard) {
            return i == k ? p.leave() : p.watch(heard, i == last ? 20 : -1);
          },
          [k, last](Port&, std::size_t i, const std::string& heard) {
            CHECK(heard == (i == k ? "" : i == last ? "enough" : "retired"));
          });
    }
    // All inputs of the process end. The process ends, even if it could continue without some of
    // them.
    if (!ports.front().input) continue;
    run_with_role<Form>(
        s,
        [](Port& p, std::size_t, std::string* heard) {
          return p.input ? p.leave() : p.watch(heard, -1);
        },
        [](Port& p, std::size_t, const std::string& heard) {
          CHECK(heard == (p.input ? "" : "retired"));
        });
  }
}
