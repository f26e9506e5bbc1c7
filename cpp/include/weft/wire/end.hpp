// Ends that are values: an end that is written to a channel moves, and its ownership with it, to
// any space that can be reached (rule 2.4, WIRE.md 7.4).
//
//   Channel<wire::WriterEnd<int>> replies;           // a channel that carries writer ends
//   wire::FarWriter<wire::WriterEnd<int>> to = …;    // or the channel's end in another program
//   to(wire::WriterEnd<int>(answers.writer()));      // the end goes there; here it is closed
//
// The home of such an end may be this program or another. The end is used in the same way in both
// cases: w(7), co_await w.write(7); r(), co_await r.read(). For use in a select, `here()` gives the
// end if its home is this program, and `there()` if its home is another. A write that does not
// happen gives the end back, as it gives any value back (e.value<T>()).
//
// When an end of a channel of this program is sent away, only the channel's home records that.
// Nothing changes for the channel's buffer, its other ends and the parties that wait at it.
#pragma once
#include <variant>

#include "ends.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// The awaiter of an operation at an end of either kind.
template <class Here, class There>
class EitherAwaiter {
 public:
  template <class... A>
  EitherAwaiter(std::in_place_type_t<Here>, A&&... a) {
    here_.emplace(std::forward<A>(a)...);
  }
  template <class... A>
  EitherAwaiter(std::in_place_type_t<There>, A&&... a) {
    there_.emplace(std::forward<A>(a)...);
  }
  EitherAwaiter(const EitherAwaiter&) = delete;
  EitherAwaiter& operator=(const EitherAwaiter&) = delete;
  bool await_ready() { return here_ ? here_->await_ready() : there_->await_ready(); }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  auto await_resume() { return here_ ? here_->await_resume() : there_->await_resume(); }

 private:
  std::optional<Here> here_;
  std::optional<There> there_;
};

template <class T, core::Side S>
class MovingEnd {
 protected:
  static constexpr bool kWrites = S == core::Side::out;
  using Self = std::conditional_t<kWrites, Writer<T>, Reader<T>>;
  using Far = std::conditional_t<kWrites, FarWriter<T>, FarReader<T>>;
  std::variant<Self, Far> end_;

 public:
  MovingEnd() = default;
  MovingEnd(Self e) noexcept : end_(std::move(e)) {}
  MovingEnd(Far e) noexcept : end_(std::move(e)) {}

  // Returns the end, if its home is this program; otherwise returns null.
  const Self* here() const noexcept { return std::get_if<Self>(&end_); }
  const Far* there() const noexcept { return std::get_if<Far>(&end_); }
  explicit operator bool() const noexcept {
    return here() ? static_cast<bool>(*here()) : static_cast<bool>(*there());
  }
  void poison(weft::detail::Count strength = 1) const {
    here() ? here()->poison(strength) : there()->poison(strength);
  }
  void retire() noexcept { end_ = Self(); }

  // Used by Value (value.hpp). A closed end is sent as an end whose channel is dead.
  void put_by(Carrier& by, Buffer& out) const {
    if (const Self* e = here(); e && *e)
      by.put_local(std::make_shared<PortOf<T, S>>(PortOf<T, S>::another_of(*e->core())), *e->core(),
                   out);
    else
      by.put_far(e || !*there() ? nullptr : there()->checked("write an end"), kWrites, out);
  }
  template <class E>
  static std::optional<E> get_from(Carrier& by, Bytes& in) {
    auto got = by.take(in, kWrites, Value<T>::type());
    if (!got) return {};
    if (got->there) return E(Far(std::move(got->there)));
    const auto* const port = dynamic_cast<const PortOf<T, S>*>(got->here.get());
    if (!port) return {};
    return E(port->end());
  }
};

}  // namespace detail

// A reader end whose home can be any program.
template <class T>
class ReaderEnd : public detail::MovingEnd<T, core::Side::in> {
  using Base = detail::MovingEnd<T, core::Side::in>;

 public:
  using Base::Base;
  struct Read {
    const ReaderEnd& end;
    auto bind(runtime::ProcessBase* p) const {
      using Either = detail::EitherAwaiter<weft::detail::ReadAwaiter<T, Shared>,
                                           detail::FarAwaiter<T, core::Side::in>>;
      if (const auto* r = end.here())
        return Either(std::in_place_type<weft::detail::ReadAwaiter<T, Shared>>, p,
                      r->checked("read"), p->line);
      return Either(std::in_place_type<detail::FarAwaiter<T, core::Side::in>>,
                    end.there()->checked("read"), p);
    }
  };
  // Reads the next value; co_await the result. Throws what Reader and FarReader throw.
  [[nodiscard]] Read read() const { return {*this}; }
  // Reads in a thread, and blocks the thread meanwhile. Throws what read() throws.
  T operator()() const { return this->here() ? (*this->here())() : (*this->there())(); }

  static std::optional<ReaderEnd> get_by(Carrier& by, Bytes& in) {
    return Base::template get_from<ReaderEnd>(by, in);
  }
};

// A writer end whose home can be any program.
template <class T>
class WriterEnd : public detail::MovingEnd<T, core::Side::out> {
  using Base = detail::MovingEnd<T, core::Side::out>;

 public:
  using Base::Base;
  struct Write {
    const WriterEnd& end;
    T value;
    bool spent = false;
    auto bind(runtime::ProcessBase* p) && {
      if (std::exchange(spent, true)) weft::detail::awaited_twice("write");
      using Either = detail::EitherAwaiter<weft::detail::WriteAwaiter<T, Shared>,
                                           detail::FarAwaiter<T, core::Side::out>>;
      if (const auto* w = end.here())
        return Either(std::in_place_type<weft::detail::WriteAwaiter<T, Shared>>, p,
                      w->checked("write"), std::move(value), p->line);
      return Either(std::in_place_type<detail::FarAwaiter<T, core::Side::out>>,
                    end.there()->checked("write"), p, std::move(value));
    }
  };
  // Writes the value; co_await the result. The write is done when the value has been taken, or is
  // in the buffer. Throws what Writer and FarWriter throw.
  [[nodiscard]] Write write(T v) const { return {*this, std::move(v)}; }
  // Writes from a thread, which is blocked until the write is done. Throws what write() throws.
  void operator()(T v) const {
    this->here() ? (*this->here())(std::move(v)) : (*this->there())(std::move(v));
  }

  static std::optional<WriterEnd> get_by(Carrier& by, Bytes& in) {
    return Base::template get_from<WriterEnd>(by, in);
  }
};

template <class E>
struct EndValue {
  static void put(const E& e, Buffer& out, Carrier& by) { by.put(e, out); }
  static std::optional<E> get(Bytes in, Carrier& by) {
    auto e = by.get<E>(in);
    if (!in.empty()) return {};
    return e;
  }
};
template <class T>
struct Value<ReaderEnd<T>> : EndValue<ReaderEnd<T>> {
  static std::string type() { return "r(" + Value<T>::type() + ")"; }
};
template <class T>
struct Value<WriterEnd<T>> : EndValue<WriterEnd<T>> {
  static std::string type() { return "w(" + Value<T>::type() + ")"; }
};
template <class T, class P>
struct Value<Reader<T, P>> {
  static_assert(weft::detail::never<T>,
                "weft: an end that leaves its address space is a weft::wire::ReaderEnd: let the "
                "channel carry those");
};
template <class T, class P>
struct Value<Writer<T, P>> {
  static_assert(weft::detail::never<T>,
                "weft: an end that leaves its address space is a weft::wire::WriterEnd: let the "
                "channel carry those");
};

}  // namespace weft::inline WEFT_ABI::wire
