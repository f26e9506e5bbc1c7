// Random networks of spaces over links that lose, double, delay, disorder, spoil and are cut
// (WIRE-LINKS.md 13): one network for each seed, which is the same on every machine. There are no
// threads. The tests run some of these networks, `wire_soak` as many as there is time for.
//
// Each network checks that values arrive in order, none lost and none doubled; that a cut ends the
// network with PeerDied, after a prefix of what was sent has arrived; and that no operation waits
// for ever.
#pragma once
#include <deque>
#include <string>

#include "random.hpp"
#include "weft/weft.hpp"
#include "weft/wire/resend.hpp"
#include "wire_world.hpp"

namespace weft::test {

using w::detail::Resender;

// One direction of a link, which may do everything to packets except invent them.
struct Lossy {
  Random& dice;
  std::vector<w::Buffer> on_way;
  int lost = 0, doubled = 0, spoilt = 0;
  explicit Lossy(Random& r) : dice(r) {}
  void send(const w::Buffer& packet) {
    if (dice.below(5) == 0) return void(++lost);
    on_way.push_back(packet);
    if (dice.below(8) == 0) on_way.push_back(packet), ++doubled;
    if (dice.below(12) == 0)
      on_way.back()[static_cast<std::size_t>(dice.below(static_cast<int>(packet.size())))] ^=
          std::byte{4},
          ++spoilt;
  }
  // Takes a packet that is under way, at random. Returns false if there is none.
  bool arrive(w::Buffer& packet) {
    if (on_way.empty()) return false;
    const auto at = on_way.begin() + dice.below(static_cast<int>(on_way.size()));
    packet = std::move(*at);
    on_way.erase(at);
    return true;
  }
};

// A session over two such directions.
class LossySession {
 public:
  LossySession(w::Space& home, w::Space& party, Random& r)
      : at_home(std::make_shared<w::Peer>(home)),
        at_party(std::make_shared<w::Peer>(party)),
        up_(r),
        down_(r),
        dice_(r) {
    for (w::Peer* p : {at_home.get(), at_party.get()}) {
      const w::Space::Step step(*p->space);
      p->session.greet();
    }
  }
  const std::shared_ptr<w::Peer> at_home, at_party;
  bool cut = false;

  // Makes one event happen, or none. Now and then time passes.
  void step() {
    if (cut) return;
    switch (dice_.below(6)) {
      case 0: return sends(*at_home, home_, down_);
      case 1: return sends(*at_party, party_, up_);
      case 2: return arrives(*at_party, party_, down_);
      case 3: return arrives(*at_home, home_, up_);
      default:
        if (dice_.below(10) > 0) return;
        if (!home_.waited() || !party_.waited()) end("no acknowledgement came");
    }
  }
  void end(const std::string& why) {
    cut = true;
    for (w::Peer* p : {at_home.get(), at_party.get()}) {
      const w::Space::Step step(*p->space);
      p->session.lost(why);
    }
  }
  int troubles() const {
    return up_.lost + down_.lost + up_.doubled + down_.doubled + up_.spoilt + down_.spoilt;
  }

 private:
  static void sends(w::Peer& p, Resender& r, Lossy& to) {
    {
      const w::Space::Step step(*p.space);
      p.session.went(r.queue(p.session.output()));
    }
    w::Buffer packet;
    if (r.next(packet)) to.send(packet);
  }
  static void arrives(w::Peer& p, Resender& r, Lossy& from) {
    w::Buffer packet, in;
    if (!from.arrive(packet)) return;
    r.input(packet, in);
    const w::Space::Step step(*p.space);
    p.session.input(in);
  }
  Resender home_{4, 100, 200}, party_{4, 100, 200};
  Lossy up_, down_;
  Random& dice_;
};

// A line of spaces. Numbers go through channels, each with its home in one of two neighbours; every
// stage adds one.
struct Network {
  Random dice;
  int stages, values;
  std::vector<std::shared_ptr<w::Space>> spaces;
  std::deque<Channel<int>> channels;
  std::vector<std::unique_ptr<LossySession>> sessions;
  explicit Network(std::uint64_t seed)
      : dice(seed), stages(1 + dice.below(3)), values(5 + dice.below(20)) {
    // Space 0 is the home of every channel, so that each stage reads and writes over its own link.
    spaces.push_back(w::Space::make("home", 1));
    for (int i = 0; i <= stages; ++i)
      channels.emplace_back(dice.below(2) ? buffer(static_cast<std::uint32_t>(1 + dice.below(4)))
                                          : ChannelOptions{});
    for (int i = 0; i < stages; ++i) {
      spaces.push_back(w::Space::make("stage", static_cast<std::uint64_t>(i) + 2));
      sessions.push_back(std::make_unique<LossySession>(*spaces[0], *spaces.back(), dice));
      const w::Space::Step step(*spaces[0]);
      w::Home& h = sessions.back()->at_home->home;
      const auto at = static_cast<std::size_t>(i);
      h.give(std::make_shared<w::PortOf<int, core::Side::in>>(channels[at].reader()), "i4", "in",
             0);
      h.give(std::make_shared<w::PortOf<int, core::Side::out>>(channels[at + 1].writer()), "i4",
             "out", 0);
    }
  }
};

// A local operation without a thread: the operation begins, and the test checks the result later.
struct Local : core::Waker {
  static void wake(core::Waker* n) noexcept;
  static const core::WakerOps kOps;
  int value = 0;
  bool done = true;
  Status at_once = Status::ok;
  Local() { ops = &kOps, slot = &value; }
  template <core::Side S, class C>
  void begin(C& c) {
    done = false;
    if ((at_once = c.template begin<S>(*this)) != Status::pending) done = true, status = at_once;
  }
};

inline void Local::wake(core::Waker* n) noexcept { static_cast<Local*>(n)->done = true; }
inline const core::WakerOps Local::kOps{&Local::wake, nullptr, nullptr, 0, nullptr};

// Runs the network of a seed. Returns a description of the fault, or an empty text if there was
// none.
inline std::string run_network(std::uint64_t seed, bool cuts) {
  std::string wrong;
  const auto check = [&](bool good, const char* what) {
    if (!good && wrong.empty())
      wrong = "seed " + std::to_string(seed) + (cuts ? ", with a cut: " : ": ") + what;
  };
  Local writes, reads;  // destroyed after the network, whose destructor may end these operations
  Network n(seed);
  Writer<int> in = n.channels.front().writer();
  Reader<int> out = n.channels.back().reader();
  struct Stage {
    std::unique_ptr<Op> op;
    std::unique_ptr<Op> block;  // an extended read; its block ends when the value is passed on
    bool has = false, extended = false, over = false;
    int value = 0;
  };
  std::vector<Stage> stages(static_cast<std::size_t>(n.stages));
  int written = 0, got = 0;
  const int cut_after = cuts ? n.dice.below(3000) : -1;
  bool reading = false, over = false;
  int troubles = 0;
  for (int step = 0; step < 400'000 && !over; ++step) {
    if (step == cut_after)
      n.sessions[static_cast<std::size_t>(n.dice.below(n.stages))]->end("it was cut");
    n.sessions[static_cast<std::size_t>(n.dice.below(n.stages))]->step();
    if (writes.done && written < n.values && is_end(writes.status) == false) {
      writes.value = written++;
      writes.begin<core::Side::out>(*in.core());
    }
    if (!reading) reading = true, reads.begin<core::Side::in>(*out.core());
    if (reading && reads.done) {
      if (reads.status != Status::ok) {
        over = true;
        check(cuts, "a read at the end of the network failed");
        check(reads.status == Status::died, "the last reader was not told of a death");
      } else {
        check(reads.value == got + n.stages, "a value is out of order, lost or doubled");
        ++got;
        reading = false;
        over = got == n.values;
      }
    }
    for (int i = 0; i < n.stages; ++i) {
      Stage& s = stages[static_cast<std::size_t>(i)];
      w::Peer& p = *n.sessions[static_cast<std::size_t>(i)]->at_party;
      if (s.over || p.offered.size() < 2) continue;
      if (!s.op) {
        s.op = std::make_unique<Op>();
        if (s.has)
          s.op->write(1, s.value + 1).begin(p);
        else if (s.extended = n.dice.below(3) == 0; s.extended)
          s.op->hold(0, n.dice.below(2) == 0).begin(p);
        else
          s.op->read(0).begin(p);
      }
      if (!s.op->is_over) continue;
      if (!s.op->ok()) {
        check(cuts, "an operation of a stage failed");
        check(s.op->status() == Status::died || s.op->status() == Status::retired,
              "an operation of a stage failed in another way");
        s.over = true;
        // The ends of that space are lost with the session.
        if (!p.session.is_over()) n.sessions[static_cast<std::size_t>(i)]->end("it has ended");
        continue;
      }
      if (!s.has) s.value = s.op->value();
      if (s.has && s.block) std::exchange(s.block, nullptr)->end_block();
      s.has = !s.has;
      if (s.has && s.extended) s.block = std::move(s.op);
      s.op.reset();
    }
  }
  for (const auto& s : n.sessions) troubles += s->troubles();
  check(over, "it waits for ever");
  check(cuts || got == n.values, "it ended too early");
  check(cuts || troubles > 0, "nothing was lost, doubled or spoilt: a test of nothing");
  if (reading && !reads.done) out.core()->withdraw<core::Side::in>(reads);
  if (!writes.done) in.core()->withdraw<core::Side::out>(writes);
  return wrong;
}

}  // namespace weft::test
