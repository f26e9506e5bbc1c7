// This program as an address space (*space* for short), and its sessions (WIRE.md 1, 2).
//
// All state of the wire is protected by one lock of the space. A thread that holds the lock is in a
// *step*: it takes in what has arrived, or begins or withdraws an operation. At the end of a step
// it answers the visitors that have received an outcome meanwhile, and lets the links send.
//
//   Step() ──lock──► … ──~Step(): answer_decided(), Link::flush()──► unlock
//   unlock ──another visitor got an outcome meanwhile, and no thread is in a step──► lock …
//
// Invariants
//  1 A visitor's waker may be called on any thread, and waits for no lock. It makes a step itself
//    only if no thread is in one. A thread in a step checks for wakers again after it has released
//    the lock. The waker and the thread both use a read-modify-write of `fresh_`, so one of the two
//    sees the other, and no waker is forgotten.
//  2 In a step no lock of a channel is held when a link is called, and no code of the user's runs
//    except the customisation point of values.
#pragma once
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <unordered_set>

#include "far.hpp"
#include "home.hpp"
#include "traffic.hpp"

namespace weft::inline WEFT_ABI::wire {

class Peer;

// Makes sessions between two spaces that this space knows, and accepts sessions that other spaces
// arrange (WIRE.md 7.5). Its functions are called within a step of the space.
class Introducer {
 public:
  // Makes a session between a and b. Returns false if that is not possible.
  virtual bool introduce(Peer& a, Peer& b) = 0;
  // Returns null, or a text that says what is wrong.
  virtual const char* introduced(Peer& by, const Frame& f) = 0;
  virtual ~Introducer() = default;
};

// What the thread that serves a link does around its steps. A language that has a lock of its own
// takes that lock first, and the space's lock after it.
struct Around {
  void (*enter)();
  void (*leave)();
  void (*end)();  // called when the link's thread ends
};
inline constinit const Around* around_steps = nullptr;  // set before the first link is made
class Served {
 public:
  Served() {
    if (around_steps) around_steps->enter();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    if (around_steps) around_steps->leave();
  }
};

// The carrier of a session's bytes.
class Link {
 public:
  // Called in a step when there is output, or when the session has ended.
  virtual void flush() noexcept = 0;
  // Returns whether a descriptor can go along with the frame that is queued next. If so, pass()
  // takes ownership of the descriptor. passed() returns the next received descriptor, or -1.
  virtual bool passes() const noexcept { return false; }
  virtual void pass(int) noexcept {}
  virtual int passed() noexcept { return -1; }
  // Returns whether the link uses shared memory. If so, a session between the link's peer and the
  // peer of another such link uses shared memory too.
  virtual bool shared() const noexcept { return false; }

 protected:
  ~Link() = default;
};

// Answers the questions that programs ask each other about their state (rounds.hpp). It is used in
// a step.
class Inquirer {
 public:
  // Handles a frame. Returns null, or a text that says what is wrong with the frame.
  virtual const char* heard(Peer& from, const Frame& f) = 0;
  virtual void gone(Peer& p) noexcept = 0;  // called when the peer's session has ended

 protected:
  ~Inquirer() = default;
};

// Further information about a peer that has ended, if this program has started the peer's program.
class Fate {
 public:
  // Returns text for people, which is appended to the reason. Not called in a step.
  virtual std::string text() noexcept = 0;
  virtual ~Fate() = default;
};

class Space : public std::enable_shared_from_this<Space> {
 public:
  // Makes a space. `name` is for people. `incarnation` 0 means a random one.
  static std::shared_ptr<Space> make(std::string name, std::uint64_t incarnation = 0) {
    struct Made : Space {
      Made(std::string n, std::uint64_t i) : Space(std::move(n), i) {}
    };
    return std::make_shared<Made>(std::move(name), incarnation);
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  class Step {
   public:
    // Begins a step. Within a step of the same space, the new step is a part of that step.
    explicit Step(Space& s) : space_(s), outer_(stepping) {
      if (outer_ == &s) return;
      space_.lock_.lock();
      stepping = &space_;
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() {
      if (outer_ != &space_) space_.end_step(outer_);
    }

   private:
    Space& space_;
    Space* const outer_;
    // Values that are destroyed in a step do not belong to the thread that happens to be in the
    // step.
    const weft::detail::NobodysValues undelivered_;
  };

  const Greeting& greeting() const noexcept { return greeting_; }

  // Records that a visitor of one of this space's sessions has its outcome. Can be called from any
  // thread.
  void decided(core::Waker* w) noexcept;
  // Answers the visitors that have their outcomes. Called in a step.
  void answer_decided() noexcept;
  // Called when the writer's answer of a commit is about to be queued at `h`. If readers of other
  // sessions were answered in this step, their answers are sent now. Otherwise the writer might be
  // answered first (WIRE.md 4.2): the frames of several commits gather in one step, and links are
  // flushed one after the other. Called in a step.
  void readers_first(const Home& h) noexcept;
  // Keeps a visitor whose session has ended and whose wake-up has not happened yet. bury() and
  // unbury() remove the visitor. Called in a step.
  void adopt(std::unique_ptr<Visitor> g) noexcept { orphans_.push_back(std::move(g)); }
  void bury(const Visitor& g) noexcept {
    std::erase_if(orphans_, [&](const std::unique_ptr<Visitor>& o) { return o.get() == &g; });
  }

  std::unique_ptr<Visitor> unbury(const Visitor& g) noexcept {
    std::unique_ptr<Visitor> mine;
    for (std::unique_ptr<Visitor>& o : orphans_)
      if (o.get() == &g) mine = std::move(o);
    std::erase(orphans_, nullptr);
    return mine;
  }

  // --- choices that span several homes (spanned.hpp), in a step ---

  std::vector<Spanned*> spans;  // the open choices that have a part here
  std::uint32_t next_rank() noexcept {
    if (++ranks_ == 0) ++ranks_;
    return ranks_;
  }
  // Called when a choice that spans several homes has ended.
  void reconsider();

  // --- untaken data of peers on other machines (untaken.hpp), in a step ---

  detail::Untaken::Count untaken{0};
  std::size_t most_untaken = detail::Untaken::most();
  // Makes room to hold `more` bytes for this home: while too many bytes are held, ends the session
  // that holds most. Returns null; or a text that says what is wrong, if that session is this
  // home's own.
  const char* relieve(const Home& h, std::size_t more) noexcept;

  // --- questions to all programs (rounds.hpp), in a step ---

  // Records that a link of this space begins (1) or ends (-1). Can be called from any thread.
  void linked(std::int32_t more) noexcept {
    links_.fetch_add(more, std::memory_order_seq_cst);
    links_of_all_.fetch_add(more, std::memory_order_seq_cst);
  }
  // Returns whether all links of this program belong to this space.
  bool has_all_links() const noexcept { return links_.load() == links_of_all_.load(); }
  Inquirer* inquirer = nullptr;
  std::unordered_set<FarEnd*> far_ends;  // the far ends that this space holds
  // After this call, new links announce that this space can be asked.
  void may_be_asked(Inquirer& by) noexcept {
    inquirer = &by;
    greeting_.profile |= Profile::rounds;
  }

  // --- ends that move (moving.hpp), in a step ---

  std::weak_ptr<Introducer> introducer;
  bool introduce(Peer& a, Peer& b);
  const std::vector<Peer*>& peers() const noexcept { return peers_; }
  // Returns the oldest session with that space that has not ended; null if there is none.
  Peer* session_with(std::uint64_t incarnation) const noexcept;
  // An end that a peer holds under the first of these keys that this space knows (WIRE.md 7.4).
  struct Lent {
    Peer* peer = nullptr;
    std::shared_ptr<Port> port;
    bool first = false;  // whether this key was the first of the keys
  };
  Lent lent(std::span<const std::uint64_t> keys) const noexcept;
  void know(std::uint64_t key, Home& at, std::uint32_t end) {
    keys_.try_emplace(key, Known{&at, end});
  }
  void forget(std::uint64_t key, const Home& at) noexcept {
    const auto it = keys_.find(key);
    if (it != keys_.end() && it->second.at == &at) keys_.erase(it);
  }
  std::uint64_t next_token() noexcept { return ++tokens_; }
  detail::Spare& spare() noexcept { return spare_; }  // used in a step
  // Returns a number that cannot be guessed, and is not zero. Making a random_device takes tens of
  // microseconds on a virtual machine, since it asks the processor for its features. So each thread
  // makes one and keeps it.
  static std::uint64_t random() {
    static thread_local std::random_device source;
    std::uint64_t n = 0;
    while (n == 0) n = static_cast<std::uint64_t>(source()) << 32 | source();
    return n;
  }
  // Returns a peer whose session has ended, for ends whose home cannot be reached.
  std::shared_ptr<Peer> nobody();
  // Destroys p after the step. In a step a peer can be the last owner of its session, and the code
  // that reports the end of an operation must not destroy that operation.
  void bury(std::shared_ptr<void> p) { buried_.push_back(std::move(p)); }

 private:
  friend class Peer;
  struct Known {
    Home* at;
    std::uint32_t end;
  };
  Space(std::string name, std::uint64_t incarnation) {
    greeting_.name = std::move(name);
    greeting_.incarnation = incarnation;
    if (incarnation == 0) greeting_.incarnation = random();
  }
  void end_step(Space* outer) noexcept;
  // Returns whether any visitor has received an outcome since gather(). Must not be called in a
  // step.
  bool anybody_decided() noexcept { return fresh_.fetch_add(0, std::memory_order_acq_rel); }
  // Moves the visitors that have received an outcome to the end of the list. Called in a step.
  void gather() noexcept;
  static inline thread_local Space* stepping = nullptr;
  static inline std::atomic<std::int32_t> links_of_all_{0};

  std::atomic<std::int32_t> links_{0};
  std::mutex lock_;
  Greeting greeting_;
  std::vector<Peer*> peers_;
  std::vector<std::unique_ptr<Visitor>> orphans_;
  std::unordered_map<std::uint64_t, Known> keys_;
  // The pairs of incarnations that were introduced to each other.
  std::set<std::pair<std::uint64_t, std::uint64_t>> acquainted_;
  std::uint64_t tokens_ = 0;
  detail::Spare spare_;  // shared by all sessions of the space, of which there can be thousands
  std::uint32_t ranks_ = 0;
  std::vector<std::shared_ptr<void>> buried_;
  // Wakers whose operation has an outcome and that are not in the list yet, the latest first.
  std::atomic<core::Waker*> fresh_{nullptr};
  // The list of wakers, in the order of their outcomes.
  core::Waker* first_ = nullptr;
  core::Waker* last_ = nullptr;
};

namespace detail {
// Returns the space. Throws BadUse if there is none.
inline Space& space_of(const std::shared_ptr<Space>& s) {
  if (!s) weft::detail::bad_use("there is no space: Space::make(name) makes this program's");
  return *s;
}
}  // namespace detail

// The space at the other end of a session. Everything but the constructor, the destructor and why()
// is called in a step.
class Peer final : public Receiver, public std::enable_shared_from_this<Peer> {
 public:
  explicit Peer(Space& s)
      : space(s.shared_from_this()),
        session(*this, s.greeting_),
        carrier(*this),
        home(session, s, carrier, s.spare()),
        far(session, carrier, s.spare()) {
    const Space::Step step(s);
    s.peers_.push_back(this);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    const Space::Step step(*space);
    session.bye("this program has closed the session");
    std::erase(space->peers_, this);
  }

  // An end that the peer has handed to this space.
  struct Offered {
    std::uint32_t end = 0;
    bool writes = false;
    std::uint64_t capacity = 0;
    std::string type, name;
    bool taken = false;
    std::uint64_t key = 0;
    Carrier::Got got;  // used if the end's home is a third space
  };
  std::vector<Offered> offered;
  Link* link = nullptr;
  // Called when an end was handed to this space, an end that this space handed out was adopted, or
  // the session has ended.
  void (*news)(Peer&) noexcept = nullptr;
  void* listener = nullptr;  // for use by `news`
  bool outside = true;       // whether the session might wake a run (LinkBase::be_outside)
  // Null if nothing more is known about the peer's end. It is written before other threads know the
  // link.
  std::shared_ptr<Fate> fate;
  // Called when the session has ended, after all operations that were under way have been notified.
  void (*ended)(Peer&) noexcept = nullptr;

  const std::shared_ptr<Space> space;
  Session session;
  Carrier carrier;
  Home home;
  Far far;

  // Returns why the session has ended, and what else is known about the peer's end. Must not be
  // called in a step.
  std::string why() const {
    return session.why() + (fate && !session.is_ours() ? fate->text() : "");
  }

  // Retires the end. Operations that wait for a credit at this end are first offered to the home
  // (WIRE.md 7.3).
  void retire(std::uint32_t end, bool died) {
    far.closing(end);
    if (Adopting* const a = adopting(end)) a->closed = !died && !a->poisoned;
    session.send(Frame{Kind::retire, 0, end, 0, 0, died ? 1u : 0u, {}});
  }
  void poison(std::uint32_t end, std::uint8_t strength) {
    far.give_up(end);
    if (Adopting* const a = adopting(end)) a->poisoned = true;
    session.send(Frame{Kind::poison, 0, end, 0, 0, strength, {}});
  }

  // Hands an end of a third space to the peer, under the name `name`. Returns null, or the reason
  // why that is not possible.
  const char* pass(const std::shared_ptr<FarEnd>& e, bool writes, const std::string& type,
                   const std::string& name);
  // Adopts an end whose home is the peer. `from` handed the end over, and holds it under the first
  // of these keys; the others are earlier keys (WIRE.md 7.4).
  std::shared_ptr<FarEnd> adopt(std::vector<std::uint64_t> keys, std::uint64_t token,
                                const std::string& type, const std::string& name, Peer& from);
  // Returns how many ends at this home were adopted and not confirmed yet.
  std::size_t being_adopted() const noexcept { return adopting_.size(); }

 private:
  void opened() override {
    if (news) news(*this);
  }
  const char* received(const Frame& f) override;
  const char* given(const Frame& f);
  const char* passed(const Frame& f);
  void adopted(const Frame& f);
  void session_over() noexcept override;
  void before_bye() noexcept override;

  // An end of the peer that this space has adopted and the home has not confirmed. If the home
  // never confirms the adoption, the end's earlier holder is notified.
  struct Adopting {
    std::uint32_t number;
    std::uint64_t token;
    std::weak_ptr<Peer> from;
    std::weak_ptr<FarEnd> end;
    // Whether this program closed the end in good order, or poisoned it, before the home has
    // confirmed the adoption.
    bool closed = false, poisoned = false;
  };
  Adopting* adopting(std::uint32_t number) noexcept {
    for (Adopting& a : adopting_)
      if (a.number == number) return &a;
    return nullptr;
  }
  std::vector<Adopting> adopting_;
  Traffic traffic_;
  std::uint32_t next_adopted_ = Home::kAdopted;
  std::uint32_t next_given_ = 0;
};

}  // namespace weft::inline WEFT_ABI::wire
