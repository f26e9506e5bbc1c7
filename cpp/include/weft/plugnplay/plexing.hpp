// Processes between one stream and several: they copy values, mix streams, make tuples, or send
// values to an address.
//
// Processes that choose among inputs (plex, multiplex) continue until the last input has ended; the
// poison of an input passes through at once.
#pragma once
#include <algorithm>

#include "ends.hpp"

namespace weft::inline WEFT_ABI::plugnplay {

// A value, with the index of the input that it was read from, or of the output that it is sent to.
template <class T>
struct Packet {
  std::size_t index;
  T data;
};

namespace detail {

template <class T, class P, class W>
Process copying_to_all(Reader<T, P> in, std::vector<W> outs) {
  static_assert(
      std::is_copy_constructible_v<T>,
      "weft: delta gives each output a copy of the value, and this type cannot be copied");
  while (auto v = co_await in.next()) co_await par_write_all(outs, *v);
}
template <class T, class P, class W>
Process copying_in_turn(Reader<T, P> in, std::vector<W> outs) {
  while (auto v = co_await in.next())
    for (auto& out : outs) co_await out.write(*v);
}
template <class T, class P>
Process copying_to_some(Reader<T, P> in, Reader<Writer<T, P>, P> config,
                        std::vector<Writer<T, P>> outs) {
  for (;;) {
    // The end of the stream ends this process; the end of config does not.
    auto c = co_await weft::select(Mode::priority, config, weft::in(in).ends());
    if (c.index == 1) {
      const T value = std::get<2>(std::move(c.value));
      co_await par_write_all(outs, value);
      continue;
    }
    std::optional<Writer<T, P>> end(std::get<1>(std::move(c.value)));
    const auto known = std::find_if(outs.begin(), outs.end(),
                                    [&](const auto& w) { return w.core() == end->core(); });
    if (known == outs.end())
      outs.push_back(std::move(*end));
    else
      outs.erase(known);
  }
}
// Writes `make(index, value)` for each value of an input, until the last of the inputs has ended
// (rule 5.6).
template <class T, class P, class U, class Q, class F>
Process gathering(std::vector<Reader<T, P>> ins, Writer<U, Q> out, F make) {
  Alternative alt(ins);
  for (;;) {
    auto c = co_await alt.select();
    co_await out.write(make(static_cast<std::size_t>(c.index), std::move(*c.value)));
  }
}
template <class T, class P, class W>
Process scattering(Reader<Packet<T>, P> in, std::vector<W> outs) {
  while (auto p = co_await in.next()) {
    if (p->index >= outs.size())
      weft::detail::bad_use("demultiplex: a packet for output " + std::to_string(p->index) +
                            " of " + std::to_string(outs.size()));
    co_await outs[p->index].write(std::move(p->data));
  }
}
template <class T, class P, class Q>
Process zipping(std::vector<Reader<T, P>> ins, Writer<std::vector<T>, Q> out) {
  for (;;) co_await out.write(co_await par_read(ins));
}
template <class T, class P, class W>
Process unzipping(Reader<std::vector<T>, P> in, std::vector<W> outs) {
  while (auto v = co_await in.next()) co_await par_write(outs, std::move(*v));
}
template <class P>
struct PacketOf;
template <class T>
struct PacketOf<Packet<T>> {
  using type = T;
};
template <class E>
std::vector<E> at_least_one(Ends<E>&& ends, const char* who) {
  auto r = ends.take();
  if (r.empty())
    weft::detail::bad_use(std::string(who) + ": it needs at least one end in its list");
  return r;
}

}  // namespace detail

// Copies each value of the input to every output, in parallel.
template <class T = void, class I>
Process delta(I&& in, Ends<Writer<detail::value_of<I>, detail::policy_of<I>>> outs) {
  return detail::copying_to_all(detail::reader_of<T>(std::forward<I>(in)),
                                detail::at_least_one(std::move(outs), "delta"))
      .named("delta");
}
// Copies each value of the input to one output after the other.
template <class T = void, class I>
Process sequential_delta(I&& in, Ends<Writer<detail::value_of<I>, detail::policy_of<I>>> outs) {
  return detail::copying_in_turn(detail::reader_of<T>(std::forward<I>(in)),
                                 detail::at_least_one(std::move(outs), "sequential_delta"))
      .named("delta");
}
// Acts as a delta whose outputs change: a writer end read from `config` is added, or removed if its
// channel is among the outputs already. An end from `config` is read before a value of the input.
// Without outputs the values are dropped.
template <class T = void, class I, class C>
Process dynamic_delta(I&& in, C&& config,
                      Ends<Writer<detail::value_of<I>, detail::policy_of<I>>> outs = {}) {
  return detail::copying_to_some(detail::reader_of<T>(std::forward<I>(in)),
                                 detail::reader_of<void>(std::forward<C>(config)), outs.take())
      .named("dynamic_delta");
}
// Copies the values of any input to the output, fairly.
template <class T = void, class O>
Process plex(Ends<Reader<detail::value_of<O>, detail::policy_of<O>>> ins, O&& out) {
  return detail::gathering(detail::at_least_one(std::move(ins), "plex"),
                           detail::writer_of<T>(std::forward<O>(out)),
                           [](std::size_t, detail::value_of<O>&& v) { return std::move(v); })
      .named("plex");
}
// Copies the values of any input to the output, fairly, each with the index of its input: the
// output carries Packet<T>.
template <class T = void, class O, class V = typename detail::PacketOf<detail::value_of<O>>::type>
Process multiplex(Ends<Reader<std::type_identity_t<V>, detail::policy_of<O>>> ins, O&& out) {
  static_assert(std::is_void_v<T> || std::is_same_v<T, V>,
                "weft: the packets carry another type than the one named in <>");
  return detail::gathering(detail::at_least_one(std::move(ins), "multiplex"),
                           detail::writer_of<void>(std::forward<O>(out)),
                           [](std::size_t i, V&& v) {
                             return Packet<V>{i, std::move(v)};
                           })
      .named("multiplex");
}
// Writes the data of each packet to the output of its index. An index beyond the outputs makes the
// process fail with BadUse.
template <class T = void, class I, class V = typename detail::PacketOf<detail::value_of<I>>::type>
Process demultiplex(I&& in, Ends<Writer<std::type_identity_t<V>, detail::policy_of<I>>> outs) {
  static_assert(std::is_void_v<T> || std::is_same_v<T, V>,
                "weft: the packets carry another type than the one named in <>");
  return detail::scattering(detail::reader_of<void>(std::forward<I>(in)),
                            detail::at_least_one(std::move(outs), "demultiplex"))
      .named("demultiplex");
}
// Computes out[k] = the vector of in[k] of all inputs, which are read in parallel.
template <class T = void, class O, class V = typename detail::value_of<O>::value_type>
Process paraplex(Ends<Reader<std::type_identity_t<V>, detail::policy_of<O>>> ins, O&& out) {
  static_assert(std::is_void_v<T> || std::is_same_v<T, V>,
                "weft: the vectors carry another type than the one named in <>");
  return detail::zipping(detail::at_least_one(std::move(ins), "paraplex"),
                         detail::writer_of<void>(std::forward<O>(out)))
      .named("paraplex");
}
// Computes outs[i][k] = in[k][i]; the outputs are written in parallel. A vector whose length is not
// that of outs makes the process fail with BadUse.
template <class T = void, class I, class V = typename detail::value_of<I>::value_type>
Process deparaplex(I&& in, Ends<Writer<std::type_identity_t<V>, detail::policy_of<I>>> outs) {
  static_assert(std::is_void_v<T> || std::is_same_v<T, V>,
                "weft: the vectors carry another type than the one named in <>");
  return detail::unzipping(detail::reader_of<void>(std::forward<I>(in)),
                           detail::at_least_one(std::move(outs), "deparaplex"))
      .named("deparaplex");
}

}  // namespace weft::inline WEFT_ABI::plugnplay
