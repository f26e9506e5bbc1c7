// A plain reader at a channel of this program. It takes the place of a process in tests that have
// no threads.
#pragma once
#include <new>

#include "weft/channel.hpp"
#include "weft/wire/value.hpp"

namespace weft::test {

template <class T>
class HereOf final : public core::Waker {
 public:
  using Engine = typename Reader<T>::Engine;

  explicit HereOf(Engine& c, unsigned more = 0) : core_(c) {
    static constexpr core::WakerOps kOps{&HereOf::woken, nullptr, nullptr, 0};
    ops = &kOps;
    slot = room_.slot();
    set(static_cast<std::uint16_t>(more));
    const Status s = core_.template begin<core::Side::in>(*this);
    if (s == Status::pending) return;
    status = s;
    is_over_ = true;
  }
  HereOf(const HereOf&) = delete;
  HereOf& operator=(const HereOf&) = delete;
  ~HereOf() {
    if (has_value()) static_cast<void>(value());
    if (!done()) core_.template withdraw<core::Side::in>(*this);
  }

  bool over() const { return is_over_; }
  bool done() const { return is_over_ || withdrawn_; }
  bool withdraw() {
    if (is_over_) return false;
    return withdrawn_ = core_.template withdraw<core::Side::in>(*this);
  }
  bool has_value() const { return is_over_ && status == Status::ok; }
  const T& value() {
    if (!has_value()) throw "there is no value";
    if (!taken_) {
      room_.filled();
      value_ = room_.take();
      taken_ = true;
    }
    return value_;
  }

 private:
  static void woken(core::Node* n) noexcept { static_cast<HereOf*>(n)->is_over_ = true; }
  Engine& core_;
  wire::RoomOf<T> room_;
  T value_{};
  bool is_over_ = false, taken_ = false, withdrawn_ = false;
};
using Here = HereOf<int>;

}  // namespace weft::test
