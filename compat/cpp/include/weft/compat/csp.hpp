// Programs written for C++CSP (K. Chalmers, "Communicating Processes and Processors / a C++11 CSP
// library", CPA 2016) over Weft: the names of its csp.h, in namespace csp. Processes are threads.
// With CMake's weft::compat, or with compat/cpp/include/weft/compat/csp on the include path,
// "csp/csp.h" includes this file.
//
// What differs
//  - an operation on a poisoned channel throws poison_exception in the writer too; a process that
//    this exception leaves has ended; the poison spreads only where processes pass it on
//    themselves, and from a par inside a process
//  - end_read ends the extended read; end_read without start_read throws std::logic_error
//  - alt takes the value when it selects, and the next read() of that end returns it, so the writer
//    goes on at the select
//  - alt() is fair by rotation; pri_select is exact; preconditions may be any list of bool; if no
//    precondition is true, weft::BadUse is thrown
//  - when no process of a network can go on, par writes to stderr where each process waits, and
//    throws weft::Deadlock; C++CSP hangs
//  - channels do not retire: like those of C++CSP they live as long as any object refers to them
#pragma once
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <weft/weft.hpp>
#include "csp_choice.hpp"

namespace csp {

class poison_exception : public std::exception {
 public:
  explicit poison_exception(unsigned int strength) noexcept : strength_(strength) {}
  const char* what() const noexcept override { return "Channel has been poisoned"; }
  unsigned int get_strength() const noexcept { return strength_; }

 private:
  unsigned int strength_;
};

// --- buffers -------------------------------------------------------------------------------------

template <class T>
class chan_data_store {
 public:
  weft::ChannelOptions options;

 protected:
  chan_data_store(weft::detail::Count size, weft::Overflow o) : options(weft::buffer(size, o)) {}
};
template <class T>
struct buffer : chan_data_store<T> {
  explicit buffer(weft::detail::Count size) : chan_data_store<T>(size, weft::Overflow::block) {}
};
template <class T>
struct infinite_buffer : chan_data_store<T> {
  infinite_buffer() : chan_data_store<T>(8, weft::Overflow::unbounded) {}
};
template <class T>
struct overflowing_buffer : chan_data_store<T> {
  explicit overflowing_buffer(weft::detail::Count size)
      : chan_data_store<T>(size, weft::Overflow::drop_newest) {}
};
template <class T>
struct overwrite_oldest_buffer : chan_data_store<T> {
  explicit overwrite_oldest_buffer(weft::detail::Count size)
      : chan_data_store<T>(size, weft::Overflow::drop_oldest) {}
};
// When the buffer is full, a new value replaces the most recent one.
template <class T>
struct overwriting_buffer : chan_data_store<T> {
  explicit overwriting_buffer(weft::detail::Count size)
      : chan_data_store<T>(size, weft::Overflow::drop_last) {}
};

// --- channels ------------------------------------------------------------------------------------

namespace detail {

// A call without arguments reads; a call with a value writes. Therefore the reading operator
// receives the caller's line as a parameter of a template type to which nothing converts: neither a
// string literal, nor 0, nor a list in braces.
template <class H>
concept IsHere = std::is_same_v<H, Here>;

inline std::uint8_t strength_of(unsigned int s) {
  return static_cast<std::uint8_t>(s < 1 ? 1 : s > 255 ? 255 : s);
}

// A channel and its two ends. All objects that refer to the channel share one Wire.
template <class T>
struct Wire final : Guard {
  weft::Channel<T> channel;
  weft::Reader<T> in;
  weft::Writer<T> out;
  std::optional<T> selected;  // the value that an alt has read; the next read() returns it
  std::optional<weft::Extended<T>> extended;
  bool reading = false;  // true during an extended read of a value that an alt had read
  weft::detail::Slot<T> slot;

  Wire(weft::ChannelOptions o, Here at)
      : channel(o, at), in(channel.reader(at)), out(channel.writer(at)) {}

  void used_at(Here at) { weft::detail::used_at(*channel.core(), at); }
  template <class F>
  static auto raising(F&& f) {
    try {
      return f();
    } catch (const weft::Poisoned& e) {
      throw poison_exception(e.strength);
    }
  }
  T read(Here at) {
    used_at(at);
    if (selected) return given();
    return raising([&] { return in(at); });
  }
  T start_read(Here at) {
    used_at(at);
    if (extended || reading) throw std::logic_error("Channel already in extended read");
    if (selected) {
      reading = true;
      return given();
    }
    extended.emplace(raising([&] { return in.extended()(at); }));
    if constexpr (std::is_copy_constructible_v<T>)
      return **extended;
    else
      return std::move(**extended);
  }
  void end_read() {
    if (!extended && !reading) throw std::logic_error("Channel not in extended read");
    extended.reset();
    reading = false;
  }
  void write(T value, Here at) {
    used_at(at);
    raising([&] { out(std::move(value), at); });
  }
  bool pending() const {
    bool r = selected.has_value() || channel.core()->poison_strength() != 0 ||
             (channel.core()->ring && channel.core()->ring->size > 0);
    channel.core()->with_lock([&](auto&, auto& writers) { r = r || !writers.empty(); });
    return r;
  }
  bool ready() override { return selected.has_value(); }
  void fill(core::Guard& g, runtime::ProcessBase&) override {
    g.kind = core::Kind::input;
    g.ops = &core::channel_ops<weft::detail::EngineOf<T, weft::Shared>, core::Side::in>;
    g.where = channel.core();
    g.node.slot = &slot;
  }
  void take() override { selected.emplace(slot.take()); }

 private:
  T given() {
    T v(std::move(*selected));
    selected.reset();
    return v;
  }
};

}  // namespace detail

template <class T, bool POISONABLE = false>
class chan_in {
 public:
  using value_type = T;
  explicit chan_in(std::shared_ptr<detail::Wire<T>> w) noexcept : wire_(std::move(w)) {}
  virtual ~chan_in() = default;
  chan_in(const chan_in&) = default;
  chan_in(chan_in&&) noexcept = default;
  chan_in& operator=(const chan_in&) = default;
  chan_in& operator=(chan_in&&) noexcept = default;

  T read(detail::Here at = detail::Here::now()) const { return wire_->read(at); }
  template <detail::IsHere H = detail::Here>
  T operator()(H at = H::now()) const {
    return wire_->read(at);
  }
  T start_read(detail::Here at = detail::Here::now()) const { return wire_->start_read(at); }
  void end_read() const { wire_->end_read(); }
  void poison(unsigned int strength) const {
    static_assert(POISONABLE, "channel is not poisonable: make it with <T, true>");
    wire_->channel.poison(detail::strength_of(strength));
  }
  bool operator==(const chan_in& o) const noexcept { return wire_ == o.wire_; }
  const std::shared_ptr<detail::Wire<T>>& wire() const noexcept { return wire_; }

 protected:
  std::shared_ptr<detail::Wire<T>> wire_;
};
template <class T, bool POISONABLE = false>
class shared_chan_in : public chan_in<T, POISONABLE> {
 public:
  using chan_in<T, POISONABLE>::chan_in;
};
template <class T, bool POISONABLE = false>
class alting_chan_in : public chan_in<T, POISONABLE>, public guard {
 public:
  explicit alting_chan_in(std::shared_ptr<detail::Wire<T>> w)
      : chan_in<T, POISONABLE>(w), guard(w) {}
  bool pending() const { return this->wire_->pending(); }
};

template <class T, bool POISONABLE = false>
class chan_out {
 public:
  using value_type = T;
  explicit chan_out(std::shared_ptr<detail::Wire<T>> w) noexcept : wire_(std::move(w)) {}
  virtual ~chan_out() = default;
  chan_out(const chan_out&) = default;
  chan_out(chan_out&&) noexcept = default;
  chan_out& operator=(const chan_out&) = default;
  chan_out& operator=(chan_out&&) noexcept = default;

  void write(T value, detail::Here at = detail::Here::now()) const {
    wire_->write(std::move(value), at);
  }
  void operator()(T value, detail::Here at = detail::Here::now()) const {
    wire_->write(std::move(value), at);
  }
  void poison(unsigned int strength) const {
    static_assert(POISONABLE, "channel is not poisonable: make it with <T, true>");
    wire_->channel.poison(detail::strength_of(strength));
  }
  bool operator==(const chan_out& o) const noexcept { return wire_ == o.wire_; }
  auto operator<=>(const chan_out& o) const noexcept { return wire_ <=> o.wire_; }
  const std::shared_ptr<detail::Wire<T>>& wire() const noexcept { return wire_; }

 protected:
  std::shared_ptr<detail::Wire<T>> wire_;
};
template <class T, bool POISONABLE = false>
class shared_chan_out : public chan_out<T, POISONABLE> {
 public:
  using chan_out<T, POISONABLE>::chan_out;
};

namespace detail {
// The four kinds of channel differ in the types of their ends.
template <class T, class In, class Out>
class Chan {
 public:
  using value_type = T;
  // Reports name the channel by the line where it was made.
  explicit Chan(unsigned int immunity = 0, Here at = Here::now())
      : Chan(weft::ChannelOptions{}, immunity, at) {}
  explicit Chan(const chan_data_store<T>& buffer, unsigned int immunity = 0, Here at = Here::now())
      : Chan(buffer.options, immunity, at) {}

  In in(Here at = Here::now()) const {
    wire_->used_at(at);
    return In(wire_);
  }
  Out out(Here at = Here::now()) const {
    wire_->used_at(at);
    return Out(wire_);
  }
  operator In() const { return In(wire_); }
  operator Out() const { return Out(wire_); }
  template <detail::IsHere H = detail::Here>
  T operator()(H at = H::now()) const {
    return wire_->read(at);
  }
  void operator()(T value, detail::Here at = detail::Here::now()) const {
    wire_->write(std::move(value), at);
  }
  const std::shared_ptr<Wire<T>>& wire() const noexcept { return wire_; }

 private:
  Chan(weft::ChannelOptions o, unsigned int immunity, Here at) {
    o.immunity = static_cast<std::uint8_t>(immunity > 255 ? 255 : immunity);
    wire_ = std::make_shared<Wire<T>>(o, at);
  }
  std::shared_ptr<Wire<T>> wire_;
};
}  // namespace detail

template <class T, bool POISONABLE = false>
using one2one_chan = detail::Chan<T, alting_chan_in<T, POISONABLE>, chan_out<T, POISONABLE>>;
template <class T, bool POISONABLE = false>
using one2any_chan = detail::Chan<T, shared_chan_in<T, POISONABLE>, chan_out<T, POISONABLE>>;
template <class T, bool POISONABLE = false>
using any2one_chan = detail::Chan<T, alting_chan_in<T, POISONABLE>, shared_chan_out<T, POISONABLE>>;
template <class T, bool POISONABLE = false>
using any2any_chan = detail::Chan<T, shared_chan_in<T, POISONABLE>, shared_chan_out<T, POISONABLE>>;

// --- processes -----------------------------------------------------------------------------------

class process {
 public:
  virtual ~process() = default;
  virtual void run() = 0;
  void operator()() { run(); }
};

template <class F, class... A>
std::function<void()> make_proc(F&& f, A&&... args) {
  return std::bind(std::forward<F>(f), std::forward<A>(args)...);
}

// Runs functions in parallel, each on a thread of its own; a par can run any number of times.
class par : public process {
 public:
  using proc = std::function<void()>;
  par() = default;
  // Reports name the processes of the par by the line where it was made.
  par(std::initializer_list<proc> ps, detail::Here at = detail::Here::now())
      : procs_(ps), at_(at) {}
  par(const std::vector<proc>& ps, detail::Here at = detail::Here::now()) : procs_(ps), at_(at) {}
  template <class I>
  par(I first, I last, detail::Here at = detail::Here::now()) : procs_(first, last), at_(at) {}

  // Runs the processes. Throws the exception of a process, or weft::Deadlock. A poison_exception
  // ends only the process that throws it; when all processes have ended, a par inside a process
  // throws the strongest one, so that a par_write or par_for of a poisoned channel ends its caller.
  void run() override {
    struct Quiet {
      proc* f;
      std::atomic<unsigned int>* poison;
      void operator()() const {
        try {
          (*f)();
        } catch (const poison_exception& e) {
          for (unsigned int was = *poison;
               was < e.get_strength() && !poison->compare_exchange_weak(was, e.get_strength());) {
          }
        }
      }
    };
    const weft::runtime::ThreadProcess* const outer =
        weft::runtime::ThreadProcess::current_or_null();
    const bool inside = outer && outer->run;
    std::atomic<unsigned int> poison{0};
    if (procs_.empty()) return;
    std::vector<proc> mine(procs_);
    using Thread = decltype(weft::thread(Quiet{}));
    std::vector<Thread> ps;
    ps.reserve(mine.size());
    for (proc& p : mine) ps.push_back(weft::thread(Quiet{&p, &poison}, at_));
    // The report is printed immediately, because a process that is declared noexcept ends the
    // program when it is cancelled, and then Deadlock would never be caught.
    weft::RunOptions o;
    o.deadlocked = [](const std::string& report) noexcept {
      std::fprintf(stderr, "%s\n", report.c_str());
    };
    weft::run(o, weft::detail::ParVector<Thread>(std::move(ps)));
    if (inside && poison > 0) throw poison_exception(poison);
  }

 private:
  std::vector<proc> procs_;
  detail::Here at_ = detail::Here::now();
};

template <class I, class F>
void par_for(I first, I last, F&& f, detail::Here at = detail::Here::now()) {
  std::vector<std::function<void()>> procs;
  for (; first != last; ++first) procs.push_back([&f, x = *first]() mutable { f(x); });
  par(procs, at).run();
}
inline void par_for_n(std::size_t n, const std::function<void()>& f,
                      detail::Here at = detail::Here::now()) {
  par(std::vector<std::function<void()>>(n, f), at).run();
}

namespace detail {
template <class C>
using value_of = typename C::value_type;
template <class I>
auto par_read(I first, I last, Here at) {
  using T = value_of<typename std::iterator_traits<I>::value_type>;
  std::vector<std::optional<T>> got;
  std::vector<weft::Reader<T>> rest;
  for (; first != last; ++first) {
    Wire<T>& w = *first->wire();
    w.used_at(at);
    got.emplace_back(std::exchange(w.selected, std::nullopt));
    if (!got.back()) rest.push_back(w.in);
  }
  auto values = Wire<T>::raising([&] { return weft::par_read(rest)(at); });
  std::vector<T> r;
  auto next = values.begin();
  for (auto& g : got) r.push_back(g ? std::move(*g) : std::move(*next++));
  return r;
}
template <class I, class T>
void par_write(I first, I last, const std::vector<T>& values, Here at) {
  std::vector<weft::Writer<T>> ws;
  for (; first != last; ++first) {
    first->wire()->used_at(at);
    ws.push_back(first->wire()->out);
  }
  Wire<T>::raising([&] { weft::par_write(ws, values)(at); });
}
}  // namespace detail

// par_read reads a value from each channel, par_write writes to each channel a value of its own;
// neither starts a thread. The arguments are ends or channels.
template <class C>
auto par_read(std::initializer_list<C> chans, detail::Here at = detail::Here::now()) {
  return detail::par_read(chans.begin(), chans.end(), at);
}
template <class C>
auto par_read(const std::vector<C>& chans, detail::Here at = detail::Here::now()) {
  return detail::par_read(chans.begin(), chans.end(), at);
}
template <class T, class I>
std::vector<T> par_read(I first, I last, detail::Here at = detail::Here::now()) {
  return detail::par_read(first, last, at);
}
template <class C>
void par_write(std::initializer_list<C> chans, const std::vector<typename C::value_type>& values,
               detail::Here at = detail::Here::now()) {
  detail::par_write(chans.begin(), chans.end(), values, at);
}
template <class C>
void par_write(const std::vector<C>& chans, const std::vector<typename C::value_type>& values,
               detail::Here at = detail::Here::now()) {
  detail::par_write(chans.begin(), chans.end(), values, at);
}
template <class T, class I>
void par_write(I first, I last, const std::vector<T>& values,
               detail::Here at = detail::Here::now()) {
  detail::par_write(first, last, values, at);
}

// --- time, barriers, skip, stop ------------------------------------------------------------------

namespace detail {
using Clock = std::chrono::steady_clock;
struct Alarm final : Guard {
  Clock::time_point at{};
  bool ready() override { return at.time_since_epoch().count() <= weft::now(); }
  void fill(core::Guard& g, runtime::ProcessBase&) override {
    g.kind = core::Kind::timer;
    g.deadline = at.time_since_epoch().count();
  }
};
struct Always final : Guard {
  bool ready() override { return true; }
  void fill(core::Guard&, runtime::ProcessBase&) override {}
};
struct Never final : Guard {
  void fill(core::Guard& g, runtime::ProcessBase&) override {
    g.kind = core::Kind::timer;
    g.deadline = std::numeric_limits<std::int64_t>::max();
  }
};
struct Together final : Guard {
  weft::Barrier barrier;
  explicit Together(weft::Barrier b) : barrier(std::move(b)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) override {
    g.kind = core::Kind::barrier;
    g.ops = &core::barrier_ops<weft::Barrier::Engine>;
    g.where = barrier.core();
  }
};
}  // namespace detail

// Returns the time of the run, which can be virtual. As a guard of a choice, a timer is ready from
// its alarm on.
class timer : public guard {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;
  timer() : alarm_(std::make_shared<detail::Alarm>()) { guard_ = alarm_; }

  time_point read() const { return time_point(duration(weft::now())); }
  time_point operator()() const { return read(); }
  void after(time_point until, detail::Here at = detail::Here::now()) const {
    weft::sleep_until(until.time_since_epoch().count())(at);
  }
  void operator()(time_point until, detail::Here at = detail::Here::now()) const {
    after(until, at);
  }
  void sleep(duration d, detail::Here at = detail::Here::now()) const { weft::sleep(d)(at); }
  void operator()(duration d, detail::Here at = detail::Here::now()) const { sleep(d, at); }
  time_point get_alarm() const { return alarm_->at; }
  void set_alarm(time_point at) { alarm_->at = at; }
  void set_alarm(duration d) {
    alarm_->at = time_point(duration(weft::runtime::later(weft::now(), d.count())));
  }
  timer& operator+=(duration d) {
    set_alarm(d);
    return *this;
  }
  timer& operator=(time_point at) {
    set_alarm(at);
    return *this;
  }

 private:
  std::shared_ptr<detail::Alarm> alarm_;
};

class barrier {
 public:
  explicit barrier(weft::detail::Count parties = 0, detail::Here at = detail::Here::now())
      : state_(std::make_shared<weft::Barrier>(parties, at)) {}
  void sync(detail::Here at = detail::Here::now()) const { state_->sync()(at); }
  void operator()(detail::Here at = detail::Here::now()) const { sync(at); }
  void enroll() const { state_->enrol(); }
  void resign() const { state_->resign(); }
  // Sets the number of parties. Call it only while no process waits at the barrier.
  void reset(weft::detail::Count parties) const { *state_ = weft::Barrier(parties); }

 protected:
  explicit barrier(const weft::Barrier& b) : state_(std::make_shared<weft::Barrier>(b)) {}
  std::shared_ptr<weft::Barrier> state_;
};

// One party's end of a barrier; the end can be a guard of a choice.
class alting_barrier : public barrier, public guard {
 public:
  static alting_barrier create() { return alting_barrier(weft::Barrier(1)); }
  static std::vector<alting_barrier> create(unsigned int n) {
    const weft::Barrier b(n);
    return std::vector<alting_barrier>(n, alting_barrier(b));
  }
  // Enrols another party, and returns its end.
  alting_barrier expand() const {
    state_->enrol();
    return *this;
  }
  std::vector<alting_barrier> expand(unsigned int n) const {
    for (unsigned int i = 0; i < n; ++i) state_->enrol();
    return std::vector<alting_barrier>(n, *this);
  }
  // Resigns this party permanently; the overload resigns each of the given parties.
  void contract() const { state_->resign(); }
  void contract(const std::vector<alting_barrier>& those) const {
    for (const auto& b : those) b.state_->resign();
  }

 private:
  explicit alting_barrier(const weft::Barrier& b)
      : barrier(b), guard(std::make_shared<detail::Together>(b)) {}
};

class skip : public process, public guard {
 public:
  skip() : guard(std::make_shared<detail::Always>()) {}
  void run() override {}
};
class stop : public process, public guard {
 public:
  stop() : guard(std::make_shared<detail::Never>()) {}
  // Waits forever on a channel that has no writing process.
  void run() override {
    weft::Channel<int> c{weft::named("stop")};
    const auto nobody = c.writer();
    c.reader()(detail::Here::nowhere());
  }
};

}  // namespace csp
