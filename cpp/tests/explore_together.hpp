// Several reads or several writes of one process at once (rule 7.10): the engine of par_read and
// par_write, on a thread that parks.
#pragma once
#include "weft/runtime/together.hpp"

namespace weft::test {

// A process that offers N operations at the same time, and waits as a thread process does.
template <Side S, std::size_t N>
class Several : public runtime::ProcessBase {
 public:
  using All = runtime::Together<Chan, S, N, true>;
  std::array<Status, N> status{};
  std::array<std::uint32_t, N> value{};  // the value that was read, or 0 if there was none

  Several() {
    ops = &kOps;
    id = 1;
  }
  void ask_to_end() noexcept {
    cancel().store(1);
    parker_.nudge();
  }
  // Offers all operations; `values` are the values to write. Returns true if all operations have
  // committed.
  bool go(std::array<Chan*, N> cs, std::array<std::uint32_t, N> values = {}) {
    Room room[N];
    std::optional<Item> item[N];
    bool whole = true;
    {
      All all(this, N);
      for (std::size_t i = 0; i < N; ++i) {
        if (S == Side::out) item[i].emplace(values[i]);
        all.set(i, cs[i], S == Side::out ? static_cast<void*>(&*item[i]) : room[i].raw);
      }
      if (!all.begin() && !(cancel().load() && All::kind.withdraw(*this)))
        while (!parker_.await())
          if (cancel().load() && All::kind.withdraw(*this)) break;
      op = nullptr;
      for (std::size_t i = 0; i < N; ++i) {
        status[i] = all[i].status;
        value[i] = S == Side::in && all.done(i) ? room[i].take() : 0;
        whole = whole && all.done(i);
      }
    }
    return whole;
  }

 private:
  static void wake(core::Waker* w) noexcept {
    core::Parker& p = static_cast<Several*>(static_cast<runtime::ProcessBase*>(w))->parker_;
    p.ops->wake(&p);
  }
  static const runtime::ProcessOps kOps;
  core::Parker parker_;
};
template <Side S, std::size_t N>
inline const runtime::ProcessOps Several<S, N>::kOps{{&Several::wake, nullptr, nullptr, 0},
                                                     nullptr};

SCENARIO("together: reads of two channels, written in either order by two (rule 7.10)", 3) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  Process w, v;
  name(c, "c"), name(d, "d");
  bool whole = false;
  spawn("R", [&] { whole = r.go({&c, &d}); });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(d, 2) == Status::ok); });
  run();
  REQUIRE_THAT(whole && r.value[0] == 1 && r.value[1] == 2 && empty(c) && empty(d));
  b.check();
}

// W stands for a demultiplex process, R for the par_read behind it.
SCENARIO(
    "together: reads of two channels, written by one in either order, twice over (rules 1.2, 7.10)",
    3) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  Process w;
  const bool first_d = choose(2) != 0;
  spawn("R", [&] {
    for (std::uint32_t i = 1; i <= 2; ++i)
      REQUIRE_THAT(r.go({&c, &d}) && r.value[0] == i && r.value[1] == 10 * i);
  });
  spawn("W", [&] {
    for (std::uint32_t i = 1; i <= 2; ++i) {
      if (first_d) REQUIRE_THAT(w.write(d, 10 * i) == Status::ok);
      REQUIRE_THAT(w.write(c, i) == Status::ok);
      if (!first_d) REQUIRE_THAT(w.write(d, 10 * i) == Status::ok);
    }
  });
  run();
  REQUIRE_THAT(empty(c) && empty(d) && c.transfers() == 2 && d.transfers() == 2);
  b.check();
}

SCENARIO("together: two writes of one meet two reads of another, in opposite order (rule 7.10)",
         3) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  Several<Side::out, 2> w;
  bool read = false, written = false;
  spawn("R", [&] { read = r.go({&c, &d}); });
  spawn("W", [&] { written = w.go({&d, &c}, {2, 1}); });
  run();
  REQUIRE_THAT(read && written && r.value[0] == 1 && r.value[1] == 2 && empty(c) && empty(d));
  b.check();
}

SCENARIO("together: two reads of one channel, two writers (rule 7.10)", 3) {
  Balance b;
  Chan c;
  Several<Side::in, 2> r;
  Process w, v;
  bool whole = false;
  spawn("R", [&] { whole = r.go({&c, &c}); });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(c, 2) == Status::ok); });
  run();
  REQUIRE_THAT(whole && r.value[0] + r.value[1] == 3 && empty(c));
  b.check();
}

SCENARIO("together: a choice of two outputs meets two reads (rules 5.1, 7.10)", 3) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  Process w;
  bool whole = false;
  spawn("R", [&] { whole = r.go({&c, &d}); });
  spawn("W", [&] {
    w.out(c, 1);
    w.out(d, 2);
    const auto chosen = w.go();
    REQUIRE_THAT(chosen.index == 0 || chosen.index == 1);
    REQUIRE_THAT((chosen.index == 0 ? w.write(d, 2) : w.write(c, 1)) == Status::ok);
  });
  run();
  REQUIRE_THAT(whole && r.value[0] == 1 && r.value[1] == 2 && empty(c) && empty(d));
  b.check();
}

SCENARIO(
    "together: a poison of one withdraws the other, which a writer may have met (rules 4.1, 7.10)",
    3) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  Process w, again;
  spawn("R", [&] {
    REQUIRE_THAT(!r.go({&c, &d}) && r.status[0] == Status::poisoned);
    REQUIRE_THAT(r.status[1] == Status::cancelled || r.status[1] == Status::ok);
    if (r.status[1] == Status::ok) return;
    const Got g = again.read(d);
    r.value[1] = g.value;
  });
  spawn("X", [&] { c.poison(1); });
  spawn("W", [&] { REQUIRE_THAT(w.write(d, 2) == Status::ok); });
  run();
  REQUIRE_THAT(r.value[1] == 2 && d.transfers() == 1 && empty(c) && empty(d));
  b.check();
}

SCENARIO(
    "together: a poison that is met while they are offered, or later, withdraws those before and "
    "after it (rules 4.1, 7.10)",
    3) {
  Balance b;
  Chan c, d, e;
  Several<Side::in, 3> r;
  spawn("R", [&] { REQUIRE_THAT(!r.go({&c, &d, &e})); });
  spawn("X", [&] { d.poison(1); });
  run();
  REQUIRE_THAT(r.status[1] == Status::poisoned && r.status[0] == Status::cancelled &&
               r.status[2] == Status::cancelled);
  REQUIRE_THAT(empty(c) && empty(d) && empty(e));
  b.check();
}

SCENARIO("together: poisons of two at once withdraw the third once (rules 4.1, 7.10)", 2) {
  Balance b;
  Chan c, d, e;
  Several<Side::out, 3> w;
  spawn("W", [&] { REQUIRE_THAT(!w.go({&c, &d, &e}, {1, 2, 3})); });
  spawn("X", [&] { c.poison(1); });
  spawn("Y", [&] { d.poison(1); });
  run();
  REQUIRE_THAT(w.status[0] == Status::poisoned || w.status[1] == Status::poisoned);
  for (const Status s : w.status) REQUIRE_THAT(s == Status::poisoned || s == Status::cancelled);
  REQUIRE_THAT(w.status[2] == Status::cancelled && empty(c) && empty(d) && empty(e));
  b.check();
}

SCENARIO("together: a cancellation meets two writers, nothing is lost (rules 6.2-6.4, 7.10)", 2) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  Process w, v, again;
  std::uint32_t sum = 0;
  spawn("R", [&] {
    const bool whole = r.go({&c, &d});
    sum = r.value[0] + r.value[1];
    if (whole) return;
    r.cancel().store(0);
    for (int i = 0; i < 2; ++i)
      if (r.status[i] != Status::ok) {
        REQUIRE_THAT(r.status[i] == Status::cancelled);
        sum += again.read(i == 0 ? c : d).value;
      }
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(d, 10) == Status::ok); });
  spawn("X", [&] { r.ask_to_end(); });
  run();
  REQUIRE_THAT(sum == 11 && c.transfers() == 1 && d.transfers() == 1 && empty(c) && empty(d));
  b.check();
}

SCENARIO(
    "together: a cancellation meets a writer; the process then reads on, and is woken for that "
    "alone (rules 6.3, 7.10)",
    2) {
  Balance b;
  Chan c, d, e;
  Several<Side::in, 2> r;
  Process w, again;
  spawn("R", [&] {
    if (r.go({&c, &d})) {  // The request to cancel came too late.
      REQUIRE_THAT(r.value[0] == 1 && r.value[1] == 2 && again.read(e).value == 3);
      return;
    }
    REQUIRE_THAT(r.status[1] == Status::cancelled);
    const std::uint32_t first = r.status[0] == Status::ok ? r.value[0] : again.read(c).value;
    r.cancel().store(0);
    REQUIRE_THAT(first == 1 && r.go({&d, &e}) && r.value[0] == 2 && r.value[1] == 3);
  });
  spawn("W", [&] {
    REQUIRE_THAT(w.write(c, 1) == Status::ok);
    REQUIRE_THAT(w.write(d, 2) == Status::ok);
    REQUIRE_THAT(w.write(e, 3) == Status::ok);
  });
  spawn("X", [&] { r.ask_to_end(); });
  run();
  REQUIRE_THAT(empty(c) && empty(d) && empty(e));
  b.check();
}

SCENARIO("together: a cancellation meets a poison (rules 4.1, 6.2, 7.10)", 3) {
  Balance b;
  Chan c, d;
  Several<Side::in, 2> r;
  spawn("R", [&] { REQUIRE_THAT(!r.go({&c, &d})); });
  spawn("X", [&] { r.ask_to_end(); });
  spawn("Y", [&] { c.poison(1); });
  run();
  REQUIRE_THAT(r.status[0] == Status::poisoned || r.status[0] == Status::cancelled);
  REQUIRE_THAT(r.status[1] == Status::cancelled && empty(c) && empty(d));
  b.check();
}

}  // namespace weft::test
