// The definitions of wire/slot.hpp. Segments are kept for the next value: segments that this
// program has made, and segments of other programs that it has mapped.
#include <algorithm>
#include <deque>
#include <mutex>
#include <random>

#include <weft/prim.hpp>
#include <weft/wire/slot.hpp>
#include <weft/wire/traffic.hpp>

namespace weft::inline WEFT_ABI::wire {

class Slot::Pool {
 public:
  static constexpr std::size_t kPieces = 16, kBytes = std::size_t{64} << 20, kLargest = kBytes / 2;
  using Pieces = std::deque<std::shared_ptr<Piece>>;

  std::mutex lock;
  Pieces made;   // sorted by use; the last element was used last
  Pieces known;  // segments of other programs
  // Segments of other programs that need not be kept, but whose values might still be under way
  // over sessions up to number `until`.
  struct Leaving {
    std::shared_ptr<Piece> piece;
    std::uint64_t until;
  };
  std::deque<Leaving> leaving;
  // The names of this program's spaces, as other programs have written them into the heads of their
  // segments.
  std::vector<std::uint64_t> names;
  std::atomic<std::size_t> open{0};
  std::atomic<bool> any_leaving{false};

  // Removes the first segments while there are too many, or they have too many bytes, and calls
  // `gone` for each. Called with the lock held.
  template <class Gone>
  static void trim(Pieces& all, Gone&& gone) {
    std::size_t bytes = 0;
    for (const auto& p : all) bytes += p->memory.size();
    while (all.size() > kPieces || bytes > kBytes) {
      bytes -= all.front()->memory.size();
      gone(std::move(all.front()));
      all.pop_front();
    }
  }
  // Drops the leaving segments for which no session up to number `until` is open any more: shares
  // that are left in them belong to killed programs.
  void prune() {
    const std::uint64_t oldest = Traffic::oldest();
    std::erase_if(leaving, [oldest](const Leaving& l) {
      return l.piece->head().shares.load(std::memory_order_seq_cst) == 0 || l.until < oldest;
    });
    any_leaving.store(!leaving.empty());
  }
  void trim_known() {
    prune();
    trim(known, [this](std::shared_ptr<Piece> p) {
      for (auto& by : p->head().mapped_by)
        for (std::uint64_t name = by.load(std::memory_order_relaxed);
             const std::uint64_t mine : names)
          if (name == mine) by.compare_exchange_strong(name, 0, std::memory_order_seq_cst);
      if (p->head().shares.load(std::memory_order_seq_cst) != 0)
        leaving.push_back({std::move(p), Traffic::latest()}), any_leaving.store(true);
    });
  }
  std::shared_ptr<Piece> find(const Description& d) const {
    const auto is = [&](const Piece& p) { return p.id == d.id && p.memory.size() == d.size; };
    for (const auto& p : known)
      if (is(*p)) return p;
    for (const Leaving& l : leaving)
      if (is(*l.piece)) return l.piece;
    return nullptr;
  }
};
Slot::Pool& Slot::pool() {
  static Pool* p = new Pool;  // never destroyed: values can outlive the program's statics
  return *p;
}
void Slot::forget() noexcept {
  Pool& p = pool();
  new (&p.lock) std::mutex;  // Another thread of the parent might have held the lock.
  for (Pool::Pieces* all : {&p.made, &p.known}) {
    new auto(std::move(*all));
    all->clear();
  }
  new auto(std::move(p.leaving));
  p.leaving.clear();
  Traffic::forget();
  p.names.clear();
  p.open.store(0);
  ++forks;
}

void Slot::Piece::close() noexcept {
  if (descriptor.get() < 0) return;
  descriptor = Descriptor();
  pool().open.fetch_sub(1);
}
Slot::Piece::~Piece() { close(); }

Slot::Slot(std::shared_ptr<Piece> p, std::size_t length) noexcept
    : piece_(std::move(p)), length_(length), fork_(forks.load(std::memory_order_relaxed)) {}
Slot::~Slot() {
  if (fork_ != forks.load(std::memory_order_relaxed)) return;
  if (piece_->head().shares.fetch_sub(1, std::memory_order_seq_cst) != 1 ||
      !pool().any_leaving.load(std::memory_order_relaxed))
    return;
  const std::lock_guard g(pool().lock);
  pool().prune();
}
bool Slot::crowded() noexcept { return pool().open.load() > kOpen; }
bool Slot::is_roomy() noexcept { return pool().open.load() < kOpen / 2; }
bool Slot::is_alone() const noexcept {
  return fork_ == forks.load(std::memory_order_relaxed) &&
         piece_->head().shares.load(std::memory_order_seq_cst) == 1;
}
std::byte* Slot::data() const noexcept { return piece_->memory.data() + kHead; }

void Slot::close_if_crowded() noexcept {
  Pool& p = pool();
  if (fork_ != forks.load(std::memory_order_relaxed) || p.open.load() <= kOpen / 2) return;
  const std::lock_guard g(p.lock);
  if (std::find(p.made.begin(), p.made.end(), piece_) == p.made.end()) piece_->close();
}

std::unique_ptr<Slot> Slot::make(std::size_t length) noexcept try {
  Pool& p = pool();
  if (p.open.load() >= kOpen) return nullptr;
  const std::size_t wanted = kHead + length;
  const std::lock_guard g(p.lock);
  for (auto it = p.made.rbegin(); it != p.made.rend(); ++it) {
    // The segment that was used last is tried first: the peer has mapped it, and it is in the
    // caches.
    Head& head = (*it)->head();
    const std::size_t size = (*it)->memory.size();
    if (size < wanted || size / 4 > wanted || head.shares.load(std::memory_order_seq_cst) != 0)
      continue;
    if (std::none_of(std::begin(head.mapped_by), std::end(head.mapped_by),
                     [](const auto& by) { return by.load() == 0; }))
      // Some of the spaces that have mapped the segment might have ended; the others receive the
      // descriptor once more.
      for (auto& by : head.mapped_by) by.store(0);
    head.shares.store(1, std::memory_order_seq_cst);
    std::unique_ptr<Slot> s(new Slot(*it, length));
    std::rotate(it.base() - 1, it.base(), p.made.end());
    return s;
  }
  constexpr std::size_t kGrain = std::size_t{64} << 10;
  auto piece = std::make_shared<Piece>();
  piece->memory = Segment::make((wanted + kGrain - 1) / kGrain * kGrain, Segment::Peers::write,
                                piece->descriptor);
  p.open.fetch_add(1);
  static thread_local std::mt19937_64 source{std::random_device{}()};
  piece->id = source() ^ static_cast<std::uint64_t>(::getpid()) << 32;
  new (piece->memory.data()) Head{{1}, piece->id};
  std::unique_ptr<Slot> s(new Slot(piece, length));
  if (piece->memory.size() <= Pool::kLargest) {
    p.made.push_back(std::move(piece));
    Pool::trim(p.made, [](std::shared_ptr<Piece>) {});
  }
  return s;
} catch (const std::exception&) {
  return nullptr;
}

int Slot::lend(Buffer& description, std::uint64_t theirs) const {
  struct stat st {};
  Head& head = piece_->head();
  head.shares.fetch_add(1, std::memory_order_seq_cst);
  Description d{kKnown, piece_->id, piece_->memory.size(), length_, 0};
  int fd = kNone;
  if (std::none_of(std::begin(head.mapped_by), std::end(head.mapped_by),
                   [&](const auto& by) { return by.load() == theirs; })) {
    d.mark = kPassed;
    const Pool& p = pool();
    const std::lock_guard g(const_cast<std::mutex&>(p.lock));
    const int mine = piece_->descriptor.get();
    fd = mine < 0 || ::fstat(mine, &st) != 0 ? kNot : ::fcntl(mine, F_DUPFD_CLOEXEC, 3);
    d.inode = st.st_ino;
    if (fd < 0) {
      head.shares.fetch_sub(1, std::memory_order_seq_cst);
      return kNot;
    }
  }
  description.resize(kDescribed);
  std::memcpy(description.data(), &d, kDescribed);
  return fd;
}

std::unique_ptr<Slot> Slot::known(const Description& d) {
  Pool& p = pool();
  const std::lock_guard g(p.lock);
  std::shared_ptr<Piece> k = p.find(d);
  if (!k || d.length > d.size - kHead) return nullptr;
  return std::unique_ptr<Slot>(new Slot(std::move(k), d.length));
}
std::unique_ptr<Slot> Slot::matching(const Description& d, Descriptor fd, std::uint64_t mine,
                                     bool& no_room) {
  struct stat st;
  if (::fstat(fd.get(), &st) != 0 || st.st_ino != d.inode || d.size < kHead ||
      d.length > d.size - kHead)
    return nullptr;
  Pool& p = pool();
  const std::lock_guard g(p.lock);
  std::shared_ptr<Piece> piece = p.find(d);
  if (!piece) {
    piece = std::make_shared<Piece>();
    const char* const wrong = Segment::map(fd, d.size, Segment::Peers::write, piece->memory);
    no_room = wrong == Segment::kNoRoom;
    if (wrong || piece->head().id != d.id) return nullptr;
    piece->id = d.id;
    piece->descriptor = std::move(fd);
    p.open.fetch_add(1);
    if (d.size <= Pool::kLargest) {
      p.known.push_back(piece);
      p.trim_known();
    }
  }
  std::unique_ptr<Slot> s(new Slot(piece, d.length));
  if (std::find(p.known.begin(), p.known.end(), piece) == p.known.end()) return s;
  if (std::find(p.names.begin(), p.names.end(), mine) == p.names.end()) p.names.push_back(mine);
  auto& all = piece->head().mapped_by;
  if (std::any_of(std::begin(all), std::end(all),
                  [&](const auto& by) { return by.load() == mine; }))
    return s;
  for (auto& by : all)
    if (std::uint64_t nobody = 0;
        by.compare_exchange_strong(nobody, mine, std::memory_order_seq_cst))
      break;
  return s;
}

}  // namespace weft::inline WEFT_ABI::wire
