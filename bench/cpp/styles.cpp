// CommsTime with every style of process: functions, lambdas and process objects, as coroutines over
// local and shared channels and as OS threads; with a sequential delta and with a parallel one,
// which starts two processes for every number.
//
// The bodies are written once for coroutines and once for threads; a style only determines how a
// body becomes a process.
#include <string_view>

#include "common.hpp"

namespace {

template <class P>
using In = weft::Reader<int, P>;
template <class P>
using Out = weft::Writer<int, P>;

// --- coroutines: as functions --------------------------------------------------------------------

template <class P>
weft::Process prefix(In<P> in, Out<P> out) {
  co_await out.write(0);
  for (;;) {
    const int x = co_await in.read();
    co_await out.write(x);
  }
}
template <class P>
weft::Process delta(In<P> in, Out<P> left, Out<P> right) {
  for (;;) {
    const int x = co_await in.read();
    co_await left.write(x);
    co_await right.write(x);
  }
}
template <class P>
weft::Process write_one(const Out<P>& out, int x) {
  co_await out.write(x);
}
template <class P>
weft::Process par_delta(In<P> in, Out<P> left, Out<P> right) {
  for (;;) {
    const int x = co_await in.read();
    co_await weft::par(write_one<P>(left, x), write_one<P>(right, x));
  }
}
// The channel into the delta is poisoned at the end. The writers of a parallel delta end quietly,
// so without the poison the delta would continue without a reader.
template <class P>
weft::Process consumer(In<P> in, weft::Channel<int, P> into_delta, long samples, long per) {
  bench::Sampler s(samples);
  int expected = 0;
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i)
      if (co_await in.read() != expected++) bench::fail("styles: read a wrong number");
    if (k > 0) s.end(4.0 * static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
  into_delta.poison();
}

template <class P>
struct Ends {
  weft::Channel<int, P> a, b, c, d;
};

template <class P>
void functions(bool parallel, long samples, long per) {
  Ends<P> n;
  weft::run(
      weft::par(prefix<P>(n.c.reader(), n.a.writer()),
                (parallel ? par_delta<P> : delta<P>)(n.a.reader(), n.b.writer(), n.d.writer()),
                bench::successor<P>(n.b.reader(), n.c.writer()),
                consumer<P>(n.d.reader(), n.a, samples, per)));
}

// --- coroutines: as lambdas, in place ------------------------------------------------------------

template <class P>
void lambdas(bool parallel, long samples, long per) {
  Ends<P> n;
  const auto sequential_delta = [](In<P> in, Out<P> left, Out<P> right) -> weft::Process {
    for (;;) {
      const int x = co_await in.read();
      co_await left.write(x);
      co_await right.write(x);
    }
  };
  const auto parallel_delta = [](In<P> in, Out<P> left, Out<P> right) -> weft::Process {
    const auto one = [](const Out<P>& out, int x) -> weft::Process { co_await out.write(x); };
    for (;;) {
      const int x = co_await in.read();
      co_await weft::par(one(left, x), one(right, x));
    }
  };
  weft::run(weft::par(
      [](In<P> in, Out<P> out) -> weft::Process {
        co_await out.write(0);
        for (;;) {
          const int x = co_await in.read();
          co_await out.write(x);
        }
      }(n.c.reader(), n.a.writer()),
      parallel ? parallel_delta(n.a.reader(), n.b.writer(), n.d.writer())
               : sequential_delta(n.a.reader(), n.b.writer(), n.d.writer()),
      [](In<P> in, Out<P> out) -> weft::Process {
        for (;;) {
          const int x = co_await in.read();
          co_await out.write(x + 1);
        }
      }(n.b.reader(), n.c.writer()),
      consumer<P>(n.d.reader(), n.a, samples, per)));
}

// --- coroutines: as process objects, which move into their own frames ----------------------------

template <class P>
struct Prefix {
  int first;
  In<P> in;
  Out<P> out;
  weft::Process operator()() && { return run(std::move(*this)); }
  static weft::Process run(Prefix self) {
    co_await self.out.write(self.first);
    for (;;) {
      const int x = co_await self.in.read();
      co_await self.out.write(x);
    }
  }
};
template <class P>
struct Delta {
  In<P> in;
  Out<P> left, right;
  weft::Process operator()() && { return run(std::move(*this)); }
  static weft::Process run(Delta self) {
    for (;;) {
      const int x = co_await self.in.read();
      co_await self.left.write(x);
      co_await self.right.write(x);
    }
  }
};
template <class P>
struct ParDelta {
  In<P> in;
  Out<P> left, right;
  weft::Process operator()() && { return run(std::move(*this)); }
  static weft::Process run(ParDelta self) {
    for (;;) {
      const int x = co_await self.in.read();
      co_await weft::par(write_one<P>(self.left, x), write_one<P>(self.right, x));
    }
  }
};
template <class P>
struct Successor {
  In<P> in;
  Out<P> out;
  weft::Process operator()() && { return run(std::move(*this)); }
  static weft::Process run(Successor self) {
    for (;;) {
      const int x = co_await self.in.read();
      co_await self.out.write(x + 1);
    }
  }
};

template <class P>
void objects(bool parallel, long samples, long per) {
  Ends<P> n;
  weft::run(weft::par(Prefix<P>{0, n.c.reader(), n.a.writer()}(),
                      parallel ? ParDelta<P>{n.a.reader(), n.b.writer(), n.d.writer()}()
                               : Delta<P>{n.a.reader(), n.b.writer(), n.d.writer()}(),
                      Successor<P>{n.b.reader(), n.c.writer()}(),
                      consumer<P>(n.d.reader(), n.a, samples, per)));
}

// --- threads -------------------------------------------------------------------------------------

using TIn = weft::Reader<int>;
using TOut = weft::Writer<int>;

struct ThreadPrefix {
  TIn in;
  TOut out;
  void operator()() {
    out(0);
    for (;;) out(in());
  }
};
struct ThreadDelta {
  bool parallel;
  TIn in;
  TOut left, right;
  void operator()() {
    for (;;) {
      const int x = in();
      if (parallel) {
        weft::run(weft::thread([this, x] { left(x); }), weft::thread([this, x] { right(x); }));
      } else {
        left(x);
        right(x);
      }
    }
  }
};
struct ThreadSuccessor {
  TIn in;
  TOut out;
  void operator()() {
    for (;;) out(in() + 1);
  }
};
struct ThreadConsumer {
  TIn in;
  weft::Channel<int> into_delta;
  long samples, per;
  void operator()() {
    bench::Sampler s(samples);
    int expected = 0;
    for (long k = 0; k <= samples; ++k) {
      s.begin();
      for (long i = 0; i < per; ++i)
        if (in() != expected++) bench::fail("styles: read a wrong number");
      if (k > 0) s.end(4.0 * static_cast<double>(per));  // stretch 0 warms up
    }
    s.print();
    into_delta.poison();
  }
};

// The bodies of the threads, as functions of their ends.
void thread_prefix(const TIn& in, const TOut& out) {
  out(0);
  for (;;) out(in());
}
void thread_successor(const TIn& in, const TOut& out) {
  for (;;) out(in() + 1);
}

void threads(std::string_view style, bool parallel, long samples, long per) {
  Ends<weft::Shared> n;
  const auto network = [&](auto prefix, auto successor) {
    weft::run(weft::thread(std::move(prefix)),
              weft::thread(ThreadDelta{parallel, n.a.reader(), n.b.writer(), n.d.writer()}),
              weft::thread(std::move(successor)),
              weft::thread(ThreadConsumer{n.d.reader(), n.a, samples, per}));
  };
  if (style == "functions")
    network(std::bind(thread_prefix, n.c.reader(), n.a.writer()),
            std::bind(thread_successor, n.b.reader(), n.c.writer()));
  else if (style == "lambdas")
    network(
        [in = n.c.reader(), out = n.a.writer()] {
          out(0);
          for (;;) out(in());
        },
        [in = n.b.reader(), out = n.c.writer()] {
          for (;;) out(in() + 1);
        });
  else
    network(ThreadPrefix{n.c.reader(), n.a.writer()}, ThreadSuccessor{n.b.reader(), n.c.writer()});
}

template <class P>
void coroutines(std::string_view style, bool parallel, long samples, long per) {
  (style == "functions" ? functions<P>
   : style == "lambdas" ? lambdas<P>
                        : objects<P>)(parallel, samples, per);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage =
      "usage: styles local|shared|threads functions|lambdas|objects sequential|parallel SAMPLES "
      "PER";
  if (argc != 6) bench::fail(usage);
  const std::string_view kind = argv[1], style = argv[2], delta = argv[3];
  const long samples = bench::number(argv[4]), per = bench::number(argv[5]);
  if ((style != "functions" && style != "lambdas" && style != "objects") ||
      (delta != "sequential" && delta != "parallel"))
    bench::fail(usage);
  if (kind == "local")
    coroutines<weft::Local>(style, delta == "parallel", samples, per);
  else if (kind == "shared")
    coroutines<weft::Shared>(style, delta == "parallel", samples, per);
  else if (kind == "threads")
    threads(style, delta == "parallel", samples, per);
  else
    bench::fail(usage);
}
