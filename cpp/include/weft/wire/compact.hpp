// The compact form of frames for slow links: the fields as varints, without seq and padding
// (wire 3.7, 12.7).
//
//   kind 1, flags 1, then as varints (7 bits a byte, the low ones first) where, txn, op, val and
//   the length of the body; the body
//
// The padding of the body, up to seven zero bytes at its end, is left out. An OFFER of a small int
// takes 8 bytes instead of 40.
//
// Invariants
//  1 widen(narrow(frame)) is the frame again. The seq is not sent: both sides count the frames,
//    since the link below delivers each frame once and in order.
//  2 Widener produces whole frames; the session checks whether the frames are valid. Nothing is
//    read outside the input.
#pragma once
#include <algorithm>

#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire::detail {

inline void put_varint(Buffer& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::byte>(v | 0x80));
  out.push_back(static_cast<std::byte>(v));
}

// Appends the compact form of the frame `whole`.
inline void narrow(Bytes whole, Buffer& out) {
  const std::byte* const p = whole.data();
  put(out, whole.subspan(2, 2));
  put_varint(out, get<std::uint32_t>(p + 4));
  put_varint(out, get<std::uint32_t>(p + 12));
  put_varint(out, get<std::uint64_t>(p + 16));
  put_varint(out, get<std::uint64_t>(p + 24));
  Bytes body = whole.subspan(kHeader);
  for (int i = 0; i < 7 && !body.empty() && body.back() == std::byte{0}; ++i)
    body = body.first(body.size() - 1);
  put_varint(out, body.size());
  put(out, body);
}

class Widener {
 public:
  // Accepts the bytes that have arrived, in any pieces, and appends whole frames to `out`. Returns
  // null, or a text that says what is wrong; after a fault the Widener accepts no more bytes.
  const char* input(Bytes in, Buffer& out) {
    if (wrong_) return wrong_;
    put(rest_, in);
    std::size_t taken = 0;
    for (std::size_t n; (n = frame(Bytes(rest_).subspan(taken), out)) != 0;) taken += n;
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(taken));
    return wrong_;
  }

 private:
  // Returns the frame's length in its compact form; 0 if a part of the frame is missing or the
  // frame is wrong.
  std::size_t frame(Bytes in, Buffer& out) {
    if (in.size() < 2) return 0;
    Bytes rest = in.subspan(2);
    std::uint64_t field[5];
    static constexpr std::uint64_t kMaxOfField[] = {0xFFFF'FFFF, 0xFFFF'FFFF, ~std::uint64_t{0},
                                                    ~std::uint64_t{0}, kLargest - kHeader};
    for (int i = 0; i < 5; ++i) {
      if (!varint(rest, field[i])) return 0;
      if (field[i] > kMaxOfField[i]) return wrong_ = "a field of a compact frame is too large", 0;
    }
    const auto n = static_cast<std::size_t>(field[4]);
    if (rest.size() < n) return 0;
    append(out,
           {static_cast<Kind>(in[0]), std::to_integer<std::uint8_t>(in[1]),
            static_cast<std::uint32_t>(field[0]), static_cast<std::uint32_t>(field[1]), field[2],
            field[3], rest.first(n)},
           seq_++);
    return in.size() - rest.size() + n;
  }
  bool varint(Bytes& in, std::uint64_t& v) {
    v = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto b = std::to_integer<std::uint64_t>(in[i]);
      if (i == 9 && b > 1) return wrong_ = "a number of a compact frame does not end", false;
      v |= (b & 0x7F) << (7 * i);
      if (b < 0x80) return in = in.subspan(i + 1), true;
    }
    return false;
  }

  Buffer rest_;  // the beginning of a frame whose rest is missing
  std::uint32_t seq_ = 0;
  const char* wrong_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::wire::detail
