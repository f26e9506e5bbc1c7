// Placeable processes for test_boards_bare.py, which places them on a bare board (rules 21.10 to
// 21.13). The test finds lines by the comments in brackets.
#include <chrono>
#include <cstdint>
#include <weft/anywhere.hpp>
using Int = std::int32_t;

weft::Process counts(weft::Writer<Int> out, Int n) {
  for (Int i = 0; i < n; ++i) co_await out.write(i);
}
WEFT_PLACEABLE(counts, out, n)

weft::Process doubles(weft::Reader<Int> in, weft::Writer<Int> out) {
  while (auto x = co_await in.next()) co_await out.write(2 * *x);
}
WEFT_PLACEABLE(doubles, in, out)

weft::Process copies(weft::Reader<Int> in, weft::Writer<Int> out) {
  for (;;) {
    const Int x = co_await in.read();  // [copies reads]
    co_await out.write(x);             // [copies writes]
  }
}
WEFT_PLACEABLE(copies, in, out)

weft::Process merges(weft::Reader<Int> a, weft::Reader<Int> b, weft::Writer<Int> out) {
  for (;;) {
    auto got = co_await weft::select(a, b);
    co_await out.write(*got.value);
  }
}
WEFT_PLACEABLE(merges, a, b, out)  // [merges]

weft::Process offers(weft::Writer<Int> a, weft::Writer<Int> b, Int n) {
  for (Int i = 0; i < n; ++i) co_await weft::select(weft::out(a, i), weft::out(b, -i));
}
WEFT_PLACEABLE(offers, a, b, n)

weft::Process poisons(weft::Writer<Int> out, Int strength) {
  co_await out.write(1);
  out.poison(static_cast<std::uint8_t>(strength));
}
WEFT_PLACEABLE(poisons, out, strength)

weft::Process scales(weft::Reader<double> in, weft::Writer<double> out, double factor,
                     bool negated) {
  while (auto x = co_await in.next()) co_await out.write(negated ? -factor * *x : factor * *x);
}
WEFT_PLACEABLE(scales, in, out, factor = 2.0, negated = false)

weft::Process sleeps(weft::Writer<Int> out) {
  co_await out.write(1);
  co_await weft::sleep(std::chrono::hours(1));
}
WEFT_PLACEABLE(sleeps, out)

weft::Process floats(weft::Writer<float> out) { co_await out.write(0.5F); }
WEFT_PLACEABLE(floats, out)

weft::Process large(weft::Writer<Int> out) {
  struct {
    char bytes[60000];
  } room{};
  for (Int i = 0; i < Int{sizeof room.bytes}; ++i) room.bytes[i] = static_cast<char>(i);
  co_await out.write(1);
  co_await out.write(room.bytes[3]);
}
WEFT_PLACEABLE(large, out)

weft::Process writes_late(weft::Writer<Int> out) {
  co_await out.write(1);
  out.retire();
  co_await out.write(2);
}
WEFT_PLACEABLE(writes_late, out)

weft::Process meets(weft::Barrier b) { co_await b.sync(); }
WEFT_PLACEABLE(meets, b)
