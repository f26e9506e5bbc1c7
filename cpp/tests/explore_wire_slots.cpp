// Exploration of leased slots (wire 9.2; conformance/models/wire_slots.pml): the code of the maker
// and of two receivers, in every order in which values are lent, taken, sent on and dropped, and in
// which a receiver drops its mappings.
#include <array>
#include <cstring>
#include <optional>

#include "engine.hpp"
#include "explore_events.hpp"
#include "weft/wire/slot.hpp"
#include "wire_pipe.hpp"

namespace weft::test {
namespace {

// One receiving space, with the bytes that are under way to it, and the slots that it has open.
struct Receives {
  Pipe pipe;
  std::deque<std::pair<w::Buffer, int>> under_way{};
  struct View {
    std::unique_ptr<w::Slot> slot;
    int value;
  };
  std::optional<View> view{};

  w::Traffic session{};  // The session is open while a message can arrive.

  explicit Receives(std::uint64_t name) : pipe{1, name} {}
  void lend(const w::Slot& s, int value) {
    w::Buffer description;
    REQUIRE_THAT(s.lend_to(pipe, description));
    under_way.emplace_back(std::move(description), value);
  }
  void take() {
    const auto [description, value] = std::move(under_way.front());
    under_way.pop_front();
    auto slot = w::Slot::take(description, pipe);
    REQUIRE_THAT(slot);  // A slot that arrives without a descriptor has been mapped before.
    view.emplace(View{std::move(slot), value});
    look();
  }
  void look() const {
    int v;
    std::memcpy(&v, view->slot->data(), sizeof(v));
    REQUIRE_THAT(v == view->value);
  }
  void drop() {
    look();
    view.reset();
  }
};

constexpr std::size_t kBytes = 300'000;

// Fills the program's list of mapped segments with the segments of another maker.
void evict_mappings() {
  struct Other {
    w::Segment memory;
    w::Descriptor descriptor;
    std::array<std::uint64_t, 5> description;  // the fields are: mark, id, size, length, inode
  };
  static auto& others = *[] {
    auto* all = new std::vector<Other>(17);
    std::uint64_t id = 3'000'000;
    for (Other& o : *all) {
      o.memory = w::Segment::make(4096, w::Segment::Peers::write, o.descriptor);
      struct stat st {};
      REQUIRE_THAT(::fstat(o.descriptor.get(), &st) == 0);
      o.description = {1, ++id, 4096, 8, st.st_ino};
    }
    return all;
  }();
  static Pipe& pipe = *new Pipe{1, 3009};
  for (Other& o : others) {
    const std::uint64_t head[8] = {1, o.description[1]};
    std::memcpy(o.memory.data(), head, sizeof(head));
    pipe.pass(::fcntl(o.descriptor.get(), F_DUPFD_CLOEXEC, 3));
    REQUIRE_THAT(w::Slot::take(std::as_bytes(std::span(o.description)), pipe));
  }
}

SCENARIO(
    "wire: slots: lent, sent on, dropped and let go of: a view shows what was sent, and what is "
    "named is mapped (wire 9.2)",
    0) {
  Receives a(3001), b(3002);
  int lent = 0;
  bool went = false, on = false;
  Events e;
  do {
    e.may(lent < 2, [&] {
      const auto s = w::Slot::make(kBytes);
      REQUIRE_THAT(s);
      const int v = ++lent;
      std::memcpy(s->data(), &v, sizeof(v));
      a.lend(*s, v);
    });
    for (Receives* r : {&a, &b}) {
      e.may(!r->view && !r->under_way.empty(), [r] { r->take(); });
      e.may(r->view.has_value(), [r] { r->drop(); });
    }
    e.may(!on && a.view, [&] { on = true, b.lend(*a.view->slot, a.view->value); });
    e.may(!went && lent > 0, [&] { went = true, evict_mappings(); });
  } while (e.one());
  REQUIRE_THAT(lent == 2 && !a.view && !b.view && a.under_way.empty() && b.under_way.empty());
}

}  // namespace
}  // namespace weft::test
