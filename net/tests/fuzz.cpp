// A fuzz target for the input that weft/net.hpp takes from the network (WIRE-NETWORKS.md 17), built
// with clang++ -fsanitize=fuzzer,address,undefined. The first byte of the input determines what the
// other bytes are: an entry under a name, a first message, a request for a session by the relay,
// pieces, typed values, or packets of the relay. If the high bit of the first byte is set, the
// other bytes are changes to a valid input, so that code behind the first checks is reached.
//
// The target checks that nothing crashes; that an accepted input has all fields that are read
// later, and is unchanged after it has been sent and read again; that the result of pieces does not
// depend on how they are cut; and that no packet line yields bytes that were not queued.
#include <cstdlib>

#include "weft/net.hpp"

namespace {
using namespace weft;
namespace w = weft::wire;
namespace n = weft::net::detail;
using net::Any;

void require(bool so) {
  if (!so) std::abort();
}

// Changes a valid text: each two bytes of `edits` are a position, and the byte that is put at it.
std::string changed(std::string good, std::string_view edits) {
  for (; edits.size() >= 2; edits.remove_prefix(2))
    good[static_cast<unsigned char>(edits[0]) % good.size()] = edits[1];
  return good;
}

void entry(std::string_view in) {
  try {
    const n::Entry e = n::Entry::of(in, 7, "lab");
    for (const char* text : {"address", "fingerprint", "home", "host"})
      require(e.said[text] == e.text(text));
    require(e.said["ticket"].is_null() || e.said["ticket"].is_string());
    (void)e.at(), (void)e.relay();
    Any without = e.said;  // the entry that take_ticket() writes
    without["ticket"] = nullptr;
    require(n::Entry::of(without.dump(), 8, "lab").said == without);
    (void)n::split_address(e.text("address"));
  } catch (const BadUse&) {
  }
}

void first(std::string_view in) {
  if (in.size() < n::kHead) return;
  const auto size = n::follow(in.substr(0, n::kHead));
  in.remove_prefix(n::kHead);
  if (!size || in.size() < *size) return;
  require(*size <= n::kMaxFirstMessage);
  if (const auto said = n::first_message(in.substr(0, *size)))
    require((*said)["host"].is_string() && Any::parse(said->dump()) == *said);
}

void asks(std::string_view in) {
  if (const auto a = n::session_request(in))
    require(n::is_hex(a->session, 32) && n::is_place(a->from));
}

void pieces(std::string_view in, std::size_t step) {
  const auto all = [&](std::size_t at_once, std::string& got) {
    n::Pieces p;
    for (std::string_view rest = in; !rest.empty();
         rest.remove_prefix(std::min(at_once, rest.size()))) {
      const auto take = [&](w::Bytes b) {
        got.append(reinterpret_cast<const char*>(b.data()), b.size());
      };
      if (!p.input(std::as_bytes(std::span(rest.substr(0, at_once))), take))
        return p.why() != nullptr;
    }
    return false;
  };
  std::string whole, cut;
  require(all(in.size() + 1, whole) == all(step, cut));
  require(whole == cut && whole.size() <= in.size());
}

template <class T>
void typed(w::Bytes in) {
  const auto v = w::Value<Typed<T>>::get(in);
  require(v.has_value() == (w::cbor_fault(in, true) == nullptr));
  if (!v) return;
  try {
    const Typed<T> again{T(v->value())};
    const auto came = w::Value<Typed<T>>::get(w::Value<Typed<T>>::bytes(again));
    require(came.has_value());
    const Typed<T> third{T(came->value())};
    const w::Bytes a = w::Value<Typed<T>>::bytes(again), b = w::Value<Typed<T>>::bytes(third);
    require(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  } catch (const BadUse& e) {
    require(*e.what() != 0);
  }
}
void values(w::Bytes in) {
  typed<bool>(in);
  typed<std::int8_t>(in);
  typed<std::uint64_t>(in);
  typed<double>(in);
  typed<float>(in);
  typed<std::string>(in);
  typed<std::vector<std::byte>>(in);
  typed<std::vector<std::string>>(in);
  typed<std::map<std::string, std::vector<std::optional<long>>>>(in);
  typed<std::tuple<long, std::string, std::pair<double, bool>>>(in);
  typed<Any>(in);
  typed<net::Array<bool>>(in);
  typed<net::Array<std::int16_t>>(in);
  typed<net::Array<double>>(in);
  typed<net::Array<std::complex<float>>>(in);
  typed<std::vector<std::vector<double>>>(in);
  typed<std::map<std::string, net::Array<float>>>(in);
}

// Links the two ends of a packet line, and feeds the input to one of them.
void line(std::string_view in, bool packed) {
  w::detail::Line mine{n::kRelayLine, 11, n::kRelayAgainMost},
      theirs{n::kRelayLine, 22, n::kRelayAgainMost};
  w::Buffer got;
  for (int i = 0; i < 3; ++i) {
    w::Buffer a, b;
    mine.output(i, a), theirs.output(i, b);
    mine.input(b, i, got), theirs.input(a, i, got);
  }
  require(mine.linked() && theirs.linked() && got.empty());
  std::int64_t now = 5;
  std::size_t queued = 0;
  while (!in.empty()) {
    const auto what = static_cast<unsigned char>(in[0]);
    in.remove_prefix(1);
    const std::string_view part = in.substr(0, what % 64);
    in.remove_prefix(part.size());
    w::Buffer out;
    if (packed) {  // a whole message of the peer
      queued += theirs.queue(std::as_bytes(std::span(part)));
      theirs.output(now, out);
    } else {
      w::detail::put(out, std::as_bytes(std::span(part)));
      out.push_back({});
    }
    mine.hold(what & 64);
    mine.input(out, now, got);
    mine.passed(now);
    out.clear();
    mine.output(now, out, what & 128);
    w::Buffer back;
    theirs.input(out, now, back);
    require(back.empty());  // nothing was queued at that end
    now += what;
  }
  require(got.size() <= queued);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const std::string home(16, 'a'), print(64, 'b'), ticket(32, 'c');
  static const std::string good_entry = Any{
      {"address", "127.0.0.1:4711"},
      {"fingerprint", print},
      {"home", home},
      {"host", "h"},
      {"readers", true},
      {"relay", true},
      {"relayed", 0},
      {"ticket", ticket},
      {"writers", false}}.dump();
  static const std::string said =
      Any{{"host", "h"}, {"trust", false}, {"name", "lab"}, {"side", "reader"}, {"ticket", ticket}}
          .dump();
  static const std::string good_first =
      n::kMagic + std::string(1, static_cast<char>(said.size())) + std::string(3, 0) + said;
  static const std::string good_asks =
      Any{{"session", ticket}, {"from", print + "." + home}}.dump();
  static const std::string good_array = [] {  // {"x": an array of 2 x 3}
    const Typed<std::map<std::string, net::Array<float>>> v{{{"x", {{2, 3}, {1, 2, 3, 4, 5, 6}}}}};
    const w::Bytes b = w::Value<std::decay_t<decltype(v)>>::bytes(v);
    return std::string(reinterpret_cast<const char*>(b.data()), b.size());
  }();
  const std::string_view in(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool edits = data[0] & 128;
  switch (data[0] % 8) {
    case 0: entry(edits ? changed(good_entry, in) : in); break;
    case 1: first(edits ? changed(good_first, in) : in); break;
    case 2: asks(edits ? changed(good_asks, in) : in); break;
    case 3: pieces(in, 1 + data[0] / 8); break;
    case 4: line(in, edits); break;
    default: {
      const std::string value = edits ? changed(good_array, in) : std::string(in);
      values(std::as_bytes(std::span(value)));
    }
  }
  return 0;
}
