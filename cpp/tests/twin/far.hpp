// A network in several programs, joined by one of the real links: an end belongs to a channel of
// this program or of another program, and time is real.
//
// When an operation at a far end returns, its effect may still be under way (WIRE.md 6.4, 15), but
// in the history it has happened. So a record waits for the answer to a frame that is sent after
// the operation, a *tick*.
#pragma once
#include <sstream>

#include <weft/weft.hpp>
#include <weft/wire/end.hpp>
#include <weft/wire/far_barrier.hpp>
#include <weft/wire/held.hpp>
#include <weft/wire/link_base.hpp>

#include "placed.hpp"
#include "rounds.hpp"

namespace twin {

struct Word {
  std::string text;
  explicit Word(std::string t) : text(std::move(t)) {}
};

}  // namespace twin

template <>
struct weft::wire::Value<twin::Word> {
  static std::string type() { return "word"; }
  static void put(const twin::Word& v, Buffer& out) { Value<std::string>::put(v.text, out); }
  static std::optional<twin::Word> get(Bytes in) {
    return twin::Word(*Value<std::string>::get(in));
  }
};

namespace twin {

// An end of a channel of this program or of another program, which can be made to die.
template <class End>
class Mortal : public End {
 public:
  using End::End;
  Mortal(End e) : End(std::move(e)) {}
  void close(bool died) {
    if (auto* near = std::get_if<0>(&this->end_)) return died ? near->die() : near->retire();
    auto& far = std::get<1>(this->end_);
    if (died) {
      const auto& e = far.checked("die");
      const w::Space::Step step(*e->peer->space);
      e->will_have_died();
    }
    far.retire();
  }
};

// An empty write, which the home answers immediately. The write is not a point of cancellation, and
// no process of the home takes part in it.
class Tick final : public w::FarOp {
 public:
  explicit Tick(const w::FarEnd& end) {
    guard_ = {end.number, true, &room_};
    guards = std::span(&guard_, 1);
    w::Space& space = *end.peer->space;
    {
      const w::Space::Step step(space);
      if (end.peer->far.begin(*this)) return;
    }
    done_.wait(false);
    const w::Space::Step step(space);  // over() has returned when the step begins.
  }

 private:
  void over() noexcept override {
    done_ = true;
    done_.notify_all();
  }
  w::RoomOf<int> room_{0};
  w::FarGuard guard_;
  std::atomic<bool> done_{false};
};

class Far {
 public:
  using P = weft::Shared;
  using V = Word;
  using R = Mortal<w::ReaderEnd<V>>;
  using W = Mortal<w::WriterEnd<V>>;
  using Select = w::FarSelect;
  using Text = std::string;
  static constexpr bool kSpread = true, kMoves = false;
  static constexpr weft::Clock kClock = weft::Clock::steady;

  // Makes this program's part of the network. `links` has a link for each program; the link is null
  // for this program, and for a program to which there is no link. `controls` are the sockets from
  // program 0 to the other programs.
  Far(const Network& n, const Placed& placed, int me, Standing& standing,
      std::vector<w::LinkBase*> links, std::vector<int> controls = {})
      : placed_(placed),
        me_(me),
        standing_(standing),
        links_(std::move(links)),
        controls_(std::move(controls)) {
    for (std::size_t c = 0; c < n.channels.size(); ++c) {
      if (placed.home_of(static_cast<int>(c)) == me)
        channels_.try_emplace(static_cast<int>(c), options_of(n.channels[c]));
      buffers_ = buffers_ || n.channels[c].capacity > 0;
    }
    if (me == 0)
      for (const unsigned b : n.barriers) barriers_.emplace_back(b);
    weft::ChannelOptions one = weft::buffer(1);
    one.overflow = weft::Overflow::drop_oldest;
    weft::Channel<int> tick(one);
    kept_.push_back(tick.reader());
    hand_out(n, tick);
    take(n);
  }

  // Returns the barriers, which are all in program 0; far_barrier() returns null in that program.
  const std::vector<weft::Barrier>& barriers() const { return barriers_; }
  const w::FarBarrier* far_barrier(std::size_t b) const {
    return me_ == 0 ? nullptr : &far_barriers_[b];
  }
  bool is_away(int pid) const { return placed_.host_of(pid) != me_; }
  R reader(const Proc& p, std::size_t i) { return taken(readers_, name(p, i)); }
  W writer(const Proc& p, std::size_t i) { return taken(writers_, name(p, i)); }
  // Returns how many values were dropped at the channels of this program.
  std::string dropped() const {
    Text all;
    for (const auto& [c, channel] : channels_)
      all += std::to_string(c) + " " + std::to_string(channel.dropped()) + " ";
    return all;
  }

  template <class E>
  static const auto& here(const E& end) {
    return *end.here();
  }
  template <class E>
  static void close(E& end, bool died) {
    end.close(died);
  }
  static auto next(R& r) { return Next{r.read()}; }
  static auto kept(w::FarExtended<V> x) {
    return std::make_shared<w::FarExtended<V>>(std::move(x));
  }
  static void in(Select& s, const R& r) { r.there() ? s.in(*r.there()) : s.in(*r.here()); }
  static void out(Select& s, const W& to, V v) {
    to.there() ? s.out(*to.there(), std::move(v)) : s.out(*to.here(), std::move(v));
  }
  template <class F>
  static void out_with(Select& s, const W& to, F f) {
    to.there() ? s.out_with(*to.there(), std::move(f)) : s.out_with(*to.here(), std::move(f));
  }
  static weft::Span span(int t) { return std::chrono::milliseconds(kUnit * t); }
  std::int64_t moment(int t) const { return start_ + t * kUnit * 1'000'000; }

  // Waits until a value has arrived, because a write on credit ends before its value arrives.
  void written(const W& to) {
    if (buffers_ && to.there()) arrived();
  }
  void arrived() {
    for (const auto& t : ticks_) Tick(*t.checked("tick"));
  }
  Standing::Going going_on(int pid) {
    if (pid != 0) return {nullptr, nullptr};
    return {&standing_, &weft::detail::run_of(*weft::runtime::this_process())};
  }

  // --- program 0 ---
  // A process of another program that has not been started. If the process is never started, its
  // ends are closed.
  class Unstarted {
   public:
    Unstarted(Far& f, int pid) : far_(&f), pid_(pid) {}
    Unstarted(Unstarted&& o) noexcept : far_(std::exchange(o.far_, nullptr)), pid_(o.pid_) {}
    Unstarted& operator=(Unstarted&&) = delete;
    ~Unstarted() {
      if (!far_) return;
      const Asked never{pid_};
      const int to = far_->controls_[static_cast<std::size_t>(far_->placed_.host_of(pid_)) - 1];
      if (::write(to, &never, sizeof never) != sizeof never) std::abort();
    }
    void started() { far_ = nullptr; }

   private:
    Far* far_;
    const int pid_;
  };
  Unstarted unstarted(int pid) { return {*this, pid}; }
  auto command(int pid, const Text& word) {
    return commands_to_.at(placed_.host_of(pid)).write(word + " " + std::to_string(pid));
  }
  weft::Reader<Text>& done(int pid) { return done_.at(pid); }
  // Lets the other programs end, and returns how many values were dropped, by channel.
  std::vector<std::uint64_t> stop(std::size_t channels) {
    std::vector<std::uint64_t> all(channels);
    const auto add = [&](const Text& said) {
      std::istringstream words(said);
      for (std::size_t c, n; words >> c >> n;) all.at(c) = n;
    };
    add(dropped());
    for (auto& [program, to] : commands_to_) {
      to("stop");
      add(dropped_.at(program)());
    }
    return all;
  }

  // --- the other programs ---
  w::FarReader<Text>& commands() { return commands_; }
  w::FarWriter<Text>& tells(int pid) { return tells_.at(pid); }
  void tell_dropped() { dropped_to_(dropped()); }
  void abandon(const Proc& p) {
    for (std::size_t i = 0; i < p.ends.size(); ++i)
      p.ends[i].side == 'r' ? void(reader(p, i)) : void(writer(p, i));
    arrived();
  }

 private:
  static constexpr std::int64_t kUnit = 4;  // the length of one time unit of the network, in ms

  struct Next {
    typename w::ReaderEnd<V>::Read read;
    using Inner = decltype(std::declval<typename w::ReaderEnd<V>::Read>().bind(nullptr));
    struct Awaiter {
      Inner inner;
      Awaiter(typename w::ReaderEnd<V>::Read r, weft::runtime::ProcessBase* p)
          : inner(std::move(r).bind(p)) {}
      bool await_ready() { return inner.await_ready(); }
      void await_suspend(std::coroutine_handle<>) const noexcept {}
      std::optional<V> await_resume() {
        try {
          return inner.await_resume();
        } catch (const weft::Retired&) {
          return {};
        }
      }
    };
    Awaiter bind(weft::runtime::ProcessBase* p) && { return Awaiter(std::move(read), p); }
  };

  template <class E>
  E taken(std::map<Text, E>& from, const Text& name) {
    const std::lock_guard l(lock_);
    auto node = from.extract(name);
    return std::move(node.mapped());
  }
  static Text name(const Proc& p, std::size_t i) {
    return "p" + std::to_string(p.id) + "." + std::to_string(i);
  }
  template <class F>
  static void each_end(const Network& n, F&& f) {
    for (const Proc& p : n.processes())
      for (std::size_t i = 0; i < p.ends.size(); ++i) f(p, i, p.ends[i]);
  }
  // Hands out the ends of this program's channels to the programs that need them, through program
  // 0.
  w::LinkBase& towards(int program) { return *links_[static_cast<std::size_t>(me_ ? 0 : program)]; }
  void hand_out(const Network& n, weft::Channel<int>& tick) {
    each_end(n, [&](const Proc& p, std::size_t i, const End& e) {
      if (placed_.home_of(e.channel) != me_) return;
      auto& c = channels_.at(e.channel);
      const int at = placed_.host_of(p.id);
      if (e.side == 'r')
        at == me_ ? void(readers_.emplace(name(p, i), c.reader()))
                  : towards(at).give(c.reader(), name(p, i));
      else
        at == me_ ? void(writers_.emplace(name(p, i), c.writer()))
                  : towards(at).give(c.writer(), name(p, i));
    });
    for (int at = 0; at < placed_.programs(); ++at)
      if (at != me_) towards(at).give(tick.writer(), tick_of(me_, at));
    if (me_ != 0) return;
    for (int at = 1; at < placed_.programs(); ++at) {
      weft::ChannelOptions never_waits;
      never_waits.overflow = weft::Overflow::unbounded;
      weft::Channel<Text> commands(never_waits), dropped;
      commands_to_.emplace(at, commands.writer());
      towards(at).give(commands.reader(), "commands");
      dropped_.emplace(at, dropped.reader());
      for (std::size_t b = 0; b < barriers_.size(); ++b)
        towards(at).give(barriers_[b], "barrier." + std::to_string(b));
      towards(at).give(dropped.writer(), "dropped");
    }
    for (const Proc& p : n.processes()) {
      if (!is_away(p.id)) continue;
      weft::Channel<Text> done{weft::buffer(1)};
      done_.emplace(p.id, done.reader());
      towards(placed_.host_of(p.id)).give(done.writer(), "done." + std::to_string(p.id));
    }
  }
  static Text tick_of(int home, int at) {
    return "tick." + std::to_string(home) + "." + std::to_string(at);
  }
  // Takes the ends of other programs' channels. Program 0 also hands on those ends that program 0
  // does not use itself.
  void take(const Network& n) {
    each_end(n, [&](const Proc& p, std::size_t i, const End& e) {
      const int home = placed_.home_of(e.channel), at = placed_.host_of(p.id);
      const Text name = Far::name(p, i);
      if (home == me_ || home == at || (me_ != 0 && at != me_)) return;
      w::LinkBase& from = towards(home);
      if (e.side == 'r') {
        R r = from.reader_end<V>(name);
        at == me_ ? void(readers_.emplace(name, std::move(r)))
                  : towards(at).give<V>(std::move(r), name);
      } else {
        W to = from.writer_end<V>(name);
        at == me_ ? void(writers_.emplace(name, std::move(to)))
                  : towards(at).give<V>(std::move(to), name);
      }
    });
    for (int home = 0; home < placed_.programs(); ++home)
      for (int at = 0; at < placed_.programs(); ++at) {
        if (home == me_ || home == at || (me_ != 0 && at != me_) || !placed_.meet(home, at))
          continue;
        auto end = towards(home).writer_end<int>(tick_of(home, at));
        if (at == me_)
          ticks_.push_back(*end.there());
        else
          towards(at).give<int>(std::move(end), tick_of(home, at));
      }
    if (me_ == 0) return;
    commands_ = towards(0).reader<Text>("commands");
    dropped_to_ = towards(0).writer<Text>("dropped");
    for (std::size_t b = 0; b < n.barriers.size(); ++b)
      far_barriers_.push_back(towards(0).barrier("barrier." + std::to_string(b)));
    for (const Proc& p : n.processes())
      if (!is_away(p.id))
        tells_.emplace(p.id, towards(0).writer<Text>("done." + std::to_string(p.id)));
  }

  const Placed& placed_;
  const int me_;
  Standing& standing_;
  const std::vector<w::LinkBase*> links_;
  const std::int64_t start_ = weft::prim::now();
  bool buffers_ = false;
  std::map<int, weft::Channel<V>> channels_;  // the channels whose home is here
  std::vector<weft::Barrier> barriers_;       // used in program 0
  std::vector<w::FarBarrier> far_barriers_;   // used in the other programs
  std::vector<weft::Reader<int>> kept_;
  const std::vector<int> controls_;
  // Protects readers_ and writers_, which are the ends of processes that have not been started.
  std::mutex lock_;
  std::map<Text, R> readers_;
  std::map<Text, W> writers_;
  std::vector<w::FarWriter<int>> ticks_;
  std::map<int, weft::Writer<Text>> commands_to_;
  std::map<int, weft::Reader<Text>> done_, dropped_;
  w::FarReader<Text> commands_;
  w::FarWriter<Text> dropped_to_;
  std::map<int, w::FarWriter<Text>> tells_;
};

}  // namespace twin
