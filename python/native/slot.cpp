// Segments that are kept for the next value: those made here, and those of others that are mapped here already.
#include "slot.hpp"

#include <deque>
#include <mutex>
#include <random>

namespace weft::py {

class Slot::Pool {
 public:
  struct Made {
    std::shared_ptr<Piece> piece;
    wire::Descriptor descriptor;
  };
  static constexpr std::size_t kPieces = 16, kBytes = std::size_t{64} << 20, kLargest = kBytes / 2;

  std::mutex lock;
  std::deque<Made> made;                     // the oldest first
  std::deque<std::shared_ptr<Piece>> known;  // of others
  std::atomic<std::size_t> open{0};

  // With the lock.
  template <class Of, class Size>
  static void trim(std::deque<Of>& all, Size&& size) {
    std::size_t bytes = 0;
    for (const Of& o : all) bytes += size(o);
    while (all.size() > kPieces || bytes > kBytes) {
      bytes -= size(all.front());
      all.pop_front();
    }
  }
};
Slot::Pool& Slot::pool() {
  static Pool* p = new Pool;  // never destroyed: values may outlive the interpreter
  return *p;
}
void Slot::forget() noexcept {
  Pool& p = pool();
  new (&p.lock) std::mutex;  // another thread of the parent may have held it
  new auto(std::move(p.made));
  p.made.clear();
  p.open.store(0);
  ++forks;
}

Slot::Slot(std::shared_ptr<Piece> p, wire::Descriptor d, std::size_t length) noexcept
    : piece_(std::move(p)), descriptor_(std::move(d)), length_(length), fork_(forks) {
  pool().open.fetch_add(1);
}
Slot::~Slot() {
  settle();
  if (fork_ == forks) piece_->head().shares.fetch_sub(1, std::memory_order_release);
}
void Slot::settle() noexcept {
  if (descriptor_.get() < 0 || fork_ != forks) return;
  descriptor_ = wire::Descriptor();
  pool().open.fetch_sub(1);
}
bool Slot::crowded() noexcept { return pool().open.load() > kOpen; }
std::byte* Slot::data() const noexcept { return piece_->memory.data() + kHead; }

std::unique_ptr<Slot> Slot::make(std::size_t length) noexcept try {
  Pool& p = pool();
  if (p.open.load() >= kOpen) return nullptr;
  const std::size_t wanted = kHead + length;
  const std::lock_guard g(p.lock);
  for (auto it = p.made.begin(); it != p.made.end(); ++it) {
    const std::size_t size = it->piece->memory.size();
    if (size < wanted || size / 4 > wanted || it->piece->head().shares.load(std::memory_order_acquire) != 0) continue;
    wire::Descriptor d(::fcntl(it->descriptor.get(), F_DUPFD_CLOEXEC, 3));
    if (d.get() < 0) return nullptr;
    it->piece->head().shares.store(1, std::memory_order_relaxed);
    std::unique_ptr<Slot> s(new Slot(it->piece, std::move(d), length));
    std::rotate(it, it + 1, p.made.end());
    return s;
  }
  constexpr std::size_t kGrain = std::size_t{64} << 10;
  wire::Descriptor mine;
  auto piece = std::make_shared<Piece>();
  piece->memory = wire::Segment::make((wanted + kGrain - 1) / kGrain * kGrain, wire::Segment::Peers::write, mine);
  static thread_local std::mt19937_64 source{std::random_device{}()};
  piece->id = source() ^ static_cast<std::uint64_t>(::getpid()) << 32;
  new (piece->memory.data()) Head{{1}, piece->id};
  wire::Descriptor d(::fcntl(mine.get(), F_DUPFD_CLOEXEC, 3));
  if (d.get() < 0) return nullptr;
  std::unique_ptr<Slot> s(new Slot(piece, std::move(d), length));
  if (piece->memory.size() <= Pool::kLargest) {
    p.made.push_back({std::move(piece), std::move(mine)});
    Pool::trim(p.made, [](const Pool::Made& m) { return m.piece->memory.size(); });
  }
  return s;
} catch (const std::exception&) {
  return nullptr;
}

int Slot::lend(wire::Buffer& description) const {
  struct stat st;
  if (descriptor_.get() < 0 || ::fstat(descriptor_.get(), &st) != 0) return -1;
  const int fd = ::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return -1;
  const Description d{1, piece_->id, piece_->memory.size(), length_, st.st_ino};
  description.resize(kDescribed);
  std::memcpy(description.data(), &d, kDescribed);
  piece_->head().shares.fetch_add(1, std::memory_order_relaxed);
  return fd;
}

std::unique_ptr<Slot> Slot::matching(const Description& d, wire::Descriptor fd) {
  struct stat st;
  if (::fstat(fd.get(), &st) != 0 || st.st_ino != d.inode || d.size < kHead || d.length > d.size - kHead) return nullptr;
  Pool& p = pool();
  const std::lock_guard g(p.lock);
  for (const auto& all = p.known; const std::shared_ptr<Piece>& k : all)
    if (k->id == d.id && k->memory.size() == d.size) return std::unique_ptr<Slot>(new Slot(k, std::move(fd), d.length));
  auto piece = std::make_shared<Piece>();
  if (wire::Segment::map(fd, d.size, wire::Segment::Peers::write, piece->memory) || piece->head().id != d.id) return nullptr;
  piece->id = d.id;
  std::unique_ptr<Slot> s(new Slot(piece, std::move(fd), d.length));
  if (d.size <= Pool::kLargest) {
    p.known.push_back(std::move(piece));
    Pool::trim(p.known, [](const std::shared_ptr<Piece>& k) { return k->memory.size(); });
  }
  return s;
}

}  // namespace weft::py
