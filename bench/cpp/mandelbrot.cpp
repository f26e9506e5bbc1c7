// Mandelbrot as in the C++CSP paper: a producer hands out the indices of lines, N workers compute
// them, and a consumer puts them in order. Lines are 64-bit floating point values and are sent by
// copy, by move, or as a mobile (a unique_ptr). Figures are ns for a pixel: the time of a whole
// picture, including the starting and joining of the threads, ÷ the number of pixels. The workers
// are OS threads, as in the paper, or coroutines on a multi-core executor with as many threads,
// which also runs the producer and the consumer. Channels are rendezvous, as in the paper, or have
// SLOTS: with slots, a worker that is a thread does not have to wait until the thread of the
// producer and the consumer gets a CPU.
//
// independent: the reference, N processes of the system, each of which computes every N-th line
// into memory of its own.
#include <memory>
#include <string_view>
#include <vector>

#include "common.hpp"
#include "independent.hpp"

namespace {

constexpr int kLimit = 64;  // the number of iterations of a point that does not escape

struct Packet {
  int line = -1;
  std::vector<double> data;
};
using Mobile = std::unique_ptr<Packet>;

double escape(double cr, double ci) {
  double zr = 0, zi = 0;
  int i = 0;
  for (; i < kLimit && zr * zr + zi * zi <= 4; ++i) {
    const double next = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = next;
  }
  return i;
}

void compute(int line, int dim, std::vector<double>& data) {
  data.resize(static_cast<std::size_t>(dim));
  const double ci = -1.25 + 2.5 * line / dim;
  for (int x = 0; x < dim; ++x)
    data[static_cast<std::size_t>(x)] = escape(-2.0 + 2.5 * x / dim, ci);
}

enum class By { copy, move, mobile };

Packet& packet_of(Packet& p) { return p; }
Packet& packet_of(Mobile& p) { return *p; }

template <class Message>
Message computed(int line, int dim) {
  Message m;
  if constexpr (std::is_same_v<Message, Mobile>) m = std::make_unique<Packet>();
  packet_of(m).line = line;
  compute(line, dim, packet_of(m).data);
  return m;
}

template <class Message>
struct Worker {
  By by;
  int dim;
  weft::Reader<int> lines;
  weft::Writer<Message> out;
  void operator()() {
    for (const int line : lines) {
      auto m = computed<Message>(line, dim);
      if constexpr (std::is_copy_constructible_v<Message>)
        if (by == By::copy) {
          out(m);
          continue;
        }
      out(std::move(m));
    }
  }
};

template <class Message>
weft::Process worker(By by, int dim, weft::Reader<int> lines, weft::Writer<Message> out) {
  while (auto line = co_await lines.next()) {
    auto m = computed<Message>(*line, dim);
    if constexpr (std::is_copy_constructible_v<Message>)
      if (by == By::copy) {
        co_await out.write(m);
        continue;
      }
    co_await out.write(std::move(m));
  }
}

template <class Message>
std::vector<std::vector<double>> picture(By by, int workers, int dim, std::uint32_t slots,
                                         bool threads) {
  weft::Channel<int> lines{weft::buffer(slots)};
  weft::Channel<Message> data{weft::buffer(slots)};
  const auto produce = [](weft::Writer<int> out, int n) -> weft::Process {
    for (int i = 0; i < n; ++i) co_await out.write(i);
  };
  const auto consume = [](weft::Reader<Message> in,
                          std::vector<std::vector<double>>& rows) -> weft::Process {
    while (auto m = co_await in.next()) {
      Packet& p = packet_of(*m);
      rows[static_cast<std::size_t>(p.line)] = std::move(p.data);
    }
  };
  std::vector<std::vector<double>> rows(static_cast<std::size_t>(dim));
  if (threads) {
    std::vector<decltype(weft::thread(Worker<Message>{}))> all;
    for (int i = 0; i < workers; ++i)
      all.push_back(weft::thread(Worker<Message>{by, dim, lines.reader(), data.writer()}));
    weft::run(bench::together(std::move(all)), produce(lines.writer(), dim),
              consume(data.reader(), rows));
  } else {
    std::vector<weft::Process> all;
    for (int i = 0; i < workers; ++i)
      all.push_back(worker<Message>(by, dim, lines.reader(), data.writer()));
    weft::run({.cores = static_cast<unsigned>(workers)},
              weft::par(weft::par(std::move(all)), produce(lines.writer(), dim),
                        consume(data.reader(), rows)));
  }
  return rows;
}

// The sum over the picture does not depend on which worker computed which lines.
double sum(const std::vector<std::vector<double>>& rows) {
  double s = 0;
  for (const auto& row : rows)
    for (const double v : row) s += v;
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage =
      "usage: mandelbrot copy|move|mobile|independent WORKERS DIMENSION SAMPLES "
      "[threads|coroutines [SLOTS]]";
  if (argc < 5 || argc > 7) bench::fail(usage);
  const std::string_view kind = argv[1];
  const int workers = static_cast<int>(bench::number(argv[2])),
            dim = static_cast<int>(bench::number(argv[3]));
  const long samples = bench::number(argv[4]);
  const auto slots = static_cast<std::uint32_t>(argc == 7 ? bench::number(argv[6]) : 0);
  const std::string_view as = argc >= 6 ? argv[5] : "threads";
  const bool threads = as == "threads";
  if (!threads && as != "coroutines") bench::fail(usage);
  if (kind != "copy" && kind != "move" && kind != "mobile" && kind != "independent")
    bench::fail(usage);
  double expected = 0;
  for (int i = 0; i < dim; ++i) {
    std::vector<double> row;
    compute(i, dim, row);
    for (const double v : row) expected += v;
  }
  std::string line = "ns";
  for (long k = 0; k <= samples; ++k) {
    double ns = 0;
    if (kind == "independent") {
      ns = bench::independently(workers, [&](int me) {
        std::vector<std::vector<double>> rows(static_cast<std::size_t>(dim));
        for (int i = me; i < dim; i += workers) compute(i, dim, rows[static_cast<std::size_t>(i)]);
        return rows[static_cast<std::size_t>(me)].size() == rows.size();
      });
    } else {
      const auto start = bench::Clock::now();
      const auto rows = kind == "mobile" ? picture<Mobile>(By::mobile, workers, dim, slots, threads)
                                         : picture<Packet>(kind == "copy" ? By::copy : By::move,
                                                           workers, dim, slots, threads);
      ns = std::chrono::duration<double, std::nano>(bench::Clock::now() - start).count();
      if (sum(rows) != expected) bench::fail("mandelbrot: a wrong picture");
    }
    if (k > 0) line += " " + std::to_string(ns / dim / dim);  // the first picture warms up
  }
  std::printf("%s\n", line.c_str());
}
