// What all links have in common: the ends that pass over a link, and the end of its session
// (wire 7, 12).
//
// A link carries bytes; this base class provides the functions that programs call. Invariant:
// `news_` changes whenever something has happened for which wait() or end_named() waits.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>

#include "../outside.hpp"
#include "../runtime/parking.hpp"
#include "end.hpp"
#include "held.hpp"
#include "select.hpp"

namespace weft::inline WEFT_ABI::wire {

class LinkBase : protected Link {
 public:
  LinkBase(const LinkBase&) = delete;
  LinkBase& operator=(const LinkBase&) = delete;

  // Hands an end of a channel of this program to the peer, under the name `name`. Throws BadUse if
  // the end is closed, or the name has more than 150 bytes or contains a zero byte.
  template <class T>
  void give(Reader<T> e, const std::string& name, std::uint64_t capacity = 0) {
    give_port<T, core::Side::in>(std::move(e), name, capacity);
  }
  template <class T>
  void give(Writer<T> e, const std::string& name, std::uint64_t capacity = 0) {
    give_port<T, core::Side::out>(std::move(e), name, capacity);
  }

  // Hands over an end whose home can be any program. If the home is a third program, the call waits
  // until the peer has adopted the end at that home; after that this program may end. Throws what
  // give() of a channel's end throws, and BadUse if no link can introduce those two programs.
  template <class T>
  void give(ReaderEnd<T> e, const std::string& name) {
    give_either<T>(std::move(e), false, name);
  }
  template <class T>
  void give(WriterEnd<T> e, const std::string& name) {
    give_either<T>(std::move(e), true, name);
  }

  // Hands over a share of a barrier of this program or another (rule 8.7). The giver keeps the
  // barrier, and enrols the parties. Throws what give() of an end throws.
  void give(const Barrier& b, const std::string& name) {
    check_name(name);
    auto port = std::make_shared<BarrierPortOf>(b);
    const Space::Step step(*peer_->space);
    peer_->home.give(std::move(port), kBarrierType, name, 0);
  }
  void give(const FarBarrier& b, const std::string& name) {
    pass_on(b.checked("give"), false, kBarrierType, name);
  }

  // Returns the end that the peer hands to this program under the name `name`. Waits until the end
  // has arrived; if the wait lasts longer than a standstill (rule 10.6), a line on stderr says what
  // has arrived. Throws BadUse if the end is of another type or side, or was taken already;
  // PeerDied if the session ends first.
  template <class T>
  FarReader<T> reader(const std::string& name) {
    return FarReader<T>(far_end(end_named(name, false, Value<T>::type())));
  }
  template <class T>
  FarWriter<T> writer(const std::string& name) {
    return FarWriter<T>(far_end(end_named(name, true, Value<T>::type())));
  }
  // Returns an end like reader() and writer(), but the end's home can be any program, even this
  // one.
  template <class T>
  ReaderEnd<T> reader_end(const std::string& name) {
    return either_end<ReaderEnd<T>, FarReader<T>, PortOf<T, core::Side::in>>(
        end_named(name, false, Value<T>::type()));
  }
  template <class T>
  WriterEnd<T> writer_end(const std::string& name) {
    return either_end<WriterEnd<T>, FarWriter<T>, PortOf<T, core::Side::out>>(
        end_named(name, true, Value<T>::type()));
  }

  // Returns the barrier that the peer hands to this program under the name `name`. Waits and throws
  // like reader(); throws BadUse also if the barrier's home is this program.
  FarBarrier barrier(const std::string& name) {
    Carrier::Got g = end_named(name, false, kBarrierType);
    if (!g.there)
      weft::detail::bad_use("the home of barrier '" + name + "' is this program: use the Barrier");
    return FarBarrier(std::move(g.there));
  }

  // Waits until the session has ended. Returns the reason.
  std::string wait() {
    until([&] {
      const Space::Step step(*peer_->space);
      return peer_->session.is_over();
    });
    return peer_->why();
  }
  // Waits for the peer's HELLO, and reports a long wait as reader() does. Returns an empty text if
  // the HELLO was good, otherwise the reason why the session has ended.
  std::string greeted() {
    bool over = false;
    until(
        [&] {
          const Space::Step step(*peer_->space);
          over = peer_->session.is_over();
          return peer_->session.state() == Session::State::open || over;
        },
        [] { return std::string("has not greeted"); });
    return over ? peer_->why() : std::string();
  }
  void bye(const std::string& why) {
    const Space::Step step(*peer_->space);
    peer_->session.bye(why);
  }
  // peer(), news() and wait_for_news() serve a language binding that has ends of its own: the other
  // space, and a count of news to wait for.
  const std::shared_ptr<Peer>& peer() const noexcept { return peer_; }
  std::uint32_t news() const noexcept { return news_.load(); }
  void wait_for_news(std::uint32_t seen) const noexcept { news_.wait(seen); }
  // Sets the object whose text is appended to the reason when the session has ended. Called before
  // other threads know the link.
  void tells_of(std::shared_ptr<Fate> f) {
    const Space::Step step(*peer_->space);
    peer_->fate = std::move(f);
  }
  // Sets whether the session counts as something outside that might wake a run (rule 10.3). By
  // default it counts. It need not count while what it might bring is counted separately. Must not
  // be called in a step.
  void be_outside(bool so) {
    {
      const Space::Step step(*peer_->space);
      peer_->outside = so;
    }
    if (!so)
      outside_.reset();
    else if (!outside_)
      outside_.emplace(Outside::link);
  }

 protected:
  explicit LinkBase(const std::shared_ptr<Space>& space)
      : LinkBase(std::make_shared<Peer>(detail::space_of(space))) {}
  explicit LinkBase(std::shared_ptr<Peer> p) : peer_(std::move(p)) { peer_->space->linked(1); }
  ~LinkBase() { peer_->space->linked(-1); }

  // Called once, when the link can carry bytes. From now on flush() is called.
  void begin() {
    const Space::Step step(*peer_->space);
    peer_->link = this;
    peer_->home.lends_places = this->passes();
    peer_->home.counts = !this->passes();
    peer_->listener = this;
    peer_->news = [](Peer& p) noexcept {
      auto& me = *static_cast<LinkBase*>(p.listener);
      {
        const std::lock_guard g(me.news_lock_);
        me.news_.fetch_add(1);
      }
      me.news_.notify_all();
      me.news_came_.notify_all();
    };
    peer_->session.greet();
  }
  // Called when the link carries no more bytes, before anything that flush() needs is destroyed.
  void end() {
    const Space::Step step(*peer_->space);
    peer_->link = nullptr;
    peer_->news = nullptr;
  }

  const std::shared_ptr<Peer> peer_;

 private:
  static void check_name(const std::string& name) {
    if (name.size() > 150 || name.find('\0') != std::string::npos)
      weft::detail::bad_use("give: expected a name of at most 150 bytes, none of them zero");
  }
  template <class T, class E>
  void give_either(E e, bool writes, const std::string& name) {
    if (e.here()) return give(*e.here(), name);
    pass_on(e.there()->checked("give"), writes, Value<T>::type(), name);
  }
  void pass_on(const std::shared_ptr<FarEnd>& far, bool writes, const std::string& type,
               const std::string& name) {
    check_name(name);
    greeted();  // Only the peer's HELLO says who the peer is, and so whom to introduce.
    std::uint64_t token;
    {
      const Space::Step step(*peer_->space);
      if (const char* wrong = peer_->pass(far, writes, type, name))
        weft::detail::bad_use(std::string("give: ") + wrong);
      token = peer_->carrier.latest();
    }
    until(
        [&] {
          const Space::Step step(*peer_->space);
          return !peer_->carrier.is_under_way(token);
        },
        [&] { return "has not taken up '" + name + "', or its home has not said so"; });
  }
  static std::shared_ptr<FarEnd> far_end(Carrier::Got g) {
    if (!g.there)
      weft::detail::bad_use(
          "the home of this end is this program: take it as reader_end() or writer_end()");
    return std::move(g.there);
  }
  template <class E, class F, class P>
  static E either_end(Carrier::Got g) {
    if (g.there) return E(F(std::move(g.there)));
    return E(dynamic_cast<const P&>(*g.here).end());
  }

  template <class T, core::Side S, class E>
  void give_port(E e, const std::string& name, std::uint64_t capacity) {
    if constexpr (kFixed<T>)
      static_assert(kHeader + padded(sizeof(T)) <= kLargest,
                    "a value of this type fits into no frame");
    check_name(name);
    auto port = std::make_shared<PortOf<T, S>>(std::move(e));
    const Space::Step step(*peer_->space);
    peer_->home.give(std::move(port), Value<T>::type(), name, capacity);
  }

  Carrier::Got end_named(const std::string& name, bool writes, const std::string& type) {
    Carrier::Got end;
    std::string wrong;
    const auto look = [&] {
      const Space::Step step(*peer_->space);
      for (Peer::Offered& o : peer_->offered) {
        if (o.name != name) continue;
        if (o.taken)
          wrong = "is taken already";
        else if (o.writes != writes)
          wrong = o.writes ? "is a writer end" : "is a reader end";
        else if (o.type != type)
          wrong = "is of type " + o.type + ", and " + type + " was asked for";
        else
          end = take(o);
        return true;
      }
      return peer_->session.is_over();
    };
    until(look, [&] { return "has not handed out '" + name + "'; " + handed_out(); });
    if (!wrong.empty())
      weft::detail::bad_use("the end '" + name + "' that the peer has handed to us " + wrong);
    if (!end.here && !end.there)
      throw PeerDied(
          "the session ended before the peer had handed out '" + name + "' (" + peer_->why() + ")",
          -1);
    return end;
  }
  Carrier::Got take(Peer::Offered& o) {
    o.taken = true;
    if (o.got.here || o.got.there) return std::move(o.got);
    return {nullptr, std::make_shared<FarEnd>(peer_, o.end, o.key, o.name)};
  }

  // Returns a text for people that names the ends that the peer has handed out so far. Must not be
  // called in a step.
  std::string handed_out() const {
    const Space::Step step(*peer_->space);
    std::string all;
    for (const Peer::Offered& o : peer_->offered)
      all += (all.empty() ? "what has come: '" : ", '") + o.name + (o.taken ? "' (taken)" : "'");
    return all.empty() ? "nothing has come" : all;
  }

  // Waits until so() is true. Calls so() again after each change of news_.
  template <class F>
  void until(F&& so) {
    for (;;) {
      const std::uint32_t seen = news_.load();
      if (so()) return;
      news_.wait(seen);
    }
  }
  // Waits until so() is true, like until(so). If the wait takes long, a line on stderr says, once,
  // what the peer has not done.
  template <class F, class G>
  void until(F&& so, G&& not_done) {
    const std::chrono::nanoseconds patience(runtime::patience().load(std::memory_order_relaxed));
    if (patience.count() <= 0) return until(so);
    const auto report_at = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const std::uint32_t seen = news_.load();
      if (so()) return;
      std::unique_lock l(news_lock_);
      if (!news_came_.wait_until(l, report_at, [&] { return news_.load() != seen; })) break;
    }
    std::fprintf(stderr, "weft: the peer %s %s: waits on\n", who().c_str(), not_done().c_str());
    until(so);
  }
  std::string who() const {
    const Space::Step step(*peer_->space);
    const Greeting& g = peer_->session.theirs();
    if (peer_->session.state() != Session::State::open) return "that has not said who it is";
    return "'" + g.name + "'";
  }

  // A thread that waits for an answer waits for something outside (rule 10.3). Only the thread that
  // calls be_outside() uses outside_.
  std::optional<Outside> outside_{Outside::link};
  // Counts changes: an end was handed to this program, or the session has ended.
  std::atomic<std::uint32_t> news_{0};
  std::mutex news_lock_;  // held when news_ changes; can be acquired in a step or outside one
  std::condition_variable news_came_;
};

}  // namespace weft::inline WEFT_ABI::wire
