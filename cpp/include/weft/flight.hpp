// The flight recorder (rule 14.14) keeps the last waits of a program in a ring of bytes, and writes
// them to a file that `weft trace` reads.
//
//   weft::flight recorder("out.flight");   // in main, before run
//   weft::run(…);                          // the file is written when the recorder ends
//
// Invariants
//  1 Each thread writes to a lane of its own, without a lock.
//  2 The recorder records what an observer is notified of (runtime/observer.hpp): that a process
//    has waited, where it has committed, and that it has ended. Operations that did not wait are
//    not recorded.
#pragma once
#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "observe.hpp"
#include "runtime/flight.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {

namespace form = runtime::flight;

class Flight final : public runtime::Observer {
 public:
  explicit Flight(std::size_t size) : ring_(size), number_(++last_) {}

  void suspended(runtime::ProcessBase* p, const void* where, bool next) noexcept override {
    if (p && p->op) {
      const std::uint64_t now = form::Clock::now();
      slot(p->id).store(now << kIdBits | (p->id & kIdMask), std::memory_order_relaxed);
      if (next) here().now = now;
    } else if (!p && where) {
      ended();
    }
  }
  void resumes(runtime::ProcessBase& p, const void*) noexcept override {
    ThreadState& mine = here();
    const std::uint32_t id = p.id;
    mine.running = id;
    const std::uint64_t before = std::exchange(mine.now, 0);
    const runtime::OpKind* const kind = p.op;
    form::Lane& lane = mine.lane;
    lane.room();
    form::Known& me = lane.process(id, [&] { return runtime::path_of(p); });
    if (!kind) return;
    const std::uint64_t now = before ? before : form::Clock::now();
    // Only the thread that runs the process uses the process's slot (unless two processes share
    // it), so the load and the store need not be one atomic step.
    std::atomic<std::uint64_t>& parked = slot(id);
    const std::uint64_t since = parked.load(std::memory_order_relaxed);
    if ((since & kIdMask) == (id & kIdMask) && since) {
      parked.store(0, std::memory_order_relaxed);
      me.op = 0;
      me.since = now - ((now - (since >> kIdBits)) & (~0ull >> kIdBits));
    }
    runtime::Passed at;
    at.counts = false;
    if (kind->passed) kind->passed(p, at);
    form::Known* place = nullptr;
    if (at.place)
      place = &lane.place(at.place, at.place->name, 0, [&] { return name_of(*at.place); });
    const form::Op op = op_of(mine, *kind, at.writing, place);
    if (op == form::Op::other) lane.other(kind->verb);
    const bool selects = op >= form::Op::select_input && op <= form::Op::select_other;
    lane.over(now, me, op, form::Outcome::commit, place, 0, selects);
  }
  void idle(runtime::Run&, runtime::Executor&) noexcept override {}

  // Writes the data to a file beside `path`, which is then renamed to `path`. Returns 0 or the
  // errno value.
  int write(const std::string& path) {
    const std::string beside = path + ".part";
    const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return errno;
    int error = form::write_file(fd, ring_, began_, name_of_program());
    ::close(fd);
    if (!error && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
    if (error) std::remove(beside.c_str());
    return error;
  }

 private:
  // resumes() has already defined the process in the lane's current block, and has left room there
  // for this event.
  [[gnu::noinline]] void ended() {
    ThreadState& mine = here();
    const std::uint32_t id = std::exchange(mine.running, 0);
    if (!id) return;
    form::Known& me = mine.lane.process(id, [] { return std::string(); });
    mine.lane.end(form::Clock::now(), me, 0, {});
  }
  struct ThreadState {  // the state of one thread for one recorder
    ThreadState(std::uint64_t number, form::Ring& ring) : recorder(number), lane(ring) {}
    const std::uint64_t recorder;
    form::Lane lane;
    std::uint32_t running = 0;
    // The time at which the last process was suspended, if another process resumes now; otherwise
    // 0. This spares a second reading of the clock, which takes nearly half of an event's time.
    std::uint64_t now = 0;
    struct Kind {
      const runtime::OpKind* kind = nullptr;
      form::Op op = form::Op::other;
    };
    Kind kinds[16];  // the last kinds of operations, by their addresses
  };
  ThreadState& here() {
    ThreadState* const mine = mine_;
    return mine && mine->recorder == number_ ? *mine : made();
  }
  [[gnu::noinline, gnu::cold]] ThreadState& made() {
    static thread_local std::unique_ptr<ThreadState> owner;
    owner = std::make_unique<ThreadState>(number_, ring_);
    mine_ = owner.get();
    return *owner;
  }
  static std::string name_of(const core::SyncObject& place) {
    return place.line || !place.name ? runtime::name_of(place) : place.name;
  }
  static std::string name_of_program() {
#ifdef __GLIBC__
    return program_invocation_name;
#else
    return "";
#endif
  }
  [[gnu::noinline, gnu::cold]] static form::Op op_of_verb(std::string_view verb) noexcept {
    static constexpr std::pair<std::string_view, form::Op> kinds[] = {
        {"read", form::Op::read}, {"write", form::Op::write}, {"select", form::Op::select_other},
        {"sync", form::Op::sync}, {"sleep", form::Op::sleep}, {"wait for", form::Op::wait_for}};
    for (const auto& [name, op] : kinds)
      if (name == verb) return op;
    return form::Op::other;
  }
  static form::Op op_of(ThreadState& mine, const runtime::OpKind& kind, bool writes,
                        const form::Known* place) noexcept {
    ThreadState::Kind& here =
        mine.kinds[(reinterpret_cast<std::uintptr_t>(&kind) >> 3) % std::size(mine.kinds)];
    if (here.kind != &kind) [[unlikely]]
      here = {&kind, op_of_verb(kind.verb)};
    if (here.op != form::Op::select_other || !place) return here.op;
    return writes ? form::Op::select_output : form::Op::select_input;
  }

  // When a process parked, by its id; the process might continue on another thread. If two
  // processes share a slot, it is not known how long one of them waited.
  static constexpr unsigned kIdBits = 24;
  static constexpr std::uint64_t kIdMask = (1u << kIdBits) - 1;
  std::atomic<std::uint64_t>& slot(std::uint32_t id) noexcept { return since_[id % kSlots]; }

  static inline constinit thread_local ThreadState* mine_ = nullptr;
  static inline std::atomic<std::uint64_t> last_{0};
  form::Ring ring_;
  form::Moment began_;
  const std::uint64_t number_;
  static constexpr std::uint32_t kSlots = 1 << 16;
  std::unique_ptr<std::atomic<std::uint64_t>[]> since_ {
    new std::atomic<std::uint64_t>[ kSlots ]()
  };
};

}  // namespace detail

// While this object exists, the last events are kept; its destructor writes them to the file. So
// the file is also written if an exception that is caught further out, a Deadlock for example,
// leaves the block. If the destructor cannot write the file, it prints a message on stderr. The
// memory is never freed, so a program should make few recorders.
class flight {
 public:
  // `size` is the number of bytes that are kept. Throws BadUse if there is a recorder already, or
  // if the size is less than 256 KB.
  explicit flight(std::string path, std::size_t size = 16u << 20)
      : path_(std::move(path)), recorder_(std::make_unique<detail::Flight>(size)) {
    if (size < runtime::flight::kLeast) detail::bad_use("flight: a recorder has at least 256 KB");
    if (!detail::Watchers::all().record(recorder_.get()))
      detail::bad_use("flight: there is a recorder already: one is enough for a program");
    current_.store(recorder_.get(), std::memory_order_release);
    runtime::write_flight.store(&write_current, std::memory_order_release);
  }
  flight(const flight&) = delete;
  flight& operator=(const flight&) = delete;
  ~flight() {
    current_.store(nullptr, std::memory_order_release);
    if (const int error = recorder_->write(path_))
      std::fprintf(stderr, "weft: flight: cannot write %s: %s\n", path_.c_str(),
                   std::strerror(error));
    detail::Watchers::all().record_no_more();
    keep(std::move(recorder_));
  }
  // Writes the events so far. Throws std::system_error if the file cannot be written.
  void write() {
    if (const int error = recorder_->write(path_))
      throw std::system_error(error, std::generic_category(), "flight: cannot write " + path_);
  }

 private:
  // Called for `weft dump`, on a thread of the door (runtime/door.hpp).
  static int write_current(const char* path) noexcept {
    detail::Flight* const f = current_.load(std::memory_order_acquire);
    try {
      return f ? f->write(path) : -1;
    } catch (...) {  // there is no memory
      return ENOMEM;
    }
  }
  static inline std::atomic<detail::Flight*> current_{nullptr};

  // Another thread might still be using the recorder for a moment, so its memory is never freed.
  static void keep(std::unique_ptr<detail::Flight> recorder) {
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::unique_ptr<detail::Flight>>;
    const std::lock_guard g(mutex);
    kept.push_back(std::move(recorder));
  }

  std::string path_;
  std::unique_ptr<detail::Flight> recorder_;
};

}  // namespace weft::inline WEFT_ABI
