// Reads files of the flight recorder. flight_file.hpp has the invariants.
#include "watching/flight_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace weft::py::flight_file {

namespace {

constexpr std::uint32_t kLongest = 1 << 20;  // the maximum size of a piece in bytes

std::size_t read_at(int fd, std::uint64_t at, unsigned char* to, std::size_t n) {
  std::size_t got = 0;
  while (got < n) {
    const ssize_t r = pread(fd, to + got, n - got, static_cast<off_t>(at + got));
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) break;
    got += static_cast<std::size_t>(r);
  }
  return got;
}
bool take_text(const unsigned char*& p, const unsigned char* end, std::string_view& s) noexcept {
  std::uint64_t n;
  if (!(p = form::take_varint(p, end, n)) || n > static_cast<std::uint64_t>(end - p)) return false;
  s = {reinterpret_cast<const char*>(p), static_cast<std::size_t>(n)};
  p += n;
  return true;
}
bool take_head(const unsigned char* p, const unsigned char* end, Head& h) {
  for (std::uint64_t* v : {&h.units0, &h.ns0, &h.units1, &h.ns1, &h.system, &h.pid, &h.dropped})
    if (!(p = form::take_varint(p, end, *v))) return false;
  for (std::string* s : {&h.host, &h.program, &h.version}) {
    std::string_view v;
    if (!take_text(p, end, v)) return false;
    *s = v;
  }
  return true;
}

bool take_clock(const unsigned char* p, const unsigned char* end, Head& h) {
  std::uint64_t within, difference;
  std::string_view reference;
  if (p == end) {
    h.within = Head::kUnknown;
    return true;
  }
  if (!(p = form::take_varint(p, end, within)) || !(p = form::take_varint(p, end, difference)) ||
      !take_text(p, end, reference))
    return false;
  h.within = static_cast<std::int64_t>(within & (~0ull >> 2));
  h.difference = std::clamp<std::int64_t>(form::unzigzag(difference), -(1ll << 61), 1ll << 61);
  h.reference = reference;
  return true;
}

}  // namespace

Files::Files(const std::vector<std::string>& names) {
  try {
    for (const std::string& name : names) open(name);
    for (std::uint32_t i = 0; i < files_.size(); ++i) index(i, names[i]);
  } catch (...) {
    for (const Open& f : files_) close(f.fd);
    throw;
  }
  shift();
  rewind(false);
  if (!heap_.empty()) first_ = heap_.front()->event.t;
}
Files::~Files() {
  for (const Open& f : files_) close(f.fd);
}

// Computes the shift of each file, which is added to the file's times. If the clocks of all files
// were compared with one machine's steady clock, that clock is used. Otherwise the clocks of the
// systems are used.
void Files::shift() {
  const Head* one = nullptr;
  bool several = false;
  for (const Head& h : heads) {
    if (h.within == Head::kUnknown) continue;
    if (!one) one = &h;
    several = several || h.clock_of() != one->clock_of();
  }
  const auto system_of = [](const Head& h) {
    return static_cast<std::int64_t>((h.system - h.ns1) & (~0ull >> 2));
  };
  std::int64_t latest = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Head& h = heads[i];
    if (h.within == Head::kUnknown) continue;
    files_[i].shift = h.difference;
    if (several) {
      const auto it = std::find_if(heads.begin(), heads.end(), [&](const Head& other) {
        return other.reference.empty() && other.host == h.reference &&
               other.within != Head::kUnknown;
      });
      files_[i].shift =
          h.reference.empty() || it == heads.end() ? system_of(h) : h.difference + system_of(*it);
    }
    latest = std::max(latest, static_cast<std::int64_t>(h.ns1 & (~0ull >> 2)) + files_[i].shift);
  }
  // A file whose clock was never compared is assumed to end when the other files end.
  for (std::size_t i = 0; one && i < heads.size(); ++i)
    if (heads[i].within == Head::kUnknown)
      files_[i].shift = latest - static_cast<std::int64_t>(heads[i].ns1 & (~0ull >> 2));
}

void Files::open(const std::string& name) {
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw NoTrace("cannot read " + name + ": " + std::strerror(errno));
  files_.push_back({fd, name, 1, 0});
}

void Files::index(std::uint32_t file, const std::string& name) {
  Open& f = files_[file];
  unsigned char start[sizeof form::kMagic];
  const std::size_t n = read_at(f.fd, 0, start, sizeof start);
  if (n == 0) throw NoTrace(name + " is empty: nothing was recorded");
  if (std::memcmp(start, form::kMagic, std::min(n, sizeof start - 1)) != 0)
    throw NoTrace(name + " is no trace; make one by: weft run FILE --trace OUT, or --flight OUT");
  if (n < sizeof start) throw NoTrace(name + " is cut off before its first event");
  if (start[7] != form::kMagic[7])
    throw NoTrace(name + " is of version " + std::to_string(start[7]) +
                  " of the format, and this Weft reads version " + std::to_string(form::kMagic[7]) +
                  ": read it with the Weft that wrote it");
  heads.emplace_back();
  Head& head = heads.back();
  std::unordered_map<std::uint64_t, std::size_t> lanes;
  bool headed = false, whole = false;
  std::uint64_t at = sizeof start;
  std::vector<unsigned char> bytes;
  for (;;) {
    unsigned char piece[form::kPieceHead];
    if (read_at(f.fd, at, piece, sizeof piece) < sizeof piece) break;
    const std::uint32_t size =
        piece[1] | piece[2] << 8 | piece[3] << 16 | static_cast<std::uint32_t>(piece[4]) << 24;
    at += sizeof piece;
    if (size > kLongest) break;
    if (piece[0] == 'Z') {
      whole = true;
      break;
    }
    bytes.resize(piece[0] == 'H' || piece[0] == 'C' ? size : std::min(size, 20u));
    const std::size_t got = read_at(f.fd, at, bytes.data(), bytes.size());
    const unsigned char* const end = bytes.data() + got;
    if (piece[0] == 'H') {
      if (got < size || !take_head(bytes.data(), end, head)) break;
      headed = true;
    } else if (piece[0] == 'C' && headed) {
      if (got < size || !take_clock(bytes.data(), end, head)) break;
    } else if (piece[0] == 'B' && headed) {
      std::uint64_t lane, unused;
      const unsigned char* p = form::take_varint(bytes.data(), end, lane);
      if (!p || !form::take_varint(p, end, unused)) break;
      const auto [it, fresh] = lanes.try_emplace(lane, lanes_.size());
      if (fresh) {
        if (lanes.size() > 4096) break;
        lanes_.emplace_back();
        lanes_.back().file = file;
      }
      lanes_[it->second].blocks.push_back({at, size});
    } else if (!headed || piece[0] < 'A' || piece[0] > 'Z') {
      // The bytes are not a piece of this format. (A piece with an unknown letter comes from a
      // later version, and is skipped.)
      break;
    }
    at += size;
  }
  if (!headed) throw NoTrace(name + " is cut off before its first event");
  if (!whole && fault.empty()) fault = name + " is cut off: what is before that is shown";
  const double units = static_cast<double>(head.units1) - static_cast<double>(head.units0);
  const double ns = static_cast<double>(head.ns1) - static_cast<double>(head.ns0);
  f.slope = units > 0 && ns > 0 && ns / units < 1e6 ? ns / units : 1;
  process_numbers_.emplace_back();
  place_numbers_.emplace_back();
}

std::int64_t Files::ns_of(std::uint32_t file, std::uint64_t units) const noexcept {
  const Head& h = heads[file];
  const double t =
      static_cast<double>(static_cast<std::int64_t>(units - h.units0)) * files_[file].slope +
      static_cast<double>(h.ns0 & (~0ull >> 2));
  return static_cast<std::int64_t>(std::clamp(t, 0.0, 4e18)) + files_[file].shift;
}

std::uint32_t Files::process_of(std::uint32_t file, std::int64_t id, std::string_view path) {
  const auto [it, fresh] =
      process_numbers_[file].try_emplace(id, static_cast<std::uint32_t>(processes.size()));
  if (fresh) processes.push_back({std::string(path), id, file});
  // A path gets an index when there is a second process of its name. If the events are read
  // backwards, the first name that is found is the final name.
  if (!fresh && !backwards_) processes[it->second].path = path;
  return it->second;
}
std::uint32_t Files::place_of(std::uint32_t file, std::uint64_t number) {
  const auto [it, fresh] =
      place_numbers_[file].try_emplace(number, static_cast<std::uint32_t>(places.size()));
  if (fresh) places.push_back({"", file});
  return it->second;
}

void Files::rewind(bool backwards) {
  backwards_ = backwards;
  taken_ = false;
  heap_.clear();
  for (Lane& lane : lanes_) {
    lane.block = backwards ? lane.blocks.size() : 0;
    lane.p = lane.end = nullptr;
    lane.events.clear();
    if (advance(lane)) heap_.push_back(&lane);
  }
  std::make_heap(heap_.begin(), heap_.end(), [this](const Lane* a, const Lane* b) {
    return backwards_ ? a->event.t < b->event.t : a->event.t > b->event.t;
  });
}

const Event* Files::next() {
  const auto order = [this](const Lane* a, const Lane* b) {
    return backwards_ ? a->event.t < b->event.t : a->event.t > b->event.t;
  };
  if (taken_ && !heap_.empty()) {
    Lane* const lane = heap_.front();
    if (heap_.size() == 1) {
      if (!advance(*lane)) heap_.clear();
    } else {
      std::pop_heap(heap_.begin(), heap_.end(), order);
      if (advance(*lane))
        std::push_heap(heap_.begin(), heap_.end(), order);
      else
        heap_.pop_back();
    }
  }
  taken_ = true;
  return heap_.empty() ? nullptr : &heap_.front()->event;
}

void Files::faulty(const Lane& lane) {
  if (fault.empty()) fault = files_[lane.file].name + " is damaged: what is before that is shown";
}

// Reads the lane's next block. Returns false if there is none.
bool Files::load(Lane& lane) {
  if (backwards_ ? lane.block == 0 : lane.block == lane.blocks.size()) return false;
  const Where where = lane.blocks[backwards_ ? --lane.block : lane.block++];
  lane.bytes.resize(where.size);
  const std::size_t got = read_at(files_[lane.file].fd, where.at, lane.bytes.data(), where.size);
  lane.p = lane.bytes.data();
  lane.end = lane.p + got;
  std::uint64_t number;
  lane.p = form::take_varint(lane.p, lane.end, number);
  if (lane.p) lane.p = form::take_varint(lane.p, lane.end, lane.units);
  if (!lane.p) lane.p = lane.end;
  lane.processes.clear();
  lane.places.clear();
  lane.other = {};
  return true;
}

// Reads the lane's next event from its block. Returns false at the end, at a fault, and where the
// block is cut off.
bool Files::decode(Lane& lane) {
  Event& e = lane.event;
  const unsigned char* p = lane.p;
  const unsigned char* const end = lane.end;
  std::uint64_t v = 0;
  const auto number = [&](std::uint64_t& to) {
    return (p = form::take_varint(p, end, to)) != nullptr;
  };
  const auto stamped = [&] {
    if (!number(v)) return false;
    lane.units += v;
    if (!number(v) || v >= lane.processes.size()) return false;
    e.t = ns_of(lane.file, lane.units);
    e.process = lane.processes[static_cast<std::size_t>(v)];
    return true;
  };
  const auto placed = [&] {
    if (!number(v) || v > lane.places.size()) return false;
    e.place = v ? lane.places[static_cast<std::size_t>(v - 1)] : kNone;
    return true;
  };
  const auto fails = [&] {
    // A record that runs out of bytes is cut off together with its file, which index() has noticed.
    if (p || lane.end == lane.bytes.data() + lane.bytes.size()) faulty(lane);
    lane.p = lane.end;
    return false;
  };
  while (p < end) {
    const std::uint8_t tag = *p++;
    if (tag < 0x80) {
      e = Event{};
      e.what = form::kOther;
      const std::uint8_t op = tag & form::kOpBits;
      const std::uint8_t outcome = (tag >> form::kOutcomeShift) & 3;
      if (op >= form::kOps || outcome > 2) return fails();
      e.op = static_cast<form::Op>(op);
      e.outcome = static_cast<form::Outcome>(outcome);
      if (!stamped() || !placed()) return fails();
      const bool selects = e.op == form::Op::select_input || e.op == form::Op::select_output ||
                           e.op == form::Op::select_other;
      if (selects || e.outcome == form::Outcome::ended) {
        if (!number(v)) return fails();
        if (e.outcome == form::Outcome::ended) {
          e.why = static_cast<form::Why>(v & 3);
          v >>= 2;
        }
        if (selects && v && v < kNone) e.guard = static_cast<std::uint32_t>(v - 1);
      }
      if (tag & form::kWaited) {
        if (!number(v)) return fails();
        e.parked = true;
        e.waited = static_cast<std::int64_t>(
            std::min(static_cast<double>(v) * files_[lane.file].slope, static_cast<double>(e.t)));
      }
      if (e.place != kNone && e.outcome == form::Outcome::commit) {
        Place& place = places[e.place];
        e.number = e.writes() ? place.written++ : place.read++;
      }
      if (e.op == form::Op::other) e.text = lane.other;
      lane.p = p;
      return true;
    }
    switch (tag) {
      case form::kProcess: {
        std::string_view path;
        if (!number(v) || !take_text(p, end, path)) return fails();
        lane.processes.push_back(process_of(lane.file, form::unzigzag(v), path));
        continue;
      }
      case form::kPlace: {
        std::uint64_t id, flags, read, written;
        std::string_view name;
        if (!number(id) || !number(flags) || !number(read) || !number(written) ||
            !take_text(p, end, name))
          return fails();
        const std::uint32_t i = place_of(lane.file, id);
        lane.places.push_back(i);
        Place& place = places[i];
        if (place.name.empty()) place.name = name;
        place.flags |= flags;
        place.read = read;
        place.written = written;
        continue;
      }
      case form::kOther:
        if (!take_text(p, end, lane.other)) return fails();
        continue;
      case form::kStart:
      case form::kEnd:
      case form::kAway:
      case form::kWaits: {
        e = Event{};
        e.what = tag;
        if (!stamped()) return fails();
        if (tag == form::kEnd) {
          if (p == end) return p = nullptr, fails();
          e.how = *p++;
        }
        if (tag == form::kWaits) {
          if (p == end) return p = nullptr, fails();
          if (*p >= form::kOps) return fails();
          e.op = static_cast<form::Op>(*p++);
          if (!placed() || !number(v)) return fails();
          e.parked = true;
          e.waited = static_cast<std::int64_t>(
              std::min(static_cast<double>(v) * files_[lane.file].slope, static_cast<double>(e.t)));
          if (e.op == form::Op::other) e.text = lane.other;
        } else if (tag != form::kStart && !take_text(p, end, e.text)) {
          return fails();
        }
        lane.p = p;
        return true;
      }
      default: return fails();
    }
  }
  return false;
}

bool Files::advance(Lane& lane) {
  if (!backwards_) {
    while (!decode(lane))
      if (!load(lane)) return false;
    return true;
  }
  while (lane.events.empty()) {
    if (!load(lane)) return false;
    while (decode(lane)) lane.events.push_back(lane.event);
  }
  lane.event = lane.events.back();
  lane.events.pop_back();
  return true;
}

}  // namespace weft::py::flight_file
