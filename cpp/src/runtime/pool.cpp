// The definitions of runtime/pool.hpp.
#include <weft/runtime/pool.hpp>

#if !defined(WEFT_POOL_HEADER)
namespace weft::inline WEFT_ABI::runtime {

void* Pool::cut(Class& c, std::size_t n) {
  std::size_t size = c.packed ? rounded(n) : lined(n);
  if (c.left < size) {
    c.packed = c.at != nullptr;
    size = c.packed ? rounded(n) : lined(n);
    c.lock.unlock();
    char* const slab = new_slab();
    c.lock.lock();
    c.at = slab;  // If another thread has set a slab meanwhile, the rest of that slab is abandoned.
    c.left = kSlab;
  }
  void* p = c.at;
  c.at += size;
  c.left -= size;
  c.lock.unlock();
  return p;
}

char* Pool::new_slab() {
  PoolSlabs& s = slabs_;
  for (;;) {
    s.lock.lock();
    if (s.left > 0) {
      char* const slab = s.at;
      s.at += kSlab;
      s.left -= kSlab;
      s.lock.unlock();
      return slab;
    }
    char* const used_up = std::exchange(s.begin, nullptr);
    s.lock.unlock();
    if (used_up) make_huge(used_up, kHugePage);
    char* const chunk = static_cast<char*>(::operator new(kHugePage, std::align_val_t(kHugePage)));
    s.lock.lock();
    // If another thread has set a chunk meanwhile, the rest of that chunk is abandoned.
    s.begin = s.at = chunk;
    s.left = kHugePage;
    s.lock.unlock();
  }
}

}  // namespace weft::inline WEFT_ABI::runtime
#endif
