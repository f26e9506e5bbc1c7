// Measures how the cost of a hand-over depends on the size of the message: one hand-over between
// two coroutines, with messages of N bytes sent by copy, by move, as a mobile (a unique_ptr to a
// vector), and as a flat object (an array in the message itself, whose move is a copy). The
// receiver sends the object back by the cheapest means, so that only a copy allocates memory.
//
// memcpy: the reference, N bytes copied from one place to another, repeatedly.
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "common.hpp"

namespace {

using weft::Local;
using Bytes = std::vector<unsigned char>;
using Mobile = std::unique_ptr<Bytes>;

template <std::size_t N>
struct Flat {
  std::array<unsigned char, N> bytes;
};

std::size_t size_of(const Bytes& b) { return b.size(); }
std::size_t size_of(const Mobile& m) { return m->size(); }
template <std::size_t N>
std::size_t size_of(const Flat<N>&) {
  return N;
}
unsigned char& first(Bytes& b) { return b[0]; }
unsigned char& first(Mobile& m) { return (*m)[0]; }
template <std::size_t N>
unsigned char& first(Flat<N>& f) {
  return f.bytes[0];
}

// The receiver drops a copy; a value that was moved returns to the sender.
template <class Message>
weft::Process send(weft::Writer<Message, Local> out, weft::Reader<Message, Local> back,
                   Message message, bool copy, long samples, long per) {
  bench::Sampler s(samples);
  unsigned char mark = 0;
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      first(message) = ++mark;
      if constexpr (std::is_copy_constructible_v<Message>) {
        if (copy) {
          co_await out.write(message);
          continue;
        }
      }
      co_await out.write(std::move(message));
      message = co_await back.read();
    }
    // stretch 0 warms up; a message that returns is handed over twice
    if (k > 0) s.end((copy ? 1.0 : 2.0) * static_cast<double>(per));
  }
  s.print();
}
template <class Message>
weft::Process receive(weft::Reader<Message, Local> in, weft::Writer<Message, Local> back, bool copy,
                      std::size_t size) {
  unsigned char mark = 0;
  for (;;) {
    Message m = co_await in.read();
    if (size_of(m) != size || first(m) != ++mark) bench::fail("messages: a wrong message");
    if (!copy) co_await back.write(std::move(m));
  }
}

template <class Message>
void hand_over(Message message, bool copy, long samples, long per) {
  weft::Channel<Message, Local> there, back;
  const std::size_t size = size_of(message);
  weft::run(weft::par(
      send<Message>(there.writer(), back.reader(), std::move(message), copy, samples, per),
      receive<Message>(there.reader(), back.writer(), copy, size)));
}

template <std::size_t N>
bool flat(std::size_t size, long samples, long per) {
  if (size == N) hand_over(Flat<N>{}, false, samples, per);
  return size == N;
}

void yardstick(std::size_t size, long samples, long per) {
  // The two blocks begin half a page apart, modulo the page: if both began at the same offset in a
  // page, every load would wait for an earlier store to an address with the same lower bits.
  Bytes memory(2 * size + 8192, 1);
  unsigned char* const from = memory.data();
  unsigned char* const to = from + (size + 4095) / 4096 * 4096 + 2048;
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      std::memcpy(to, from, size);
      asm volatile("" : : "r"(to), "r"(from) : "memory");
    }
    if (k > 0) s.end(static_cast<double>(per));
  }
  s.print();
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage = "usage: messages copy|move|mobile|flat|memcpy BYTES SAMPLES PER";
  if (argc != 5) bench::fail(usage);
  const std::string_view by = argv[1];
  const auto size = static_cast<std::size_t>(bench::number(argv[2]));
  const long samples = bench::number(argv[3]), per = bench::number(argv[4]);
  if (by == "copy" || by == "move")
    hand_over(Bytes(size), by == "copy", samples, per);
  else if (by == "mobile")
    hand_over(std::make_unique<Bytes>(size), false, samples, per);
  else if (by == "memcpy")
    yardstick(size, samples, per);
  else if (by == "flat") {
    if (!flat<8>(size, samples, per) && !flat<64>(size, samples, per) &&
        !flat<512>(size, samples, per) && !flat<4096>(size, samples, per) &&
        !flat<32768>(size, samples, per))
      bench::fail("messages: a flat message has 8, 64, 512, 4096 or 32768 bytes");
  } else {
    bench::fail(usage);
  }
}
