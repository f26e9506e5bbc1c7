// Exploration of rounds (wire 10.3, 10.6; conformance/models/wire_rounds.pml): two and three
// programs whose processes go on, wait and end, while one program, or two at once, asks. The code
// is that of the sessions, of the questions (asking.hpp) and of the conclusions from the answers
// (everywhere.hpp); the processes are simulated here, since the code of a link knows no processes.
// Every order of frames, of processes that go on and of rounds is run. The following is checked, as
// in the model. When a deadlock is declared, there was a moment between the two rounds at which no
// process could go on and no frame was under way; and still no process can go on and no frame is
// under way, unless a program has been killed meanwhile. A program that learns of the deadlock
// waits. A deadlock that exists at the end is declared, in every program.
#include <deque>
#include <optional>

#include "engine.hpp"
#include "explore_events.hpp"
#include "weft/wire/asking.hpp"
#include "weft/wire/everywhere.hpp"
#include "wire_world.hpp"

namespace weft::test {
namespace {

using explorer::engine;

// An operation at a channel of the program in which its process runs.
struct LocalOp : core::Waker {
  static void woken(core::Waker* w) noexcept;
  static const core::WakerOps kOps;
  std::unique_ptr<w::RoomOf<int>> room;
  bool over = false;
  explicit LocalOp(bool writes)
      : room(writes ? std::make_unique<w::RoomOf<int>>(1) : std::make_unique<w::RoomOf<int>>()) {
    ops = &kOps;
    slot = room->slot();
  }
};
void LocalOp::woken(core::Waker* w) noexcept { static_cast<LocalOp*>(w)->over = true; }
const core::WakerOps LocalOp::kOps{&LocalOp::woken, nullptr, nullptr, 0, nullptr};

// A process. It performs its operations one after the other, at ends of its own program or of
// another program, and ends with the last operation, or with the first operation that fails.
class Proc {
 public:
  struct End {
    w::Peer* peer = nullptr;  // null if the channel belongs to its own program
    std::uint32_t number = 0;
    bool writes = false;
    Reader<int> r{};
    Writer<int> w{};
  };
  // The objects of the explored programs that cannot be destroyed immediately.
  static inline std::vector<std::unique_ptr<LocalOp>>* leaving = nullptr;

  Proc() = default;
  Proc(const Proc&) = delete;
  Proc& operator=(const Proc&) = delete;
  ~Proc() { withdraw(); }
  void add_reader(w::Peer& at, std::uint32_t number) { ends_.push_back({&at, number, false}); }
  void add_writer(w::Peer& at, std::uint32_t number) { ends_.push_back({&at, number, true}); }
  void add_reader(Reader<int> r) { ends_.push_back({nullptr, 0, false, std::move(r)}); }
  void add_writer(Writer<int> w) { ends_.push_back({nullptr, 0, true, {}, std::move(w)}); }
  // Gives the process its operations. Each number is the index of an end, in the order in which
  // add_reader() and add_writer() were called; the process reads or writes at that end.
  void set_acts(std::vector<std::size_t> acts) { acts_ = std::move(acts); }

  bool has_ended() const { return ended_; }
  bool is_busy() const { return !ended_ && (far_ ? far_->is_over : !here_ || here_->over); }
  void go_on() {
    const bool good = far_ ? far_->ok() : !here_ || here_->status == Status::ok;
    far_.reset(), here_.reset();
    if (!good || next_ == acts_.size()) return end();
    End& e = ends_[acts_[next_++]];
    if (e.peer) {
      far_ = std::make_unique<Op>();
      (e.writes ? far_->write(e.number, 1) : far_->read(e.number)).begin(*e.peer);
      return;
    }
    here_ = std::make_unique<LocalOp>(e.writes);
    const Status s = e.writes ? e.w.core()->begin<core::Side::out>(*here_)
                              : e.r.core()->begin<core::Side::in>(*here_);
    if (s != Status::pending) here_->status = s, here_->over = true;
  }
  void end() {
    ended_ = true;
    withdraw();
    for (End& e : ends_) {
      e.r = {}, e.w = {};
      if (!e.peer || e.peer->session.is_over()) continue;
      const w::Space::Step step(*e.peer->space);
      e.peer->retire(e.number, false);
    }
  }

 private:
  void withdraw() {
    if (!here_ || here_->over) return;
    const End& e = ends_[acts_[next_ - 1]];
    const bool left = e.writes ? e.w.core()->withdraw<core::Side::out>(*here_)
                               : e.r.core()->withdraw<core::Side::in>(*here_);
    if (!left) leaving->push_back(std::move(here_));  // The operation's place is lent (wire 6.6).
    here_.reset();
  }

  std::deque<End> ends_;
  std::vector<std::size_t> acts_;
  std::size_t next_ = 0;
  std::unique_ptr<Op> far_;
  std::unique_ptr<LocalOp> here_;
  bool ended_ = false;
};

struct Programs;

// A program that answers rounds, and uses rounds to detect a deadlock.
class Asker final : public w::Asking {
 public:
  Asker(Programs& all, std::size_t which, std::shared_ptr<w::Space> space)
      : Asking(std::move(space)), all_(all), which_(which) {}
  ~Asker() { close(); }
  void look() {
    first_.reset();
    round();
  }
  bool has_answers() const { return answers_.has_value(); }
  bool is_asking() const { return asking_; }
  // Concludes from the answers of a round, and begins the second round, as Rounds::look() does.
  void go_on();

 private:
  void round() {
    asking_ = true;
    const w::Space::Step step(*space_);
    asked_first(me(), ask(false));
  }
  void asked_first(std::uint64_t asker, std::uint32_t round) override;
  void found(std::uint32_t, w::Bytes all, bool whole) override;
  void on_tell(w::Bytes) override;

  Programs& all_;
  const std::size_t which_;
  bool asking_ = false;
  std::optional<w::Everywhere> first_, answers_;
  // Whether no process could run, or a deadlock had been declared, when the answers of the
  // program's latest first round had arrived.
  bool was_still_ = false;
};

struct Program {
  std::shared_ptr<w::Space> space;
  std::optional<Asker> says;  // nullopt if the program answers no rounds
  std::deque<Proc> procs;
  std::vector<std::pair<Wire*, w::Peer*>> links;
  bool point = false;  // whether another program may connect at this program's meeting point
  bool left = false, killed = false, struck = false;
  bool was_due = false;  // whether the program waited when a deadlock was declared

  bool is_here() const { return !left && !killed; }
  bool waits() const {
    bool any = false;
    for (const Proc& p : procs) {
      if (p.is_busy()) return false;
      any = any || !p.has_ended();
    }
    return any && is_here() && !struck && !point;
  }
};

struct Programs {
  runtime::FreshPool fresh;
  std::vector<std::unique_ptr<LocalOp>> leaving;  // destroyed after all links
  std::deque<Program> all;
  std::deque<Channel<int>> channels;
  std::deque<Wire> wires;
  bool told = false, killed = false, told_who_ran = false;

  explicit Programs(std::size_t n, bool last_is_deaf = false) {
    Proc::leaving = &leaving;
    for (std::size_t i = 0; i < n; ++i) {
      Program& p = all.emplace_back();
      p.space = w::Space::make(std::string(1, static_cast<char>('a' + i)), i + 1);
      if (!last_is_deaf || i + 1 < n) p.says.emplace(*this, i, p.space);
    }
  }
  ~Programs() {
    // Processes are destroyed before the objects for which they wait.
    for (Program& p : all) p.procs.clear();
  }
  Wire& join(std::size_t home, std::size_t party) {
    Wire& l = wires.emplace_back(*all[home].space, *all[party].space);
    all[home].links.push_back({&l, &l.at_home});
    all[party].links.push_back({&l, &l.at_party});
    return l;
  }
  Channel<int>& channel() { return channels.emplace_back(); }
  Proc& process(std::size_t program) { return all[program].procs.emplace_back(); }

  static bool is_of_a_round(w::Kind k) {
    return k == w::Kind::ask || k == w::Kind::said || k == w::Kind::tell;
  }
  static bool has_news(const w::Peer& from) {
    for (w::Bytes out = from.session.output(); !out.empty();
         out = out.subspan(w::detail::get<std::uint16_t>(out.data())))
      if (!is_of_a_round(static_cast<w::Kind>(out[2]))) return true;
    return false;
  }
  // Returns true if no process can go on, no frame is under way, and no program can connect.
  bool is_still() const {
    for (const Program& p : all)
      if (p.is_here() && !p.waits()) return false;
    for (const Wire& l : wires) {
      if (l.cut && (!l.at_home.session.is_over() || !l.at_party.session.is_over())) return false;
      if (!l.cut && (has_news(l.at_home) || has_news(l.at_party))) return false;
    }
    return true;
  }
  // The program's sessions end with it, and so do all ends that the program still holds.
  void leave(Program& p) {
    p.left = true;
    for (const auto& [wire, mine] : p.links) {
      const w::Space::Step step(*mine->space);
      mine->session.bye("it has ended");
    }
    for (Proc& x : p.procs)
      if (!x.has_ended()) x.end();
  }
  void kill(Program& p) {
    killed = p.killed = true;
    for (const auto& [wire, mine] : p.links) {
      wire->cut = true;
      wire->tell(*mine);
    }
  }
  void add(Events& e) {
    for (Wire& l : wires) e.frames(l);
    for (Program& p : all) {
      bool over = p.is_here();
      for (Proc& x : p.procs) {
        e.may(p.is_here() && !p.struck && x.is_busy(), [&x] { x.go_on(); });
        over = over && x.has_ended();
      }
      e.may(p.is_here() && !p.procs.empty() && (over || p.struck), [this, &p] { leave(p); });
      e.may(p.is_here() && p.says && p.says->has_answers(), [&p] { p.says->go_on(); });
      for (const auto& [wire, mine] : p.links)
        if (wire->cut && p.is_here() && !mine->session.is_over())
          e.may(true, [wire = wire, mine = mine] { wire->tell(*mine); });
    }
  }
  // Lets each program that waits begin another round when every event has happened. `answers` is
  // whether all programs that wait answer.
  void last_look(bool answers = true) {
    for (const Program& p : all)
      if (p.says && p.is_here()) REQUIRE_THAT(!p.says->is_asking());
    for (Program& p : all) {
      if (told || !p.says || !p.waits()) continue;
      const bool due = is_still();
      p.says->look();
      for (Events e(0);;) {
        add(e);
        if (!e.one()) break;
      }
      REQUIRE_THAT(told == (due && answers));
    }
    REQUIRE_THAT(!told_who_ran);
    for (const Program& p : all) {
      // A killed program may be the program that would have passed on the news of the deadlock.
      REQUIRE_THAT(!p.was_due || p.struck || killed);
      for (const Program& q : all)
        for (const auto& [wire, mine] : p.links)
          if (mine->session.theirs().incarnation == q.space->greeting().incarnation)
            REQUIRE_THAT(!mine->session.is_over() || !p.is_here() || !q.is_here());
    }
  }
};

void Asker::asked_first(std::uint64_t asker, std::uint32_t round) {
  const Program& p = all_.all[which_];
  w::InProgram mine;
  mine.incarnation = me();
  mine.name = p.space->greeting().name;
  mine.waits = p.waits();
  mine.waits = w::sessions_of(*space_, mine.sessions) && mine.waits;
  w::Buffer packed;
  mine.put(packed);
  say(asker, round, packed, mine.waits);
}
void Asker::found(std::uint32_t, w::Bytes all, bool whole) {
  asking_ = false;
  answers_ = w::Everywhere::get(all, whole);
  if (!first_) was_still_ = all_.is_still() || all_.told;
}
void Asker::go_on() {
  const w::Everywhere now = *std::exchange(answers_, {});
  if (!now.stands_still()) return first_.reset();
  // The counters of the first round are checked too: these counters would suffice if only frames
  // woke processes.
  REQUIRE_THAT(was_still_ || all_.killed);
  if (!first_) {
    first_ = now;
    return round();
  }
  const bool moved = now.has_moved_since(*std::exchange(first_, {}));
  if (moved) return;
  REQUIRE_THAT(all_.is_still() || all_.killed || all_.told);
  if (!all_.told)
    for (Program& p : all_.all) p.was_due = p.waits();
  all_.told = true;
  const w::Buffer what = w::Everywhere::Knot{"deadlock", {}}.encoded();
  const w::Space::Step step(*space_);
  tell(what);
  on_tell(what);
}
void Asker::on_tell(w::Bytes) {
  Program& p = all_.all[which_];
  all_.told_who_ran = all_.told_who_ran || !(p.waits() || p.struck || all_.killed);
  p.struck = p.struck || p.waits();
}

// Runs every order of this number of events, beginning at different steps.
Events some(unsigned orders, unsigned steps) { return Events(orders, 3 * engine().choose(steps)); }

// --- two programs --------------------------------------------------------------------------------

// How a network ends.
enum class Ends : std::uint32_t { at_once, later, well };

// `a` is the home of a question and of an answer; `b` asks, if `asks` is set.
struct Pair : Programs {
  explicit Pair(Ends how) : Programs(2) {
    Wire& l = join(0, 1);
    Channel<int>&question = channel(), &answer = channel();
    const auto q = l.give(question.writer()), r = l.give(answer.reader());
    l.pump();
    Proc& a = process(0);
    a.add_reader(question.reader());
    a.add_writer(answer.writer());
    a.set_acts(how == Ends::later ? std::vector<std::size_t>{0, 1, 0}
                                  : std::vector<std::size_t>{0, 1});
    Proc& b = process(1);
    b.add_writer(l.at_party, q);
    b.add_reader(l.at_party, r);
    if (how == Ends::at_once)
      b.set_acts({1});
    else if (how == Ends::later)
      b.set_acts({0, 1, 1});
    else
      b.set_acts({0, 1});
  }
};

void two_programs(unsigned askers) {
  const auto how = static_cast<Ends>(engine().choose(3));
  Pair n(how);
  std::vector<Program*> look;
  if (askers == 2)
    look = {&n.all[0], &n.all[1]};
  else
    look = {&n.all[engine().choose(2)]};
  Events e = some(7, 4);
  do {
    n.add(e);
    for (Program*& p : look)
      e.may(p && p->waits(), [&p] { std::exchange(p, nullptr)->says->look(); });
  } while (e.one());
  n.last_look();
  REQUIRE_THAT(n.told == (how != Ends::well));
}

SCENARIO(
    "wire: rounds: two programs go on, wait and end, and one of them asks at any step: a deadlock "
    "is told if there is one (wire 10.3, 10.6)",
    0) {
  two_programs(1);
}

SCENARIO(
    "wire: rounds: both of two programs ask, at any step: a deadlock is told if there is one (wire "
    "10.6)",
    0) {
  two_programs(2);
}

// --- three programs ------------------------------------------------------------------------------

// A chain of programs: `a` begins, or does not; `b`, in the middle, has all homes and a process for
// each direction; `c` answers, ends, or waits for another question. Or `a` and `b` wait for each
// other, and no process waits for `c`.
struct Line : Programs {
  enum class Way : std::uint32_t { at_once, later, apart, well, one_ends };
  explicit Line(Way way, bool deaf = false) : Programs(3, deaf) {
    Wire &ba = join(1, 0), &bc = join(1, 2);
    Channel<int>&to_b = channel(), &to_c = channel(), &from_c = channel(), &to_a = channel(),
    &mute = channel();
    const auto a_w = ba.give(to_b.writer()), a_r = ba.give(to_a.reader());
    const auto c_r = bc.give(to_c.reader()), c_w = bc.give(from_c.writer());
    ba.pump(), bc.pump();
    Proc& a = process(0);
    a.add_writer(ba.at_party, a_w);
    a.add_reader(ba.at_party, a_r);
    if (way == Way::at_once || way == Way::apart)
      a.set_acts({1});
    else
      a.set_acts({0, 1});
    Proc& there = process(1);
    there.add_reader(to_b.reader());
    there.add_writer(to_c.writer());
    there.add_writer(mute.writer());
    if (way == Way::later)
      there.set_acts({0, 1, 0});
    else
      there.set_acts({0, 1});
    Proc& back = process(1);
    back.add_reader(from_c.reader());
    back.add_writer(to_a.writer());
    back.add_reader(mute.reader());
    if (way == Way::apart)
      back.set_acts({2});
    else
      back.set_acts({0, 1});
    Proc& c = process(2);
    c.add_reader(bc.at_party, c_r);
    c.add_writer(bc.at_party, c_w);
    if (way == Way::later)
      c.set_acts({0, 0});
    else if (way == Way::one_ends || way == Way::apart)
      c.set_acts({0});
    else
      c.set_acts({0, 1});
  }
};

void in_a_line(bool deaf, bool dies) {
  using Way = Line::Way;
  const auto way = static_cast<Way>(engine().choose(5));
  const bool stuck = way == Way::at_once || way == Way::later || way == Way::apart;
  Line n(way, deaf);
  Program* look = &n.all[engine().choose(deaf ? 2 : 3)];
  Program* victim = dies ? &n.all[2] : nullptr;
  Events e = some(5, 6);
  do {
    n.add(e);
    e.may(look && look->waits(), [&] { std::exchange(look, nullptr)->says->look(); });
    e.may(victim, [&] { n.kill(*std::exchange(victim, nullptr)); });
  } while (e.one());
  n.last_look(!deaf);
  if (!dies) REQUIRE_THAT(n.told == (!deaf && stuck));
  if (way == Way::apart) REQUIRE_THAT(n.told != deaf);
}

SCENARIO(
    "wire: rounds: three programs in a line, one asks at any step: a deadlock is told everywhere "
    "if there is one (wire 10.3, 10.6)",
    0) {
  in_a_line(false, false);
}

SCENARIO("wire: rounds: the last of three programs answers none: nothing is ever told (wire 10.6)",
         0) {
  in_a_line(true, false);
}

SCENARIO(
    "wire: rounds: one of three programs is killed at any step: who waits for it alone is told of "
    "its death, and no round is awaited for ever (wire 10.6)",
    0) {
  in_a_line(false, true);
}

// Each program has a session with both others, so each program gets the same question twice, over
// two sessions.
SCENARIO(
    "wire: rounds: three programs in a triangle, each of which waits for the one before it: told "
    "once, and whoever ends by it wakes nobody who has not heard (wire 10.6)",
    0) {
  Programs n(3);
  const bool begins = engine().choose(2) == 1;
  Wire* const next[] = {&n.join(0, 1), &n.join(1, 2), &n.join(2, 0)};
  std::uint32_t end[3];
  for (std::size_t i = 0; i < 3; ++i) {
    end[i] = next[i]->give(n.channel().reader());
    next[i]->pump();
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t before = (i + 2) % 3;
    Proc& p = n.process(i);
    p.add_reader(next[before]->at_party, end[before]);
    p.add_writer(n.channels[i].writer());
    if (begins && i == 0)
      p.set_acts({1, 0});
    else
      p.set_acts({0, 1});
  }
  Program* look = &n.all[0];
  Events e = some(6, 4);
  do {
    n.add(e);
    e.may(look && look->waits(), [&] { std::exchange(look, nullptr)->says->look(); });
  } while (e.one());
  n.last_look();
  REQUIRE_THAT(n.told == !begins);
}

// Two programs wait for each other, and a third may connect to `a`, which has a meeting point, and
// ask in place of `b`.
SCENARIO(
    "wire: rounds: somebody may come by a meeting point: nothing is told before that is closed, "
    "nor while a session opens (wire 10.3, 10.6)",
    0) {
  Programs n(3);
  Program &a = n.all[0], &b = n.all[1], &c = n.all[2];
  Wire& l = n.join(0, 1);
  Channel<int>&question = n.channel(), &answer = n.channel();
  const auto q = l.give(question.writer()), r = l.give(answer.reader());
  l.pump();
  Proc& waits = n.process(0);
  waits.add_reader(question.reader());
  waits.add_writer(answer.writer());
  waits.set_acts({0, 1});
  Proc& also = n.process(1);
  also.add_writer(l.at_party, q);
  also.add_reader(l.at_party, r);
  also.set_acts({1});
  a.point = true;
  c.left = true;  // `c` has not connected yet.
  const bool stays = engine().choose(2) == 1;
  std::uint32_t end = 0;
  Wire* new_one = nullptr;
  Program* look = &b;
  Events e = some(6, 4);
  do {
    n.add(e);
    e.may(a.point && !new_one && c.left, [&] {
      c.left = false;
      new_one = &n.join(0, 2);
      end = new_one->give(question.writer());
    });
    e.may(a.point && !stays, [&] { a.point = false; });
    e.may(new_one && c.procs.empty() && !new_one->at_party.offered.empty(), [&] {
      Proc& asks = n.process(2);
      asks.add_writer(new_one->at_party, end);
      asks.set_acts({0});
    });
    e.may(look && look->waits(), [&] { std::exchange(look, nullptr)->says->look(); });
  } while (e.one());
  n.last_look();
  REQUIRE_THAT(n.told == (!stays && !new_one));
}

}  // namespace
}  // namespace weft::test
