// Ends in values that are sent, or that were received (WIRE.md 7.4).
//
//   pickling: an end's __reduce__ ──► a Moved with a count of its own ──put_moved()──► a description in the frame
//   a frame ──take_moved()──► a Moved ──unpickling: _end_found()──► an end of this program's │ put_moved(): the end is sent on
//
// Invariant: a Moved has one count of its end, and drops that count when it is destroyed. So an end
// that is never unpickled is given back to its home.
#pragma once
#include "wire/far.hpp"

namespace weft::py {

struct Moved {
  std::shared_ptr<wire::Port> here;     // a ChannelPort or BarrierPort, if the home is this program
  std::shared_ptr<wire::FarEnd> there;  // not null if the home is another program
  bool writes;
  std::string name;
  bool barrier = false;
};
using AllMoved = std::vector<Moved>;

// In the scope of this object, the ends that this thread pickles are collected in `a`, and the ends
// that it unpickles are found there.
class Moving {
 public:
  explicit Moving(AllMoved& a) noexcept;
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;
  ~Moving();

 private:
  AllMoved* const outer_;
};

// Writes the beginning of a value that has ends: the byte 5, three zeros, the number of ends in 4
// bytes; then their descriptions. Called in a step.
inline constexpr std::byte kMovedMark{5};
void put_moved(const AllMoved& all, wire::Buffer& out, wire::Carrier& by);
// Reads the ends from the beginning of `in`, and removes their bytes. Returns false if the lengths
// do not fit the bytes.
bool take_moved(wire::Bytes& in, AllMoved& all, wire::Carrier& by);

}  // namespace weft::py
