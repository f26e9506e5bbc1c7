// weft_mcu/drivers/flash_store.hpp: values by name in the flash chip that holds the program, which
// survive resets and power cuts (mcu/DRIVERS.md, rule M30). The files of littlefs hold the values.
//
//   channel of requests ──► serve() ──► carry_out() ──► littlefs ──► flash.h
//   channel of answers  ◄─────┘
//
// Invariants
//  1 Only processes of the scheduler call littlefs, one call at a time, so littlefs needs no lock.
//  2 Each value is a file that littlefs keeps within its directory, and each change of a value is
//    one commit to that directory. The power may fail at any write of the commit: littlefs finds
//    either the directory before the commit or the one after it.
//  3 littlefs makes a new file in a commit of its own, before the commit of its bytes. Therefore an
//    empty file is a key that has no value, and no value is empty.
#pragma once
#include <utility>

#include "flash.h"
#include "lfs.h"
#include "weft_mcu/csp_scheduler.hpp"

namespace weft::inline WEFT_ABI::mcu {

enum class StoreOp : std::uint8_t { get, set, remove };

// The outcome of a request.
enum class StoreStatus : std::uint8_t {
  ok,
  absent,       // get, remove: the key has no value
  full,         // set: the flash has no room; the old value stays
  too_long,     // get: the value is longer than this store's Bytes; `count` says how long
  damaged,      // the flash did not keep what was programmed
  bad_request,  // the driver cannot carry out such a request; nothing was done
};

// A request, and its answer.
template <std::uint32_t Bytes = 32>
struct StoreRequest {
  StoreOp op;
  StoreStatus status;   // of the answer
  std::uint16_t count;  // bytes of the value: of a set, and of the answer to a get; 1 to Bytes
  char key[16];         // 1 to 15 characters from '!' to '~' except '/', the first not '.'; a 0
  std::uint8_t bytes[Bytes];
};

// Where a store lies in the flash.
struct StorePlace {
  std::uint32_t origin;   // of the first sector, in bytes from the beginning of the flash
  std::uint32_t sectors;  // of 4,096 bytes each; at least 4
};

template <std::uint32_t Bytes = 32>
class FlashStore {
  static_assert(Bytes > 0 && Bytes <= 512, "a value that littlefs keeps in a directory has 1 to "
                                           "512 bytes");

 public:
  using Request = StoreRequest<Bytes>;
  constexpr FlashStore(Scheduler& s, const StorePlace& place) noexcept
      : scheduler_(&s), place_(place) {}
  FlashStore(const FlashStore&) = delete;
  FlashStore& operator=(const FlashStore&) = delete;

  // Finds the store in the flash, or makes an empty one if there is none; formatted() says which.
  // Called once, from main or a process. Returns WEFT_OK; or WEFT_E_DRIVER if the place is not
  // possible, if a store of another size is there, if the flash is damaged, or if the
  // driver has been started already.
  int start() noexcept {
    if (started_) return WEFT_MISTAKE(WEFT_E_DRIVER, "a FlashStore is started twice");
    if (place_.origin % WEFT_FLASH_SECTOR != 0 || place_.origin > WEFT_FLASH_BYTES ||
        place_.sectors < 4 ||
        place_.sectors > (WEFT_FLASH_BYTES - place_.origin) / WEFT_FLASH_SECTOR ||
        place_.origin < weft_flash_taken())
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "a place of a FlashStore that does not begin with a sector, that has "
                          "fewer than 4 sectors, that goes beyond the 2 MB of the flash, or where "
                          "the program is");
    configure();
    weft_flash_open();
    int e = lfs_mount(&fs_, &config_);
    if (e == LFS_ERR_CORRUPT) {  // littlefs finds none of its own
      formatted_ = true;
      e = lfs_format(&fs_, &config_);
      if (e == LFS_ERR_OK) e = lfs_mount(&fs_, &config_);
    }
    if (e == LFS_ERR_INVAL)
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "a FlashStore where one with another number of sectors is; start it with "
                          "that number, or erase its sectors first");
    started_ = e == LFS_ERR_OK;
    return started_ ? WEFT_OK : WEFT_E_DRIVER;
  }
  // Returns whether start() has made an empty store, because there was none.
  bool formatted() const noexcept { return formatted_; }

  // Starts a process that serves a pair of channels: for each request that it reads, it writes the
  // answer. The process ends when the requests have retired, or the answers have no readers. May
  // be called several times, from main or a process, after start(). Returns WEFT_OK; WEFT_E_ARENA
  // if the process finds no room in the arena (then both ends are dropped); or WEFT_E_DRIVER if it
  // is called before start().
  int connect(Reader<Request> requests, Writer<Request> answers) noexcept {
    if (!started_)
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "a FlashStore is connected before it is started; start() it first");
    return scheduler_->start(serve(*scheduler_, this, std::move(requests), std::move(answers)));
  }

 private:
  // littlefs requires that a cache is a power of two here, and a file is kept within a directory if
  // it fits into a cache. kUnit is the smallest number of bytes to program.
  static constexpr std::uint32_t kCache = Bytes <= 256 ? 256 : 512, kUnit = 16;

  static Process serve(Scheduler&, FlashStore* store, Reader<Request> in,
                       Writer<Request> out) noexcept {
    Request job;
    while (co_await in.read(job) == Status::ok) {
      job.status = store->carry_out(job);
      if (co_await out.write(job) != Status::ok) co_return;
    }
  }

  static bool well_formed(const Request& r) noexcept {
    std::uint32_t n = 0;
    for (; n < sizeof r.key && r.key[n] != 0; ++n)
      if (r.key[n] < '!' || r.key[n] > '~' || r.key[n] == '/') return false;
    if (n == 0 || n == sizeof r.key || r.key[0] == '.') return false;
    if (r.op == StoreOp::set) return r.count != 0 && r.count <= Bytes;
    return r.op == StoreOp::get || r.op == StoreOp::remove;
  }
  StoreStatus carry_out(Request& r) noexcept {
    if (!well_formed(r))
      return WEFT_MISTAKE(StoreStatus::bad_request,
                          "a request to a FlashStore with a key that is not 1 to 15 characters "
                          "without '/' and with no '.' at the begin, with an operation that does "
                          "not exist, or to set a value without bytes or with too many");
    if (r.op == StoreOp::set) return set(r);
    lfs_info info;
    if (const int e = lfs_stat(&fs_, r.key, &info); e != LFS_ERR_OK) return meaning(e);
    if (r.op == StoreOp::get) return get(r, info.size);
    const int e = lfs_remove(&fs_, r.key);
    return e == LFS_ERR_OK && info.size == 0 ? StoreStatus::absent : meaning(e);
  }
  StoreStatus get(Request& r, std::uint32_t size) noexcept {
    if (size == 0) return StoreStatus::absent;
    r.count = static_cast<std::uint16_t>(size);
    if (size > Bytes) return StoreStatus::too_long;
    const int e = with_file(r.key, LFS_O_RDONLY, [&](lfs_file_t* file) {
      return lfs_file_read(&fs_, file, r.bytes, size);
    });
    return meaning(e);
  }
  StoreStatus set(const Request& r) noexcept {
    const int e = with_file(r.key, LFS_O_WRONLY | LFS_O_CREAT | LFS_O_TRUNC, [&](lfs_file_t* file) {
      return lfs_file_write(&fs_, file, r.bytes, r.count);
    });
    return meaning(e);
  }
  // Opens the file, calls `use` for the open file, and closes it. Returns the first error
  // of littlefs, or LFS_ERR_OK. After an error in `use` the closing changes nothing in the flash.
  template <class Use>
  int with_file(const char* key, int flags, Use use) noexcept {
    lfs_file_t file;
    lfs_file_config how = {};
    how.buffer = file_cache_;
    if (const int e = lfs_file_opencfg(&fs_, &file, key, flags, &how); e != LFS_ERR_OK) return e;
    const lfs_ssize_t done = use(&file);
    const int closed = lfs_file_close(&fs_, &file);
    return done < 0 ? static_cast<int>(done) : closed;
  }
  static StoreStatus meaning(int error) noexcept {
    switch (error) {
      case LFS_ERR_OK: return StoreStatus::ok;
      case LFS_ERR_NOENT: return StoreStatus::absent;
      case LFS_ERR_NOSPC: return StoreStatus::full;
      default: return StoreStatus::damaged;
    }
  }

  // ---- the flash, as littlefs calls it ------------------------------------------------------------
  static std::uint32_t place(const lfs_config* c, lfs_block_t block, lfs_off_t at) noexcept {
    return static_cast<FlashStore*>(c->context)->place_.origin + block * WEFT_FLASH_SECTOR + at;
  }
  static int read(const lfs_config* c, lfs_block_t block, lfs_off_t at, void* to,
                  lfs_size_t count) noexcept {
    const std::uint8_t* const from = weft_flash_at(place(c, block, at));
    for (lfs_size_t i = 0; i < count; ++i) static_cast<std::uint8_t*>(to)[i] = from[i];
    return LFS_ERR_OK;
  }
  // Programs whole pages: around the bytes of littlefs they have 0xff, which changes nothing.
  static int program(const lfs_config* c, lfs_block_t block, lfs_off_t at, const void* from,
                     lfs_size_t count) noexcept {
    std::uint8_t page[WEFT_FLASH_PAGE];
    std::uint32_t to = place(c, block, at);
    const std::uint8_t* next = static_cast<const std::uint8_t*>(from);
    while (count != 0) {
      const std::uint32_t first = to % WEFT_FLASH_PAGE;
      std::uint32_t i = 0;
      for (; i < first; ++i) page[i] = 0xff;
      for (; i < WEFT_FLASH_PAGE && count != 0; ++i, --count) page[i] = *next++;
      const std::uint32_t end = to - first + i;
      for (; i < WEFT_FLASH_PAGE; ++i) page[i] = 0xff;
      weft_flash_program(to - first, page);
      to = end;
    }
    return LFS_ERR_OK;
  }
  static int erase(const lfs_config* c, lfs_block_t block) noexcept {
    weft_flash_erase(place(c, block, 0));
    return LFS_ERR_OK;
  }
  static int sync(const lfs_config*) noexcept { return LFS_ERR_OK; }

  void configure() noexcept {
    config_.context = this;
    config_.read = &read;
    config_.prog = &program;
    config_.erase = &erase;
    config_.sync = &sync;
    config_.read_size = config_.prog_size = kUnit;
    config_.block_size = WEFT_FLASH_SECTOR;
    config_.block_count = place_.sectors;
    config_.block_cycles = 500;
    config_.cache_size = kCache;
    config_.lookahead_size = sizeof lookahead_;
    config_.read_buffer = read_cache_;
    config_.prog_buffer = program_cache_;
    config_.lookahead_buffer = lookahead_;
    config_.name_max = sizeof Request::key - 1;
  }

  Scheduler* scheduler_;
  StorePlace place_;
  lfs_t fs_ = {};
  lfs_config config_ = {};
  bool started_ = false, formatted_ = false;
  alignas(4) std::uint8_t read_cache_[kCache] = {}, program_cache_[kCache] = {},
                          file_cache_[kCache] = {}, lookahead_[16] = {};
};

}  // namespace weft::mcu
