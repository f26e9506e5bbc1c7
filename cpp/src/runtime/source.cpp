// The definitions of runtime/source.hpp.
#include <algorithm>

#include <weft/runtime/group.hpp>
#include <weft/runtime/source.hpp>

namespace weft::inline WEFT_ABI::runtime {

struct Sources {
  std::mutex mutex;
  std::vector<const Source*> those;
  static Sources& all() noexcept {
    static auto& s = *new Sources;  // A source can outlive other static objects.
    return s;
  }
};

void Source::enter() {
  Sources& all = Sources::all();
  const std::lock_guard g(all.mutex);
  all.those.push_back(this);
  source_is_expected.store(&expected_by, std::memory_order_release);
}

Source::~Source() {
  Sources& all = Sources::all();
  const std::lock_guard g(all.mutex);
  std::erase(all.those, this);
}

bool Source::is_at(const core::SyncObject& channel) noexcept {
  Sources& all = Sources::all();
  const std::lock_guard g(all.mutex);
  return std::ranges::find(all.those, &channel, &Source::channel_) != all.those.end();
}

bool Source::expected_by(Run& run) noexcept {
  struct Look final : WaitVisitor {
    bool found = false;
    void channel(const core::SyncObject& c, bool writing) override {
      found = found || (!writing && is_at(c));
    }
    void barrier(const core::SyncObject&) override {}
    void end(const core::SyncObject&) override {}
  } look;
  run.each_process([&](ProcessBase& p) {
    // The places are those that other threads see, because a source might be about to meet the
    // process.
    if (p.op && p.op->visit) (p.op->undecided ? p.op->undecided : p.op->visit)(p, look);
  });
  return look.found;
}

}  // namespace weft::inline WEFT_ABI::runtime
