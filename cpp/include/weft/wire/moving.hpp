// Ends that move between spaces (WIRE.md 7.4, 7.5): what this space knows of an end whose home is
// another space, and how values carry ends.
//
// What moves is a description {home, key, token, number, side, name}. The receiver receives a share
// of its own at the home; the sender's share stays until the home has confirmed the receiver's
// share. The receiver identifies the sender's end to the home by the end's *key*, which no other
// program knows.
//
// A program that has adopted an end may send it on before the home knows of the adoption. The next
// program's ADOPT is on another session, and may arrive first. So the earlier keys are sent along
// with the end (`before`). A share is released only when the home knows the next key, so the home
// knows one of these keys.
//
//   put() ──► under way with an operation ──settled(): not taken──► the sender keeps its end
//                └──settled(), sent(): taken──► delivered ──ADOPTED, DROPPED──► the sender's share
//                                                  │                            is given up
//                                                  └──lost()──► it is given up as died
//
// If the home is the sender, or the receiver, or the place where the value is read, the ADOPT
// cannot arrive too early, because the frames of one session arrive in order.
//
// Invariants (the space's lock)
//  1 The number of an end is open at its home as long as a FarEnd holds it: an end under way has a
//    share of the FarEnd.
//  2 A token names one end under way from one space. The token is answered at most once, and only
//    by the end's home or by the receiver.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include "port.hpp"
#include "session.hpp"

namespace weft::inline WEFT_ABI::wire {

class Peer;
class Space;

// The type that is sent for a share of a barrier, which is not an end (WIRE.md 4.9).
inline constexpr const char* kBarrierType = "barrier";

// An end whose home is another space. All its copies in this program share one FarEnd.
class FarEnd {
 public:
  // How many times an end can move before its home answers.
  static constexpr std::size_t kBefore = 16;

  FarEnd(std::shared_ptr<Peer> p, std::uint32_t number, std::uint64_t key, std::string name);
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;
  ~FarEnd();

  void poison(std::uint8_t strength);
  // Marks the end, so that it counts as died when it is given back.
  void will_have_died() noexcept { died_ = true; }

  std::shared_ptr<Peer> peer;
  const std::uint32_t number;
  const std::uint64_t key;
  core::SyncObject place;
  // The end's keys at its earlier holders, the latest first; the list is emptied when the home has
  // sent ADOPTED. Protected by the space's lock.
  std::vector<std::uint64_t> before;

 private:
  const std::string name_;  // place.name points to it, so the name must exist as long as the end
  bool died_ = false;       // protected by the space's lock
};

// Carries ends in the values that are sent to one peer and received from it. Used in a step.
class Carrier {
 public:
  explicit Carrier(Peer& p) noexcept : peer_(p) {}
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // --- called by a Value<T> ---

  // Appends an end to the bytes of a value. The end stays where it is: the sender of the value must
  // destroy it once the value has been taken.
  template <class E>
  void put(const E& end, Buffer& out) {
    end.put_by(*this, out);
  }
  // Reads the end at the beginning of `in`, and removes its bytes from `in`. Returns nothing if
  // these bytes are not an end, or are an end of another side or type.
  template <class E>
  std::optional<E> get(Bytes& in) {
    return E::get_by(*this, in);
  }

  // Returns whether a descriptor can go with a value. If so, pass() takes ownership of a descriptor
  // that goes with the value being put, and passed() returns the next descriptor that has arrived.
  bool passes() const noexcept;
  void pass(int descriptor) noexcept;
  int passed() noexcept;
  // Records that this program has no memory for the received value; wrong() then says so.
  void no_room() noexcept { no_room_ = true; }
  // Return the incarnations of this space and of the peer.
  std::uint64_t mine() const noexcept;
  std::uint64_t theirs() const noexcept;

  // --- called by an end ---

  // Puts an end whose home is this space. The port has its own count of the end.
  void put_local(std::shared_ptr<Port> p, const core::SyncObject& place, Buffer& out);
  // Puts an end whose home is another space. If `e` is null, a closed end is put.
  void put_far(const std::shared_ptr<FarEnd>& e, bool writes, Buffer& out, bool barrier = false);
  struct Got {
    // The port of the end's earlier holder, if the end's home is this space.
    std::shared_ptr<Port> here;
    std::shared_ptr<FarEnd> there;
  };
  std::optional<Got> take(Bytes& in, bool writes, const std::string& type);
  // Returns whether `in` is the description of a share of a barrier.
  static bool is_barrier(Bytes in) noexcept;

  // --- called by a session's parts as a home and as a party ---

  // Announces that the value of this guard is unloaded next. The values of one operation begin with
  // guard 0.
  void begin(std::uint32_t guard) noexcept;
  // Records that the value was sent with this operation. If `op` is 0, the value was sent in an
  // answer, and so belongs to the peer now.
  void sent(std::uint64_t op) noexcept;
  // Sets whether values that are put from now on are sent as copies, and not in memory that both
  // programs map.
  void by_copy(bool so) noexcept { by_copy_ = so; }
  bool copies() const noexcept { return by_copy_; }
  // Records that the value was not sent after all.
  void take_back();
  // Returns why a received value could not be taken: `of_no_type`, or that there is no memory for
  // the value.
  const char* wrong(const char* of_no_type) noexcept {
    if (!std::exchange(no_room_, false)) return of_no_type;
    return "a value in shared memory for which this program has no room (its limits of memory: "
           "ulimit -v, RLIMIT_AS, memory_limit=)";
  }
  // Returns why the value cannot be sent, or null.
  const char* trouble() const noexcept { return trouble_; }
  // Records that the operation has ended, and that the value of guard `taken` was taken and the
  // other values were not. If `taken` is -1, no value was taken.
  void settled(std::uint64_t op, int taken);

  bool adopted(std::uint64_t token, const Peer& by);
  void dropped(std::uint64_t token);
  void lost();  // called when the session with the peer has ended, and its operations are settled
  std::size_t under_way() const noexcept { return moving_.size(); }
  // Returns the token of the end that was put last; 0 if the end is under way to its home or from
  // there.
  std::uint64_t latest() const noexcept { return latest_; }
  bool is_under_way(std::uint64_t token) const noexcept {
    return std::any_of(moving_.begin(), moving_.end(),
                       [&](const Moving& m) { return m.token == token; });
  }

 private:
  struct Moving {
    std::uint64_t token;
    std::shared_ptr<FarEnd> end;
    std::uint64_t op;
    std::uint32_t guard;
    bool delivered;
  };
  void describe(Buffer& out, std::uint64_t home, std::uint64_t key, std::uint64_t token,
                std::uint32_t number, unsigned flags, const char* name,
                std::span<const std::uint64_t> before = {});

  Peer& peer_;
  // The ends that move, in the order of put_far(). Ends that have not been sent are last.
  std::vector<Moving> moving_;
  std::vector<std::uint32_t> lent_;  // numbers of the ends that put_local() has put since begin(0)
  std::size_t unsent_ = 0;           // how many of moving_ have not been sent
  std::uint64_t latest_ = 0;
  std::uint32_t guard_ = 0;
  bool by_copy_ = false;
  bool no_room_ = false;
  const char* trouble_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::wire
