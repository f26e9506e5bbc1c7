// The definitions of wire/session.hpp.
#include <weft/wire/session.hpp>

namespace weft::inline WEFT_ABI::wire {

void Session::greet() {
  if (state_ != State::fresh) return;
  state_ = State::greeting;
  Buffer body;
  detail::put(body, std::uint32_t{0});  // 0: the space has no lease
  detail::put(body, std::uint32_t{0});
  detail::put(body,
              std::as_bytes(std::span(mine_.name)).first(std::min(mine_.name.size(), kNamed)));
  Frame f{Kind::hello, 0, kMagic, 0, mine_.incarnation, 0, body};
  f.txn = mine_.version.lowest | static_cast<std::uint32_t>(mine_.version.highest) << 16;
  f.val = mine_.profile | static_cast<std::uint64_t>(mine_.largest) << 32;
  send(f);
}

void Session::send(const Frame& f, bool time) {
  hurries_ = hurries_ || !time;
  if (is_over()) return;
  if (kHeader + padded(f.body.size()) > largest_) {
    bye("a value of " + std::to_string(f.body.size()) +
        " bytes does not fit into a frame of at most " + std::to_string(largest_) + " bytes");
    return;
  }
  if (detail::is_of_a_round(f.kind)) ++rounds_out_;
  if (detail::is_answer(f.kind) && ++answers_ % kEach == 0) {
    unread_.push_back(gone_ + queued() + kHeader + padded(f.body.size()));
    piles_up_ = unread_.size() >= kUnread / kEach;
  }
  if (!f.keeper || !lends(f.body.size())) return append(out_, f, next_out_++);
  append_head(out_, f, next_out_++);
  lent_.push_back({out_.size(), f.body, *f.keeper});
  lent_bytes_ += f.body.size();
  borrows_ = borrows_ || !*f.keeper;
  out_.resize(out_.size() + padded(f.body.size()) - f.body.size());
}

std::size_t Session::parts(std::span<Bytes> into) const noexcept {
  std::size_t n = 0, at = sent_;
  const auto add = [&](Bytes b) {
    if (!b.empty() && n < into.size()) into[n++] = b;
  };
  for (std::size_t i = first_lent_; i < lent_.size() && n < into.size(); ++i) {
    add(Bytes(out_).subspan(at, lent_[i].before - at));
    add(lent_[i].bytes);
    at = lent_[i].before;
  }
  add(Bytes(out_).subspan(at));
  return n;
}
void Session::went(std::size_t bytes) {
  gone_ += bytes;
  while (!unread_.empty() && unread_.front() <= gone_) {
    unread_.pop_front();
    piles_up_ = false;
  }
  while (first_lent_ < lent_.size()) {
    Lent& l = lent_[first_lent_];
    const std::size_t own = std::min(bytes, l.before - sent_);
    sent_ += own;
    bytes -= own;
    const std::size_t n = std::min(bytes, l.bytes.size());
    l.bytes = l.bytes.subspan(n);
    lent_bytes_ -= n;
    bytes -= n;
    if (sent_ < l.before || !l.bytes.empty()) break;
    l.keeper.reset();
    ++first_lent_;
  }
  if (first_lent_ == lent_.size()) {
    sent_ += bytes;
    borrows_ = false;
  }
  if (sent_ == out_.size() && first_lent_ == lent_.size()) {
    out_.clear();
    lent_.clear();
    sent_ = first_lent_ = 0;
    // Moving the rest to the front is cheap here: at most a third as many bytes are moved as are
    // removed.
  } else if (sent_ > (std::size_t{1} << 16) && sent_ > out_.size() / 4 * 3) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent_));
    lent_.erase(lent_.begin(), lent_.begin() + static_cast<std::ptrdiff_t>(first_lent_));
    for (Lent& l : lent_) l.before -= sent_;
    sent_ = first_lent_ = 0;
  }
}
std::size_t Session::frames(std::size_t most) const noexcept {
  std::size_t n = 0, at = sent_, i = first_lent_;
  while (at < out_.size()) {
    const std::size_t frame = detail::get<std::uint16_t>(out_.data() + at);
    if (n > 0 && n + frame > most) break;
    n += frame;
    const bool elsewhere = i < lent_.size() && lent_[i].before == at + kHeader;
    at += frame - (elsewhere ? lent_[i++].bytes.size() : 0);
  }
  return n;
}
void Session::copy_to(std::byte* to, std::size_t bytes) const noexcept {
  std::size_t at = sent_;
  const auto copy = [&](Bytes b) {
    const std::size_t n = std::min(bytes, b.size());
    if (n > 0) to = std::copy_n(b.data(), n, to);
    bytes -= n;
  };
  for (std::size_t i = first_lent_; i < lent_.size() && bytes > 0; ++i) {
    copy(Bytes(out_).subspan(at, lent_[i].before - at));
    copy(lent_[i].bytes);
    at = lent_[i].before;
  }
  copy(Bytes(out_).subspan(at));
}
void Session::copy_borrowed() {
  Buffer all;
  all.reserve(queued());
  std::vector<Lent> kept;
  std::size_t at = sent_;
  lent_bytes_ = 0;
  for (std::size_t i = first_lent_; i < lent_.size(); ++i) {
    Lent& l = lent_[i];
    detail::put(all, Bytes(out_).subspan(at, l.before - at));
    at = l.before;
    if (!l.keeper) {
      detail::put(all, l.bytes);
      continue;
    }
    lent_bytes_ += l.bytes.size();
    kept.push_back({all.size(), l.bytes, std::move(l.keeper)});
  }
  detail::put(all, Bytes(out_).subspan(at));
  out_ = std::move(all);
  lent_ = std::move(kept);
  sent_ = first_lent_ = 0;
  borrows_ = false;
}

void Session::input(Bytes in) {
  // A frame whose beginning is in in_ is completed there; all other frames are read in place.
  while (!in_.empty() && !in.empty() && !is_over()) {
    const std::size_t whole = part_left_ > 0         ? std::min<std::size_t>(part_left_, 8)
                              : in_.size() < kHeader ? kHeader
                                                     : detail::get<std::uint16_t>(in_.data());
    const std::size_t n = std::min(in.size(), whole - in_.size());
    in_.insert(in_.end(), in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    in = in.subspan(n);
    const std::size_t taken = take_frames(in_);
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  if (is_over()) return;
  in = in.subspan(take_frames(in));
  in_.insert(in_.end(), in.begin(), in.end());
}

// Handles whole frames and parts of a long VALUE. Returns how many bytes were handled. The bytes
// that are left are the beginning of a frame that is not complete, or less than a word of a VALUE.
std::size_t Session::take_frames(Bytes in) {
  static constexpr std::size_t kLong = 4096;
  std::size_t at = 0;
  while (!is_over()) {
    if (part_left_ > 0) {
      const std::size_t n = take_part(in.subspan(at));
      if (n == 0) break;
      at += n;
      continue;
    }
    const Taken t = take(in.subspan(at), next_in_, std::max(largest_, kSmallest));
    if (t.what == Taken::more && t.frame_.kind == Kind::value && t.size >= kLong &&
        state_ == State::open) {
      if (padded(t.frame_.val) != t.size - kHeader) {
        bye("a frame's body is not of the length it says");
        break;
      }
      part_ = t.frame_;
      part_left_ = t.size - kHeader;
      at += kHeader;
      continue;
    }
    if (t.what == Taken::more) break;
    if (t.what == Taken::fault) {
      bye(t.why);
      break;
    }
    at += t.size;
    ++next_in_;
    heard(t.frame_);
  }
  return at;
}
// Passes on whole words of a long VALUE, so that the receiver finds them aligned as the sender had
// them. Returns the number of bytes passed on.
std::size_t Session::take_part(Bytes in) {
  const std::size_t n = in.size() < part_left_ ? in.size() / 8 * 8 : part_left_;
  if (n == 0) return 0;
  Frame f = part_;
  f.val = std::min<std::uint64_t>(n, part_.val);
  f.body = in.first(n);
  part_.val -= f.val;
  part_left_ -= n;
  if (part_left_ == 0) ++next_in_;
  if (detail::holds(f.body, f.val))
    heard(f);
  else
    bye("a frame's body is not of the length it says");
  return n;
}
void Session::heard(const Frame& f) {
  if (detail::is_of_a_round(f.kind)) ++rounds_in_;
  const char* wrong = nullptr;
  if (state_ != State::open)
    wrong = f.kind == Kind::hello ? hello(f) : "the first frame is not a HELLO";
  else if (f.kind == Kind::hello)
    wrong = "a second HELLO";
  else if (f.kind == Kind::bye)
    end("the peer said: " + std::string(reinterpret_cast<const char*>(f.body.data()),
                                        static_cast<std::size_t>(f.val)),
        false);
  else if (piles_up_)
    wrong = "more answers wait than a peer may leave unread";
  else
    wrong = receiver_.received(f);
  if (wrong) bye(wrong);
}

const char* Session::hello(const Frame& f) {
  if (state_ == State::fresh) greet();
  if (f.where != kMagic) return "the peer does not speak Weft's wire";
  theirs_.version = {static_cast<std::uint16_t>(f.txn), static_cast<std::uint16_t>(f.txn >> 16)};
  if (theirs_.version.lowest > mine_.version.highest ||
      theirs_.version.highest < mine_.version.lowest) {
    const auto text = [](Version v) {
      return std::to_string(v.lowest) + " to " + std::to_string(v.highest);
    };
    refused_ = "no common version: this space speaks " + text(mine_.version) + ", the peer " +
               text(theirs_.version);
    return refused_.c_str();
  }
  if (expected_ && f.op != expected_)
    return "the peer is not the space to which this one was introduced";
  theirs_.incarnation = f.op;
  if (theirs_.incarnation == 0 || theirs_.incarnation == mine_.incarnation)
    return "the peer's incarnation is none, or this space's own";
  theirs_.profile = static_cast<std::uint32_t>(f.val);
  theirs_.largest = static_cast<std::uint32_t>(f.val >> 32);
  if (theirs_.largest < kSmallest || theirs_.largest > kLargest || theirs_.largest % 8 != 0)
    return "the peer's largest frame is not between 256 and 65528";
  if (f.body.size() < 8) return "a HELLO without its lease";
  const auto* const name = reinterpret_cast<const char*>(f.body.data()) + 8;
  theirs_.name.assign(name, strnlen(name, std::min<std::size_t>(f.body.size() - 8, kNamed)));
  largest_ = std::min(mine_.largest, theirs_.largest);
  state_ = State::open;
  receiver_.opened();
  return nullptr;
}

void Session::end(const std::string& why, bool tell) {
  if (is_over()) return;
  if (tell && state_ != State::fresh) {
    receiver_.before_bye();
    const Bytes text =
        std::as_bytes(std::span(why)).first(std::min<std::size_t>(why.size(), kSmallest - kHeader));
    append(out_, Frame{Kind::bye, 0, 0, 0, 0, text.size(), text}, next_out_++);
  }
  state_ = State::over;
  why_ = why;
  ours_ = tell;
  receiver_.session_over();
}

}  // namespace weft::inline WEFT_ABI::wire
