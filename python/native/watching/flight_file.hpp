// Reads one or several files of the flight recorder as one sequence of events, in the order of
// their times, forwards or backwards.
//
// Invariants
//  1 Only one block of each lane is in memory, whatever the size of a file.
//  2 Nothing in a file is trusted: numbers are checked, and lengths are compared with the bytes
//    that exist. Events that were read before a fault count; `fault` describes where the rest is
//    missing.
//  3 A file that is cut off anywhere is read up to the point where it is cut off.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/runtime/flight.hpp"

namespace weft::py::flight_file {

namespace form = runtime::flight;

inline constexpr std::uint32_t kNone = ~0u;

struct Event {
  std::int64_t t = 0;  // in ns
  std::int64_t waited = 0;
  std::uint32_t process = 0;
  std::uint32_t place = kNone;
  std::uint32_t guard = kNone;
  // for a commit: its number among the reads, or the writes, of its place
  std::uint64_t number = 0;
  std::string_view text;  // valid until the next event of this lane
  form::Op op = form::Op::other;
  form::Outcome outcome = form::Outcome::commit;
  form::Why why = form::Why::retired;
  std::uint8_t what = 0;  // a form::Tag; kOther means an operation that has ended
  std::uint8_t how = 0;
  bool parked = false;
  bool reads() const noexcept {
    return op == form::Op::read || op == form::Op::extended || op == form::Op::select_input;
  }
  bool writes() const noexcept { return op == form::Op::write || op == form::Op::select_output; }
};

struct Process {
  std::string path;
  std::int64_t id = 0;
  std::uint32_t file = 0;
};
struct Place {
  std::string name;
  std::uint32_t file = 0;
  std::uint64_t flags = 0, read = 0, written = 0;
};
struct Head {
  std::uint64_t units0 = 0, ns0 = 0, units1 = 0, ns1 = 0, system = 0, pid = 0, dropped = 0;
  std::string host, program, version;
  // The largest error of the file's times, in ns, from the file's piece C; kExact if there is no
  // such piece, kUnknown if the file's clock was compared with no other clock.
  std::int64_t within = kExact;
  static constexpr std::int64_t kExact = -2, kUnknown = -1;
  // The ns to be added to the file's steady clock to get the steady clock of the host `reference`.
  // Without `reference` the file's times are those of its own host.
  std::int64_t difference = 0;
  std::string reference;
  const std::string& clock_of() const noexcept { return reference.empty() ? host : reference; }
};
// Raised if the file is not a trace that can be read; the text gives the reason.
struct NoTrace : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Files {
 public:
  explicit Files(const std::vector<std::string>& names);
  ~Files();
  Files(const Files&) = delete;

  void rewind(bool backwards);
  // Returns the next event; null when no event is left. The event is valid until the next call.
  const Event* next();

  std::vector<Process> processes;
  std::vector<Place> places;
  std::vector<Head> heads;
  std::string fault;  // empty if the files are complete
  std::int64_t first() const noexcept { return first_; }

 private:
  struct Where {  // the position of a block
    std::uint64_t at;
    std::uint32_t size;
  };
  struct Lane {
    std::uint32_t file;
    std::vector<Where> blocks;
    std::size_t block = 0;  // the index of the next block to read
    std::vector<unsigned char> bytes;
    const unsigned char* p = nullptr;
    const unsigned char* end = nullptr;
    std::uint64_t units = 0;
    std::vector<std::uint32_t> processes, places;  // the index is the number in the block
    std::string_view other;
    Event event;
    // when reading backwards: the events of the block; the next one is the last element
    std::vector<Event> events;
  };
  void open(const std::string& name);
  void shift();
  void index(std::uint32_t file, const std::string& name);
  bool load(Lane& lane);
  bool decode(Lane& lane);
  bool advance(Lane& lane);
  void faulty(const Lane& lane);
  std::int64_t ns_of(std::uint32_t file, std::uint64_t units) const noexcept;
  std::uint32_t process_of(std::uint32_t file, std::int64_t id, std::string_view path);
  std::uint32_t place_of(std::uint32_t file, std::uint64_t number);

  struct Open {
    int fd;
    std::string name;
    double slope;
    std::int64_t shift;  // added to the times of the lane's events, in ns
  };
  std::vector<Open> files_;
  std::vector<Lane> lanes_;
  std::vector<Lane*> heap_;
  std::vector<std::unordered_map<std::int64_t, std::uint32_t>> process_numbers_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> place_numbers_;
  bool backwards_ = false, taken_ = false;
  std::int64_t first_ = 0;
};

}  // namespace weft::py::flight_file
