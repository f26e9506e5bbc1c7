// C++CSP's plug-and-play classes, in csp::plugnplay. Each class is a process object around the
// coroutine of the same name in weft/plugnplay.hpp.
#pragma once
#include <sstream>

#include <weft/plugnplay.hpp>
#include "csp.hpp"

namespace csp::plugnplay {

namespace detail {

namespace pnp = weft::plugnplay;

template <class T>
weft::Reader<T> in(const chan_in<T>& c) {
  return c.wire()->in;
}
template <class T>
weft::Writer<T> out(const chan_out<T>& c) {
  return c.wire()->out;
}
template <class T, class I>
std::vector<weft::Reader<T>> ins(const std::vector<I>& cs) {
  std::vector<weft::Reader<T>> r;
  for (const auto& c : cs) r.push_back(in<T>(c));
  return r;
}
template <class T>
std::vector<weft::Writer<T>> outs(const std::vector<chan_out<T>>& cs) {
  std::vector<weft::Writer<T>> r;
  for (const auto& c : cs) r.push_back(out<T>(c));
  return r;
}

// Runs the coroutine on the thread that runs the process.
class OfCoroutine : public process {
 public:
  // A poison or a retirement ends the process quietly.
  void run() override { weft::run(weft::par(make_())); }

 protected:
  explicit OfCoroutine(std::function<weft::Process()> make) : make_(std::move(make)) {}

 private:
  std::function<weft::Process()> make_;
};

}  // namespace detail

template <class T>
using multiplex_packet = weft::plugnplay::Packet<T>;

template <class T>
struct identity : detail::OfCoroutine {
  identity(chan_in<T> in, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::identity(detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct successor : detail::OfCoroutine {
  successor(chan_in<T> in, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::successor(detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct tail : detail::OfCoroutine {
  tail(chan_in<T> in, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::tail(detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct pairs : detail::OfCoroutine {
  pairs(chan_in<T> in, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::pairs(detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct prefix : detail::OfCoroutine {
  prefix(T value, chan_in<T> in, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::prefix(value, detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct mult : detail::OfCoroutine {
  mult(T n, chan_in<T> in, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::mult(n, detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct substitute : detail::OfCoroutine {
  substitute(chan_in<T> in, chan_out<T> out, T value)
      : OfCoroutine(
            [=] { return detail::pnp::substitute(detail::in(in), detail::out(out), value); }) {}
};
template <class T>
struct sign : detail::OfCoroutine {
  sign(chan_in<T> in, chan_out<std::string> out, const std::string& text)
      : OfCoroutine([=] { return detail::pnp::sign(detail::in(in), detail::out(out), text); }) {}
};
template <class In, class Out>
struct transform : detail::OfCoroutine {
  transform(chan_in<In> in, chan_out<Out> out, std::function<Out(In)> f)
      : OfCoroutine([=] { return detail::pnp::transform(detail::in(in), detail::out(out), f); }) {}
};
template <class T>
struct plus : detail::OfCoroutine {
  plus(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::plus(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct times : detail::OfCoroutine {
  times(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::times(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct and_proc : detail::OfCoroutine {
  and_proc(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::and_(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct or_proc : detail::OfCoroutine {
  or_proc(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::or_(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct xor_proc : detail::OfCoroutine {
  xor_proc(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::xor_(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct nand : detail::OfCoroutine {
  nand(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::nand(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct nor : detail::OfCoroutine {
  nor(chan_in<T> a, chan_in<T> b, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::nor(detail::in(a), detail::in(b), detail::out(out)); }) {}
};
template <class T>
struct generate : detail::OfCoroutine {
  generate(chan_out<T> out, T value)
      : OfCoroutine([=] { return detail::pnp::generate(detail::out(out), value); }) {}
};
template <class T>
struct numbers : detail::OfCoroutine {
  explicit numbers(chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::numbers(detail::out(out)); }) {}
};
template <class T>
struct black_hole : detail::OfCoroutine {
  explicit black_hole(chan_in<T> in)
      : OfCoroutine([=] { return detail::pnp::black_hole(detail::in(in)); }) {}
};
// Prints each value on a line of its own.
template <class T>
struct printer : detail::OfCoroutine {
  printer(chan_in<T> in, const std::string& prefix, const std::string& suffix,
          std::ostream& to = std::cout)
      : OfCoroutine(
            [=, &to] { return detail::pnp::printer(detail::in(in), prefix, suffix + "\n", to); }) {}
};
template <class T>
struct merge : detail::OfCoroutine {
  merge(const std::vector<chan_in<T>>& ins, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::merge(detail::ins<T>(ins), detail::out(out)); }) {}
};
template <class T, bool SEQUENTIAL = false>
struct delta : detail::OfCoroutine {
  delta(chan_in<T> in, const std::vector<chan_out<T>>& outs)
      : OfCoroutine([=] {
          if constexpr (SEQUENTIAL)
            return detail::pnp::sequential_delta(detail::in(in), detail::outs(outs));
          else
            return detail::pnp::delta(detail::in(in), detail::outs(outs));
        }) {}
  delta(chan_in<T> in, std::initializer_list<chan_out<T>> outs)
      : delta(in, std::vector<chan_out<T>>(outs)) {}
  template <class I>
  delta(chan_in<T> in, I first, I last) : delta(in, std::vector<chan_out<T>>(first, last)) {}
};
template <class T>
struct plex : detail::OfCoroutine {
  plex(const std::vector<alting_chan_in<T>>& ins, chan_out<T> out)
      : OfCoroutine([=] { return detail::pnp::plex(detail::ins<T>(ins), detail::out(out)); }) {}
  template <class I>
  plex(I first, I last, chan_out<T> out) : plex(std::vector<alting_chan_in<T>>(first, last), out) {}
};
template <class T>
struct multiplex : detail::OfCoroutine {
  multiplex(const std::vector<alting_chan_in<T>>& ins, chan_out<multiplex_packet<T>> out)
      : OfCoroutine([=] { return detail::pnp::multiplex(detail::ins<T>(ins), detail::out(out)); }) {
  }
  template <class I>
  multiplex(I first, I last, chan_out<multiplex_packet<T>> out)
      : multiplex(std::vector<alting_chan_in<T>>(first, last), out) {}
};
template <class T>
struct demultiplex : detail::OfCoroutine {
  demultiplex(chan_in<multiplex_packet<T>> in, const std::vector<chan_out<T>>& outs)
      : OfCoroutine([=] { return detail::pnp::demultiplex(detail::in(in), detail::outs(outs)); }) {}
  template <class I>
  demultiplex(chan_in<multiplex_packet<T>> in, I first, I last)
      : demultiplex(in, std::vector<chan_out<T>>(first, last)) {}
};
template <class T>
struct paraplex : detail::OfCoroutine {
  paraplex(const std::vector<chan_in<T>>& ins, chan_out<std::vector<T>> out)
      : OfCoroutine([=] { return detail::pnp::paraplex(detail::ins<T>(ins), detail::out(out)); }) {}
  template <class I>
  paraplex(I first, I last, chan_out<std::vector<T>> out)
      : paraplex(std::vector<chan_in<T>>(first, last), out) {}
};
template <class T>
struct deparaplex : detail::OfCoroutine {
  deparaplex(chan_in<std::vector<T>> in, const std::vector<chan_out<T>>& outs)
      : OfCoroutine([=] { return detail::pnp::deparaplex(detail::in(in), detail::outs(outs)); }) {}
  template <class I>
  deparaplex(chan_in<std::vector<T>> in, I first, I last)
      : deparaplex(in, std::vector<chan_out<T>>(first, last)) {}
};
template <class T>
struct fixed_delay : detail::OfCoroutine {
  fixed_delay(timer::duration delay, chan_in<T> in, chan_out<T> out)
      : OfCoroutine(
            [=] { return detail::pnp::fixed_delay(delay, detail::in(in), detail::out(out)); }) {}
};
template <class T>
struct regular : detail::OfCoroutine {
  regular(chan_out<T> out, T value, timer::duration interval)
      : OfCoroutine([=] { return detail::pnp::regular(detail::out(out), value, interval); }) {}
};
template <class T>
struct regulate : detail::OfCoroutine {
  regulate(alting_chan_in<T> in, alting_chan_in<timer::duration> reset, chan_out<T> out,
           timer::duration interval)
      : OfCoroutine([=] {
          return detail::pnp::regulate(detail::in<T>(in), detail::in<timer::duration>(reset),
                                       detail::out(out), interval);
        }) {}
};
// New outputs arrive as objects of type chan_out, so this process is written with the operations of
// csp.hpp.
template <class T, bool SEQUENTIAL = false>
class dynamic_delta : public process {
 public:
  dynamic_delta(alting_chan_in<T> in, alting_chan_in<chan_out<T>> config,
                std::vector<chan_out<T>> outs = {})
      : in_(in), config_(config), outs_(std::move(outs)) {}
  template <class I>
  dynamic_delta(alting_chan_in<T> in, alting_chan_in<chan_out<T>> config, I first, I last)
      : dynamic_delta(in, config, std::vector<chan_out<T>>(first, last)) {}
  void run() override {
    alt a{config_, in_};
    for (;;) {
      if (a() == 0) {
        const chan_out<T> c = config_();
        const auto known = std::find(outs_.begin(), outs_.end(), c);
        if (known == outs_.end())
          outs_.push_back(c);
        else
          outs_.erase(known);
        continue;
      }
      const T value = in_();
      if constexpr (SEQUENTIAL)
        for (auto& c : outs_) c(value);
      else
        par_write(outs_, std::vector<T>(outs_.size(), value));
    }
  }

 private:
  alting_chan_in<T> in_;
  alting_chan_in<chan_out<T>> config_;
  std::vector<chan_out<T>> outs_;
};

}  // namespace csp::plugnplay
