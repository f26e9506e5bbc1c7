// A fuzz target for the input from a peer (WIRE.md 14): clang++
// -fsanitize=fuzzer,address,undefined. The first byte of the input determines how the rest is used:
// as raw bytes of a stream, in pieces; as frames with corrected size and seq, so that the code
// behind these checks is reached; as the input of a serial line, raw or in corrected packets; or as
// CBOR.
//
// The target checks that nothing crashes, that no visitor is left when the session has ended, and
// that the channels and another peer continue to work.
#include <cstdlib>

#include "weft/wire/cbor.hpp"
#include "weft/wire/compact.hpp"
#include "weft/wire/line.hpp"
#include "wire_world.hpp"

namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Wire;
namespace w = weft::wire;

void require(bool so) {
  if (!so) std::abort();
}

struct Target {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), bad = w::Space::make("bad", 2),
                            good = w::Space::make("good", 3);
  Channel<int> c, d{buffer(2)};
  Channel<std::string> s;
  Wire hostile{*home, *bad}, honest{*home, *good};
  std::uint32_t seq = 0;
  Target() {
    hostile.give(c.writer());
    hostile.give(c.reader());
    hostile.give(d.writer());
    hostile.give(s.reader());
    hostile.give(s.writer());
    honest.give(c.writer());
    hostile.pump();
    honest.pump();
    seq = 1;  // the number after that of the HELLO
  }
  void feed(w::Bytes b) {
    const w::Space::Step step(*home);
    hostile.at_home.session.input(b);
    w::Session& out = hostile.at_home.session;
    out.went(out.output().size());
  }
};

// A linked serial line, and the session above it.
struct SerialTarget {
  w::detail::Line mine{{}, 11}, theirs{{}, 22};
  w::detail::Widener wide;
  SerialTarget() {
    w::Buffer hello, out, none;
    w::append(hello, {w::Kind::hello, 0, 0, 0, 0, 0, {}}, 0);
    w::detail::narrow(hello, out);
    wide.input(out, none);  // The session counts frames from the first after HELLO.
    for (int i = 0; i < 3; ++i) {
      w::Buffer a, b;
      mine.output(i, a), theirs.output(i, b);
      mine.input(b, i, none), theirs.input(a, i, none);
    }
    require(mine.linked() && theirs.linked());
  }
  void feed(Target& t, w::Bytes line) {
    w::Buffer session, frames;
    mine.input(line, 5, session);
    wide.input(session, frames);
    t.feed(frames);
  }
  // Feeds a whole packet with the output of the session's peer.
  void feed_packed(Target& t, w::Bytes compact) {
    while (!compact.empty()) {
      w::Buffer line;
      compact = compact.subspan(theirs.queue(compact));
      theirs.output(5, line);
      feed(t, line);
      line.clear();
      mine.output(5, line);
      w::Buffer none;
      theirs.input(line, 5, none);
    }
  }
};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Target t;
  w::Bytes in = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] & 1) {
    for (const std::size_t piece = 1 + data[0] / 2; !in.empty();
         in = in.subspan(std::min(piece, in.size())))
      t.feed(in.first(std::min(piece, in.size())));
  } else if (data[0] & 2) {
    SerialTarget s;
    if (data[0] & 4)
      s.feed(t, in);
    else
      s.feed_packed(t, in);
    // The check reads no byte beyond its input.
    require(w::cbor_fault(in) != nullptr || !in.empty());
    require(w::cbor_fault(in, true) == nullptr || w::cbor_fault(in) != nullptr);
  } else {
    // The fields are: kind, flags, where, op, val (2 bytes), length of the body, body.
    while (in.size() >= 7) {
      const auto at = [&](std::size_t i) { return std::to_integer<std::uint8_t>(in[i]); };
      const std::size_t n = std::min<std::size_t>(at(6), in.size() - 7);
      w::Buffer frame;
      w::append(frame,
                {static_cast<w::Kind>(at(0)), at(1), at(2), 0, at(3),
                 at(4) | static_cast<std::uint64_t>(at(5)) << 8, in.subspan(7, n)},
                t.seq++);
      t.feed(frame);
      in = in.subspan(7 + n);
    }
  }
  t.hostile.tell(t.hostile.at_home);
  require(t.hostile.at_home.home.open() == 0);
  Op write;
  write.write(0, 5).begin(t.honest.at_party);
  t.honest.pump();
  require(!t.honest.at_home.session.is_over());
  write.withdraw();
  t.honest.pump();
  require(write.is_over && write.times == 1);
  return 0;
}
