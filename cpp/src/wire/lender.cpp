// The definitions of wire/lender.hpp.
#include <weft/wire/lender.hpp>
#include <weft/wire/space.hpp>

namespace weft::inline WEFT_ABI::wire {

Lender::Lender(Home& h, Session& s, std::uint32_t end, std::shared_ptr<Port> p, std::uint32_t n)
    : Decided(h.space.shared_from_this()),
      session_(s),
      home_(h),
      end_(end),
      port_(std::move(p)),
      lent_(n) {}

void Lender::go_on() {
  if (!port_->buffered()) {
    const int n = port_->lend(this, 1);
    if (n >= 0) {
      me_ = shared_from_this();
      if (n == 0) return;
      lent_ = 1;
      session_.send(Frame{Kind::credit, 0, end_, 0, home_.last_op(), 1, {}}, true);
    } else if (lent_ == 0) {
      over_ = true;
    } else {
      recalled_ = true;
      session_.send(Frame{Kind::recall, 0, end_, 0, 0, 0, {}});
    }
    return;
  }
  for (;;) {
    const int n = port_->lend(this, wanted_ ? 1 : ~std::uint32_t{0});
    if (n == 0) {
      me_ = shared_from_this();  // The lender's wake-up will be handled in a later step.
      return;
    }
    if (n < 0) break;
    lent_ += static_cast<std::uint32_t>(n);
    session_.send(Frame{Kind::credit, 0, end_, 0, 0, static_cast<std::uint64_t>(n), {}},
                  !std::exchange(wanted_, false));
  }
  recalled_ = true;
  session_.send(Frame{Kind::recall, 0, end_, 0, 0, 0, {}});
}
void Lender::want() {
  if (wanted_ || recalled_) return;
  wanted_ = true;
  // The lender has been woken already, and will check whether a credit is wanted.
  if (!me_ || !port_->withdraw(*this)) return;
  const auto me = std::move(me_);
  go_on();
}
void Lender::notified() noexcept {
  const auto me = std::move(me_);
  if (!over_ && !recalled_) go_on();  // If the channel has ended, go_on() ends the lending.
}

const char* Lender::put(Payload value, Carrier& by) {
  if (lent_ == 0) return "a PUT without a credit";
  if (!port_->put(value, by))
    return by.wrong("a PUT with a value that is not of its channel's type");
  --lent_;
  // The peer sent this PUT before the RECALL reached it, and sends nothing more.
  if (recalled_ && !port_->buffered()) close();
  return nullptr;
}
bool Lender::crossed() {
  if (port_->buffered() || lent_ == 0) return false;
  close();
  return true;
}

void Lender::close() {
  if (std::exchange(over_, true)) return;
  if (me_ && port_->withdraw(*this)) me_.reset();
  port_->end_lending(std::exchange(lent_, 0));
}

}  // namespace weft::inline WEFT_ABI::wire
