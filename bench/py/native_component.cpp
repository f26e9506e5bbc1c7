// The native sides of native_rendezvous.py, native_blocks.py and native_messaging.py.
#include <weft/component.hpp>

using namespace weft::native;

namespace {

void successor(Reader<std::int64_t> in, Writer<std::int64_t> out) {
  for (std::int64_t x : in) out.write(x + 1);
}
// Integers from 0 on, in blocks of so many.
void blocks(Writer<std::vector<std::int64_t>> out, std::int64_t count, std::size_t size) {
  std::int64_t next = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    std::vector<std::int64_t> block(size);
    for (std::int64_t& x : block) x = next++;
    out.write(block);
  }
}

}  // namespace

WEFT_COMPONENT(native_bench, "What the benches of native components measure.") {
  component.process<&successor>("successor").argument("source").argument("out");
  component.process<&blocks>("blocks").argument("out").argument("count").argument("size");
}
