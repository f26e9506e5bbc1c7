// The definitions of wire/shared.hpp.
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
  Known& k = known();
  const std::lock_guard g(k.lock);
  if (const auto it = k.all.find(id_); it != k.all.end() && it->second.expired()) k.all.erase(it);
}

std::shared_ptr<const Sealed> Sealed::copy_of(Bytes b) {
  Descriptor fd;
  const std::size_t size = std::max<std::size_t>(b.size(), 1);
  int error;
  {
    Segment there;
    error = Segment::try_make(size, Segment::Peers::write, there, fd);
    if (error == 0 && !b.empty()) std::memcpy(there.data(), b.data(), b.size());
  }  // No program has the memory mapped for writing any more, so it can be sealed.
  if (error == 0 && ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0) error = errno;
  if (error == EBUSY)
    weft::detail::bad_use(
        "a shared array cannot be sealed: another thread has just forked a program that still maps "
        "it; try again");
  Segment memory;
  if (error != 0) {
    if (!Segment::refused(error)) Segment::no_room(size, error);
    fd = {};
    memory = Segment::alone(b, size);  // The array has no descriptor, so links send its bytes.
  } else if (const char* wrong = Segment::map(fd, size, Segment::Peers::read, memory)) {
    weft::detail::bad_use(wrong);
  }
  const std::uint64_t id = Space::random();
  const std::shared_ptr<const Sealed> made(
      new Sealed(std::move(memory), std::move(fd), id, b.size()));
  Known& k = known();
  const std::lock_guard g(k.lock);
  k.all[id] = made;
  return made;
}

Sealed::Own::~Own() {
  if (mapped_ != 0) ::munmap(bytes_.data(), mapped_);
}

std::unique_ptr<Sealed::Own> Sealed::to_change() const {
  std::unique_ptr<Own> own(new Own);
  // A page that is never written to occupies no memory, so no memory is reserved in advance.
  void* const at = ::mmap(nullptr, memory_.size(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_NORESERVE, descriptor_.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  own->bytes_ = {static_cast<std::byte*>(at), length_};
  own->mapped_ = memory_.size();
  return own;
}

void Sealed::put(Buffer& out, Carrier& by) const {
  struct stat st {};
  const int fd = by.passes() && ::fstat(descriptor_.get(), &st) == 0
                     ? ::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 3)
                     : -1;
  const Description d{fd < 0 ? kBytes : kPassed, id_, length_, st.st_ino};
  detail::put(out, std::as_bytes(std::span(&d, 1)));
  if (fd >= 0)
    by.pass(fd);
  else
    detail::put(out, bytes());
}

std::shared_ptr<const Sealed> Sealed::get(Bytes in, Carrier& by) {
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
  if (d.mark != kPassed || !in.empty()) return nullptr;
  for (int fd; (fd = by.passed()) >= 0;)
    // If there is no match, the descriptor belongs to a frame that was not sent after all.
    if (auto s = matching(d, Descriptor(fd), by)) return s;
  return nullptr;
}

std::shared_ptr<const Sealed> Sealed::matching(const Description& d, Descriptor fd, Carrier& by) {
  struct stat st;
  if (::fstat(fd.get(), &st) != 0 || st.st_ino != d.inode ||
      d.length > static_cast<std::uint64_t>(st.st_size))
    return nullptr;
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_WRITE)) return nullptr;
  Known& k = known();
  {
    const std::lock_guard g(k.lock);
    const auto it = k.all.find(d.id);
    if (const auto here = it == k.all.end() ? nullptr : it->second.lock()) {
      struct stat ours;
      if (::fstat(here->descriptor_.get(), &ours) == 0 && ours.st_ino == st.st_ino &&
          here->length_ == d.length)
        return here;
    }
  }
  Segment memory;
  if (const char* const wrong =
          Segment::map(fd, static_cast<std::size_t>(st.st_size), Segment::Peers::read, memory)) {
    if (wrong == Segment::kNoRoom) by.no_room();
    return nullptr;
  }
  const std::shared_ptr<const Sealed> made(
      new Sealed(std::move(memory), std::move(fd), d.id, d.length));
  const std::lock_guard g(k.lock);
  k.all[d.id] = made;
  return made;
}

}  // namespace weft::inline WEFT_ABI::wire
