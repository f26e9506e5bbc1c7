// The processes of a node of a power grid: they handle frames of phasor measurement units,
// averages, thresholds, and the RMS of a recorded disturbance.
//
//   frames ──inside──► pmu ──measured──► node ──averages, alarms──► decisions (Python)
//                                        │ ▲── settings ◄───────────┘
//                                    ask ▼ │ answers
//                                       a model (Python), asked by a handler with a deadline
//   a record (Python) ──samples──► rms ──levels, alarms──► decisions
//
// Each process is one function. `node` is what RIAPS calls a component with ports: one thread of
// control, a handler for each port and one for its timer, and nothing shared. `frames`, which
// blocks in the operating system, is a process of its own behind an `inside` channel.
//
// A frame is a data frame of IEEE C37.118.2 with phasors as polar floats and a time base of a
// microsecond: 0xAA01, its size (2 bytes), station (2), seconds (4), fraction (4), status (2), six
// phasors (8 each), frequency and its rate of change (4 each), CRC-CCITT (2).
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <complex>
#include <weft/component.hpp>

using namespace weft::native;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

using Measurement = std::tuple<std::int64_t, double, double,
                               double>;  // station, seconds, volts (1 is nominal), hertz
using Average = std::tuple<std::int64_t, double, double, double,
                           // Like Measurement, but for a period, and with the value that the model
                           // expects.
                           double>;
using Alarm =
    std::tuple<std::string, std::int64_t, double, double>;  // kind, station, seconds, volts
// The limits in volts: below the first one a sag begins, above the second one it is over.
using Settings = std::tuple<double, double>;

double seconds(nanoseconds t) { return std::chrono::duration<double>(t).count(); }

// --- frames --------------------------------------------------------------------------------------

constexpr std::size_t kFrame = 74, kPhasors = 6;

std::uint32_t big(const std::byte* at, int bytes) {
  std::uint32_t v = 0;
  for (int i = 0; i < bytes; ++i) v = v << 8 | std::to_integer<std::uint32_t>(at[i]);
  return v;
}
float big_float(const std::byte* at) { return std::bit_cast<float>(big(at, 4)); }

std::uint16_t crc_ccitt(const std::byte* at, std::size_t n) {
  std::uint16_t crc = 0xFFFF;
  for (std::size_t i = 0; i < n; ++i) {
    crc = static_cast<std::uint16_t>(crc ^ std::to_integer<unsigned>(at[i]) << 8);
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<std::uint16_t>(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
  }
  return crc;
}

// Reads from a file, a pipe or a serial line. If a read blocks, only this thread waits. Bytes
// between frames are reported and skipped.
void frames(std::string path, Writer<Bytes> inside, Writer<std::string> refused) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  struct Closed {
    int fd;
    ~Closed() { ::close(fd); }
  } closed{fd};
  Bytes have;
  std::byte piece[4096];
  std::size_t skipped = 0;
  const auto tell = [&] {
    if (skipped > 0)
      refused.write(path + ": " + std::to_string(std::exchange(skipped, 0)) +
                    " bytes that are no frame");
  };
  for (;;) {
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
    if (n == 0) {
      skipped += have.size();
      return tell();
    }
    have.insert(have.end(), piece, piece + n);
    std::size_t at = 0;
    while (have.size() - at >= 4) {
      if (big(&have[at], 2) != 0xAA01 || big(&have[at + 2], 2) != kFrame) {
        ++at;
        ++skipped;
        continue;
      }
      if (have.size() - at < kFrame) break;
      tell();
      inside.write(Bytes(&have[at], &have[at] + kFrame));
      at += kFrame;
    }
    have.erase(have.begin(), have.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// Forwards each whole frame at its time; the second of the first frame is the zero of the run's
// clock.
void pmu(Reader<Bytes> inside, Writer<Measurement> measured, Writer<std::string> refused,
         double nominal) {
  const nanoseconds began = now();
  std::optional<std::uint32_t> zero;
  for (const Bytes& frame : inside) {
    const std::byte* const at = frame.data();
    const auto station = static_cast<std::int64_t>(big(at + 4, 2));
    if (big(at + kFrame - 2, 2) != crc_ccitt(at, kFrame - 2)) {
      refused.write("a frame of station " + std::to_string(station) + " with a wrong checksum");
      continue;
    }
    if (!zero) zero = big(at + 6, 4);
    const nanoseconds time = std::chrono::seconds(big(at + 6, 4) - *zero) +
                             std::chrono::microseconds(big(at + 10, 4) & 0xFFFFFF);
    if (const nanoseconds ahead = began + time - now(); ahead > 0ns) sleep(ahead);
    // The positive sequence of the three voltages is their mean after the second and the third have
    // each been turned by a third of a circle more than the one before.
    std::complex<double> sequence = 0;
    for (int phase = 0; phase < 3; ++phase)
      sequence += std::polar<double>(big_float(at + 16 + 8 * phase),
                                     big_float(at + 20 + 8 * phase) + 2 * M_PI * phase / 3) /
                  3.0;
    const std::byte* const rest = at + 16 + 8 * kPhasors;
    measured.write({station, seconds(time), std::abs(sequence) / nominal, big_float(rest)});
  }
}

// --- the node ------------------------------------------------------------------------------------

class Window {  // collects the measurements of a period
 public:
  void add(const Measurement& m) {
    station_ = std::get<0>(m);
    volts_ += std::get<2>(m);
    hertz_ += std::get<3>(m);
    ++count_;
  }
  bool empty() const { return count_ == 0; }
  std::int64_t station() const { return station_; }
  double volts() const { return volts_ / count_; }
  double hertz() const { return hertz_ / count_; }

 private:
  std::int64_t station_ = 0;
  double volts_ = 0, hertz_ = 0;
  int count_ = 0;
};

// The time that a handler has left. RIAPS calls a method when a handler has taken longer; in this
// example the handler can also stop waiting.
class Deadline {
 public:
  explicit Deadline(nanoseconds span) : by_(now() + span) {}
  nanoseconds rest() const { return std::max(by_ - now(), 0ns); }

 private:
  nanoseconds by_;
};

class Node {
 public:
  Node(Writer<Average>& averages, Writer<Alarm>& alarms, Writer<double>& ask,
       Reader<double>& answers, nanoseconds deadline, Settings settings)
      : averages_(averages),
        alarms_(alarms),
        ask_(ask),
        answers_(answers),
        deadline_(deadline),
        settings_(settings) {}

  void on_measurement(std::size_t port, const Measurement& m) {
    windows_[port].add(m);
    const auto& [station, time, volts, hertz] = m;
    const auto& [low, high] = settings_;
    if (!sags_[port] && volts < low) {
      sags_[port] = true;
      alarms_.write({"sag", station, time, volts});
    } else if (sags_[port] && volts > high) {
      sags_[port] = false;
      alarms_.write({"over", station, time, volts});
    }
  }
  void on_settings(const Settings& s) { settings_ = s; }

  // The handler with a deadline asks the model, and waits for the answer only until the deadline.
  void on_timer(nanoseconds time) {
    const Deadline deadline(deadline_);
    const std::array<Window, 2> windows = std::exchange(windows_, {});
    for (const Window& w : windows) {
      if (w.empty()) continue;
      if (!owed_) {
        ask_.write(w.volts());
        owed_ = true;
        const auto got = select_first(answers_, after(deadline.rest()));
        if (got.index() == 0)
          on_answer(std::get<0>(got));
        else
          on_timer_missed(w, time);
      }
      averages_.write({w.station(), seconds(time), w.volts(), w.hertz(), expected_});
    }
  }
  // The handler of a missed deadline sends the average with the model's latest answer.
  void on_timer_missed(const Window& w, nanoseconds time) {
    alarms_.write({"late", w.station(), seconds(time), w.volts()});
  }
  void on_answer(double expected) {
    expected_ = expected;
    owed_ = false;
  }
  bool owed() const { return owed_; }

 private:
  Writer<Average>& averages_;
  Writer<Alarm>& alarms_;
  Writer<double>& ask_;
  Reader<double>& answers_;
  const nanoseconds deadline_;
  Settings settings_;
  std::array<Window, 2> windows_;
  std::array<bool, 2> sags_{};
  double expected_ = 1;
  bool owed_ = false;  // true while the answer to a question is missing
};

void node(Reader<Measurement> pmu50, Reader<Measurement> pmu60, Reader<Settings> settings,
          Reader<double> answers, Writer<double> ask, Writer<Average> averages,
          Writer<Alarm> alarms, std::int64_t period_ms, std::int64_t deadline_ms, double low,
          double high) {
  Node me(averages, alarms, ask, answers, deadline_ms * 1ms, {low, high});
  const nanoseconds began = now(), period = period_ms * 1ms;
  // The period ends between frames, so that each frame clearly belongs to one period.
  nanoseconds next = began + period + 500us;
  bool open50 = true, open60 = true;
  while (open50 || open60) {
    try {
      // An input that is enabled as long as its channel is open; select() reports the end of the
      // channel.
      using In = Guarded<Reader<Measurement>>;
      const auto got = select(In{pmu50, open50, open50}, In{pmu60, open60, open60}, settings,
                              when(me.owed(), answers), after(next - now()));
      switch (got.index()) {
        case 0: me.on_measurement(0, std::get<0>(got)); break;
        case 1: me.on_measurement(1, std::get<1>(got)); break;
        case 2: me.on_settings(std::get<2>(got)); break;
        case 3: me.on_answer(std::get<3>(got)); break;
        default: me.on_timer(next - 500us - began); next += period;
      }
    } catch (const Retired& r) {
      if (r.end == pmu50.number())
        open50 = false;
      else if (r.end == pmu60.number())
        open60 = false;
      else
        throw;
    }
  }
}

// --- a recorded disturbance ----------------------------------------------------------------------

// Computes the RMS of the last cycle, twice a cycle; sends an alarm when the RMS leaves the allowed
// range.
void rms(Reader<Array<double>> samples, Writer<std::pair<double, double>> levels,
         Writer<Alarm> alarms, double rate, double hertz, double nominal, double low,
         std::int64_t station) {
  const auto cycle = static_cast<std::size_t>(std::lround(rate / hertz));
  std::vector<double> squares(cycle);
  double sum = 0;
  std::size_t seen = 0;
  bool sags = false;
  for (Array<double>& block : samples)
    for (const double x : block) {
      double& oldest = squares[seen % cycle];
      sum += x * x - std::exchange(oldest, x * x);
      if (++seen < cycle || seen % (cycle / 2) != 0) continue;
      const double time = static_cast<double>(seen) / rate,
                   level = std::sqrt(std::max(sum, 0.0) / static_cast<double>(cycle)) / nominal;
      levels.write({time, level});
      if (sags != (level < low))
        alarms.write({sags ? "record over" : "record sag", station, time, level});
      sags = level < low;
    }
}

}  // namespace

WEFT_COMPONENT(node, "A node of a power grid: phasor measurements, averages, thresholds.") {
  component
      .process<&frames>("frames",
                        "Cuts what a file or device gives into frames; it may block there.")
      .argument("path")
      .argument("inside")
      .argument("refused", "what is no frame");
  component.process<&pmu>("pmu", "Decodes frames, each at its time.")
      .argument("inside")
      .argument("measured", "station, seconds, volts, hertz")
      .argument("refused", "frames that are broken")
      .argument("nominal", 230'940.0, "volts from a phase to earth");
  component.process<&node>("node", "Averages measurements, and looks at thresholds.")
      .argument("pmu50")
      .argument("pmu60")
      .argument("settings", "volts below which a sag begins, and above which it is over")
      .argument("answers", "of the model")
      .argument("ask")
      .argument("averages", "station, seconds, volts, hertz, volts that the model expects")
      .argument("alarms", "what, station, seconds, volts")
      .argument("period_ms", 100)
      .argument("deadline_ms", 20, "of the handler of the timer")
      .argument("low", 0.9)
      .argument("high", 0.95);
  component.process<&rms>("rms", "The RMS of a recorded voltage, twice a cycle.")
      .argument("samples")
      .argument("levels", "seconds, volts")
      .argument("alarms", "what, station, seconds, volts")
      .argument("rate", "samples a second")
      .argument("hertz")
      .argument("nominal", "volts")
      .argument("low")
      .argument("station");
}
