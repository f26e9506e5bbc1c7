// The definitions of wire/shared.hpp.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <mutex>
#include <unordered_map>

#include <weft/wire/shared.hpp>
#include <weft/wire/space.hpp>

namespace weft::inline WEFT_ABI::wire {

struct Sealed::Known {
  std::mutex lock;
  std::unordered_map<std::uint64_t, std::weak_ptr<const Sealed>> all;  // the key is the array's id
};
Sealed::Known& Sealed::known() {
  static Known* k = new Known;  // never destroyed: arrays can outlive the program's statics
  return *k;
}
Sealed::~Sealed() {
  if (head_ && maker_ == ::getpid()) shares(head_).fetch_sub(1, std::memory_order_seq_cst);
  Known& k = known();
  const std::lock_guard g(k.lock);
  if (const auto it = k.all.find(id_); it != k.all.end() && it->second.expired()) k.all.erase(it);
}

std::shared_ptr<const Sealed> Sealed::noted(std::shared_ptr<const Sealed> made) {
  Known& k = known();
  const std::lock_guard g(k.lock);
  k.all[made->id_] = made;
  return made;
}

std::shared_ptr<const Sealed> Sealed::copy_of(Bytes b) {
  Descriptor fd;
  const std::size_t size = std::max<std::size_t>(b.size(), 1);
  int error = Segment::try_fill(b, 0, fd);
  if (error == 0 && ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0) error = errno;
  Segment memory;
  if (error != 0) {
    if (!Segment::refused(error)) Segment::no_room(size, error);
    fd = {};
    memory = Segment::alone(b, size);  // The array has no descriptor, so links send its bytes.
  } else if (const char* wrong = Segment::map(fd, size, Segment::Peers::read, memory)) {
    weft::detail::bad_use(wrong);
  }
  return noted(std::shared_ptr<const Sealed>(
      new Sealed(std::move(memory), std::move(fd), Space::random(), b.size())));
}

// --- memory that is used again -------------------------------------------------------------------

struct Sealed::Memory {
  Descriptor descriptor;
  Segment head;
  std::size_t room = 0;  // the bytes behind the head
};

class Sealed::Pool {
 public:
  // Returns memory for `wanted` bytes of which nobody has a share; null if there is none.
  std::shared_ptr<Memory> take(std::size_t wanted) {
    const std::lock_guard g(lock_);
    mine();
    for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
      const std::shared_ptr<Memory> m = *it;
      std::uint64_t nobody = 0;
      if (m->room < wanted || m->room / 4 > wanted ||
          !shares(m->head).compare_exchange_strong(nobody, 1, std::memory_order_seq_cst))
        continue;
      std::rotate(it.base() - 1, it.base(), all_.end());
      return m;
    }
    return nullptr;
  }
  void keep(std::shared_ptr<Memory> m) {
    if (m->room > kMaxKept) return;
    const std::lock_guard g(lock_);
    mine();
    std::size_t bytes = m->room;
    for (const auto& one : all_) bytes += one->room;
    all_.push_back(std::move(m));
    for (; bytes > kMaxKept || all_.size() > kMaxPieces; all_.pop_front())
      bytes -= all_.front()->room;
  }
  void drop(const std::shared_ptr<Memory>& m) noexcept {
    const std::lock_guard g(lock_);
    std::erase(all_, m);
  }
  void clear() noexcept {
    const std::lock_guard g(lock_);
    all_.clear();
  }

 private:
  static constexpr std::size_t kMaxPieces = 16;
  // The child of a fork does not write to the memory of its parent.
  void mine() noexcept {
    if (maker_ == ::getpid()) return;
    all_.clear();
    maker_ = ::getpid();
  }
  std::mutex lock_;
  std::deque<std::shared_ptr<Memory>> all_;  // sorted by use; the last element was used last
  pid_t maker_ = ::getpid();
};
Sealed::Pool& Sealed::pool() {
  static Pool* p = new Pool;  // never destroyed: arrays can outlive the program's statics
  return *p;
}
void Sealed::free_unused() noexcept { pool().clear(); }

std::shared_ptr<const Sealed> Sealed::copy_again(Bytes b) {
  std::shared_ptr<Memory> m = pool().take(b.size());
  int error = 0;
  const bool is_new = !m;
  if (is_new) {
    m = std::make_shared<Memory>();
    m->room = b.size();
    error = Segment::try_fill(b, kHead, m->descriptor);
    if (error == 0 && !Segment::map_front(m->descriptor, kHead, m->head)) error = ENOMEM;
    if (error == 0) new (m->head.data()) Head{{1}};
  } else if ((error = Segment::refill(m->descriptor, b, kHead)) != 0) {
    pool().drop(m);
  }
  Segment memory, head;
  Descriptor fd(error == 0 ? ::fcntl(m->descriptor.get(), F_DUPFD_CLOEXEC, 3) : -1);
  if (error == 0 && (fd.get() < 0 || !Segment::map_front(fd, kHead, head))) error = errno;
  if (error != 0 && Segment::refused(error)) return copy_of(b);
  if (error != 0) Segment::no_room(b.size(), error);
  if (const char* wrong = Segment::map(fd, kHead + m->room, Segment::Peers::read, memory))
    weft::detail::bad_use(wrong);
  std::shared_ptr<const Sealed> made(
      new Sealed(std::move(memory), std::move(fd), Space::random(), b.size(), std::move(head)));
  if (is_new) pool().keep(std::move(m));
  return noted(std::move(made));
}

Sealed::Own::~Own() {
  if (mapped_ != 0) ::munmap(bytes_.data(), mapped_);
}

// A page that was written to belongs to this program alone, and the system shows it as a page of no
// file.
bool Sealed::Own::is_unchanged() const noexcept {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63, kSwapped = std::uint64_t{1} << 62,
                          kOfFile = std::uint64_t{1} << 61;
  const Descriptor pages(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes_.data()) / page;
  const std::size_t count = (mapped_ + page - 1) / page;
  std::uint64_t entries[512];
  for (std::size_t at = 0; at < count;) {
    const std::size_t n = std::min(count - at, std::size(entries));
    if (::pread(pages.get(), entries, 8 * n, static_cast<off_t>(8 * (first + at))) !=
        static_cast<ssize_t>(8 * n))
      return false;
    for (std::size_t i = 0; i < n; ++i)
      if ((entries[i] & kSwapped) || ((entries[i] & kPresent) && !(entries[i] & kOfFile)))
        return false;
    at += n;
  }
  return true;
}

std::unique_ptr<Sealed::Own> Sealed::to_change() const {
  std::unique_ptr<Own> own(new Own);
  // A page that is never written to occupies no memory, so no memory is reserved in advance.
  const std::size_t size = memory_.size() - front();
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                          descriptor_.get(), static_cast<off_t>(front()));
  if (at == MAP_FAILED) return nullptr;
  own->bytes_ = {static_cast<std::byte*>(at), length_};
  own->mapped_ = size;
  return own;
}

void Sealed::put(Buffer& out, Carrier& by) const {
  struct stat st {};
  const int fd = by.passes() && ::fstat(descriptor_.get(), &st) == 0
                     ? ::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 3)
                     : -1;
  // The share belongs to the receiver.
  if (fd >= 0 && head_) shares(head_).fetch_add(1, std::memory_order_seq_cst);
  const Description d{fd < 0 ? kBytes : head_ ? kAgain : kPassed, id_, length_, st.st_ino};
  detail::put(out, std::as_bytes(std::span(&d, 1)));
  if (fd >= 0)
    by.pass(fd);
  else
    detail::put(out, bytes());
}

std::shared_ptr<const Sealed> Sealed::get(Bytes in, Carrier& by, Accepts accepts) {
  Description d;
  if (in.size() < sizeof(d)) return nullptr;
  std::memcpy(&d, in.data(), sizeof(d));
  in = in.subspan(sizeof(d));
  if (d.mark == kBytes && d.length == in.size()) try {
      return copy_of(in);
    } catch (const BadUse&) {
      by.no_room();
      return nullptr;
    }
  const bool again = d.mark == kAgain && accepts == Accepts::trusting;
  if (!(d.mark == kPassed || again) || !in.empty()) return nullptr;
  for (int fd; (fd = by.passed()) >= 0;)
    // If there is no match, the descriptor belongs to a frame that was not sent after all.
    if (auto s = matching(d, Descriptor(fd), by)) return s;
  return nullptr;
}

std::shared_ptr<const Sealed> Sealed::matching(const Description& d, Descriptor fd, Carrier& by) {
  struct stat st;
  const bool again = d.mark == kAgain;
  const std::size_t front = again ? kHead : 0;
  if (::fstat(fd.get(), &st) != 0 || st.st_ino != d.inode ||
      static_cast<std::size_t>(st.st_size) < front ||
      d.length > static_cast<std::size_t>(st.st_size) - front)
    return nullptr;
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (!again && !(seals & F_SEAL_WRITE))) return nullptr;
  Known& k = known();
  {
    const std::lock_guard g(k.lock);
    const auto it = k.all.find(d.id);
    if (auto here = it == k.all.end() ? nullptr : it->second.lock()) {
      struct stat ours;
      if (::fstat(here->descriptor_.get(), &ours) == 0 && ours.st_ino == st.st_ino &&
          here->length_ == d.length && again == static_cast<bool>(here->head_)) {
        if (again) shares(here->head_).fetch_sub(1, std::memory_order_seq_cst);
        return here;
      }
    }
  }
  Segment memory, head;
  const char* const wrong =
      Segment::map(fd, static_cast<std::size_t>(st.st_size), Segment::Peers::read, memory);
  if (wrong == Segment::kNoRoom || (!wrong && again && !Segment::map_front(fd, kHead, head)))
    by.no_room();
  if (wrong || (again && !head)) return nullptr;
  return noted(std::shared_ptr<const Sealed>(
      new Sealed(std::move(memory), std::move(fd), d.id, d.length, std::move(head))));
}

}  // namespace weft::inline WEFT_ABI::wire
