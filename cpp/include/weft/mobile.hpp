// Mobile<T>: a value that has one owner at a time (occam-pi's MOBILE). It moves into a channel and
// out at the other end, and is never copied. A Mobile that was moved from is empty: using it throws
// BadUse, instead of following a null pointer.
#pragma once

#include <memory>
#include "errors.hpp"

namespace weft::inline WEFT_ABI {

template <class T>
class Mobile {
 public:
  using element_type = T;

  Mobile() noexcept = default;  // makes an empty Mobile
  explicit Mobile(std::unique_ptr<T> p) noexcept : p_(std::move(p)) {}
  Mobile(Mobile&&) noexcept = default;
  Mobile& operator=(Mobile&&) noexcept = default;
  Mobile(const Mobile&) = delete;  // Use std::move(m) or m.clone() instead.
  Mobile& operator=(const Mobile&) = delete;
  ~Mobile() = default;

  // These operators access the value. Both throw BadUse if the Mobile is empty because it was moved
  // from.
  T& operator*() const { return *checked(); }
  T* operator->() const { return checked(); }
  // Returns another Mobile with a copy of the value. Throws BadUse if this one is empty.
  Mobile clone() const { return Mobile(std::make_unique<T>(*checked())); }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  T* checked() const {
    if (!p_) [[unlikely]]
      detail::bad_use(
          "this Mobile holds nothing: it was sent or moved away (a second one is made by clone() "
          "before that)");
    return p_.get();
  }
  std::unique_ptr<T> p_;
};

template <class T, class... A>
Mobile<T> make_mobile(A&&... args) {
  return Mobile<T>(std::make_unique<T>(std::forward<A>(args)...));
}

}  // namespace weft::inline WEFT_ABI
