// The definitions of session.hpp; see ../../config.hpp.
#pragma once
#include "../session.hpp"

namespace weft::inline WEFT_ABI::wire {

WEFT_IMPL void Session::greet() {
  if (state_ != State::fresh) return;
  state_ = State::greeting;
  Buffer body;
  detail::put(body, std::uint32_t{0});  // no lease
  detail::put(body, std::uint32_t{0});
  detail::put(
      body,
      std::as_bytes(std::span(mine_.name)).first(std::min<std::size_t>(mine_.name.size(), 200)));
  Frame f{Kind::hello, 0, kMagic, 0, mine_.incarnation, 0, body};
  f.txn = mine_.version.lowest | static_cast<std::uint32_t>(mine_.version.highest) << 16;
  f.val = mine_.profile | static_cast<std::uint64_t>(mine_.largest) << 32;
  send(f);
}

WEFT_IMPL void Session::send(const Frame& f, bool time) {
  hurries_ = hurries_ || !time;
  if (is_over()) return;
  if (kHeader + padded(f.body.size()) > largest_) {
    bye("a value of " + std::to_string(f.body.size()) +
        " bytes does not fit into a frame of at most " + std::to_string(largest_) + " bytes");
    return;
  }
  if (detail::is_of_a_round(f.kind)) ++rounds_out_;
  append(out_, f, next_out_++);
}

WEFT_IMPL void Session::input(Bytes in) {
  // A frame of which a part is here already is completed; all others are taken where they lie.
  while (!in_.empty() && !in.empty() && !is_over()) {
    const std::size_t whole = in_.size() < 2 ? 2 : detail::get<std::uint16_t>(in_.data());
    const std::size_t n = std::min(in.size(), whole - in_.size());
    in_.insert(in_.end(), in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    in = in.subspan(n);
    if (take_frames(in_) != 0) in_.clear();
  }
  if (is_over()) return;
  in = in.subspan(take_frames(in));
  in_.insert(in_.end(), in.begin(), in.end());
}

// How many of these bytes were whole frames. What is left of them is part of one, whose size, if it
// is there, is more than that.
WEFT_IMPL std::size_t Session::take_frames(Bytes in) {
  std::size_t at = 0;
  while (!is_over()) {
    const Taken t = take(in.subspan(at), next_in_, std::max(largest_, kSmallest));
    if (t.what == Taken::more) break;
    if (t.what == Taken::fault) {
      bye(t.why);
      break;
    }
    at += t.size;
    ++next_in_;
    const Frame& f = t.frame_;
    if (detail::is_of_a_round(f.kind)) ++rounds_in_;
    const char* wrong = nullptr;
    if (state_ != State::open)
      wrong = f.kind == Kind::hello ? hello(f) : "the first frame is no HELLO";
    else if (f.kind == Kind::hello)
      wrong = "a second HELLO";
    else if (f.kind == Kind::bye)
      end("the peer said: " + std::string(reinterpret_cast<const char*>(f.body.data()),
                                          static_cast<std::size_t>(f.val)),
          false);
    else
      wrong = receiver_.received(f);
    if (wrong) bye(wrong);
  }
  return at;
}

WEFT_IMPL const char* Session::hello(const Frame& f) {
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
  theirs_.name.assign(name, strnlen(name, f.body.size() - 8));
  largest_ = std::min(mine_.largest, theirs_.largest);
  state_ = State::open;
  receiver_.opened();
  return nullptr;
}

WEFT_IMPL void Session::end(const std::string& why, bool tell) {
  if (is_over()) return;
  if (tell && state_ != State::fresh) {
    receiver_.before_bye();
    const Bytes text =
        std::as_bytes(std::span(why)).first(std::min<std::size_t>(why.size(), kSmallest - kHeader));
    append(out_, Frame{Kind::bye, 0, 0, 0, 0, text.size(), text}, next_out_++);
  }
  state_ = State::over;
  why_ = why;
  receiver_.session_over();
}

}  // namespace weft::inline WEFT_ABI::wire
