// Tests a scheduler's run queue: the first process in is the first out (rule 15.2), by each
// function with which a scheduler's loop takes processes from it.
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "task.hpp"

using namespace weft;
using core::RunQueue;
using core::Waker;

namespace {

std::vector<Waker*> all_of(RunQueue& q) {
  std::vector<Waker*> r;
  while (!q.empty()) r.push_back(q.pop());
  return r;
}
std::vector<Waker*> addresses(std::vector<Waker>& ws) {
  std::vector<Waker*> r;
  for (Waker& w : ws) r.push_back(&w);
  return r;
}

}  // namespace

TEST_CASE("rule 15.2: who was pushed first is taken first") {
  std::vector<Waker> ws(5);
  RunQueue q;
  CHECK(q.empty());
  CHECK(q.front() == nullptr);
  for (Waker& w : ws) q.push(&w);
  CHECK_FALSE(q.empty());
  CHECK(q.front() == &ws[0]);
  CHECK(all_of(q) == addresses(ws));
  CHECK(q.empty());
  CHECK(q.front() == nullptr);
}

TEST_CASE("rule 15.2: a queue that was emptied serves on, and again") {
  std::vector<Waker> ws(2);
  RunQueue q;
  for (int round = 0; round < 3; ++round) {
    q.push(&ws[0]);
    CHECK(q.pop() == &ws[0]);
    CHECK(q.empty());
    q.push(&ws[1]);
    q.push(&ws[0]);
    CHECK(all_of(q) == std::vector<Waker*>{&ws[1], &ws[0]});
  }
}

TEST_CASE("who was taken may go while others are pushed: nothing is written to it") {
  RunQueue q;
  Waker stays, late;
  auto goes = std::make_unique<Waker>();
  q.push(goes.get());
  CHECK(q.pop() == goes.get());
  goes.reset();  // AddressSanitizer reports a later write to the link of `goes`.
  q.push(&stays);
  goes = std::make_unique<Waker>();
  q.push(goes.get());
  q.push(&late);
  CHECK(q.pop() == &stays);
  CHECK(q.pop() == goes.get());
  goes.reset();
  CHECK(q.pop() == &late);
  CHECK(q.empty());
}

TEST_CASE(
    "a loop that keeps the head to itself serves in the same order, and hears of who is pushed "
    "meanwhile") {
  std::vector<Waker> ws(4);
  RunQueue q;
  q.push(&ws[0]);
  q.push(&ws[1]);
  Waker* next = q.advance(q.front());
  CHECK(next == &ws[1]);
  CHECK_FALSE(q.empty());
  q.push(&ws[2]);
  next = q.advance(next);
  CHECK(next == &ws[2]);
  next = q.advance(next);
  CHECK(next == nullptr);
  CHECK(q.empty());
  q.push(&ws[3]);
  q.push(&ws[0]);
  CHECK(q.front() == &ws[3]);
  next = q.advance(q.front());
  CHECK(next == &ws[0]);
  q.rest_at(next);
  CHECK(all_of(q) == std::vector<Waker*>{&ws[0]});
}

TEST_CASE("a queue behind another: all in order, and the other is empty and of use") {
  std::vector<Waker> ws(5);
  RunQueue a, b;
  a.append(b);
  CHECK(a.empty());
  b.push(&ws[0]);
  a.append(b);  // Queue a is empty.
  CHECK(b.empty());
  b.push(&ws[1]);
  b.push(&ws[2]);
  a.append(b);
  CHECK(b.empty());
  a.push(&ws[3]);
  b.push(&ws[4]);
  CHECK(all_of(a) == std::vector<Waker*>{&ws[0], &ws[1], &ws[2], &ws[3]});
  CHECK(all_of(b) == std::vector<Waker*>{&ws[4]});
}

TEST_CASE("all at once, as a list that ends, also if a link was in use before") {
  std::vector<Waker> ws(3);
  RunQueue q;
  CHECK(q.release() == nullptr);
  q.push(&ws[2]);
  q.push(&ws[1]);
  q.push(&ws[0]);
  all_of(q);  // Now the link of ws[2] leads to ws[1], and so on.
  q.push(&ws[0]);
  q.push(&ws[2]);
  std::vector<Waker*> r;
  for (Waker* w = q.release(); w; w = core::next_of(w)) r.push_back(w);
  CHECK(r == std::vector<Waker*>{&ws[0], &ws[2]});
  CHECK(q.empty());
  q.push(&ws[1]);
  CHECK(q.pop() == &ws[1]);
}

// Compares the queue with a std::deque, for all operations in any order, including the functions
// with which the scheduler's loop takes processes from it.
TEST_CASE("rule 15.2: as a deque would, whatever is done") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed ", seed);
    std::mt19937 random(seed);
    const auto one_of = [&](unsigned n) { return random() % n; };
    std::vector<Waker> ws(12);
    std::deque<Waker*> model, idle;
    for (Waker& w : ws) idle.push_back(&w);
    RunQueue q;
    const auto push = [&](RunQueue& to, std::deque<Waker*>& as) {
      if (idle.empty()) return;
      std::swap(idle.front(), idle[one_of(static_cast<unsigned>(idle.size()))]);
      to.push(idle.front());
      as.push_back(idle.front());
      idle.pop_front();
    };
    const auto taken = [&](Waker* w) {
      REQUIRE(!model.empty());
      REQUIRE(w == model.front());
      model.pop_front();
      idle.push_back(w);
    };
    for (int step = 0; step < 300; ++step) {
      REQUIRE(q.empty() == model.empty());
      REQUIRE(q.front() == (model.empty() ? nullptr : model.front()));
      switch (one_of(6)) {
        case 0:
        case 1: push(q, model); break;
        case 2:
          if (!q.empty()) taken(q.pop());
          break;
        // One step of the scheduler's loop: the process that runs pushes others, and may be pushed
        // again.
        case 3: {
          Waker* w = q.front();
          for (unsigned n = one_of(8); w && n > 0; --n) {
            Waker* next = q.advance(w);
            taken(w);
            for (unsigned k = one_of(3); k > 0; --k) push(q, model);
            REQUIRE(q.empty() == model.empty());
            if (!next) next = q.front();
            w = next;
          }
          if (w) q.rest_at(w);
          break;
        }
        case 4: {
          RunQueue other;
          std::deque<Waker*> behind;
          for (unsigned k = one_of(4); k > 0; --k) push(other, behind);
          q.append(other);
          REQUIRE(other.empty());
          model.insert(model.end(), behind.begin(), behind.end());
          break;
        }
        case 5:
          if (one_of(8) != 0) break;
          for (Waker* w = q.release(); w;) {
            Waker* const next = core::next_of(w);
            taken(w);
            w = next;
          }
          REQUIRE(model.empty());
          break;
      }
    }
  }
}

namespace {
struct Slots : weft::core::Rendezvous<int, weft::Shared> {
  using Rendezvous::free_slot;
  using Rendezvous::hold_slot;
};
}  // namespace

TEST_CASE("rule 1.6: slots whose values may come back are counted to 65,535, and no further") {
  weft::core::Ring<int> ring;
  Slots slots;
  slots.ring = &ring;
  weft::core::Node last, beyond;
  for (weft::core::Node* n : {&last, &beyond}) n->set(weft::core::NodeFlags::kept);
  ring.held = ring.kept = 65'534;
  slots.hold_slot(last);
  CHECK(ring.kept == 65'535);
  CHECK(last.is(weft::core::NodeFlags::kept));
  slots.hold_slot(beyond);
  CHECK(ring.kept == 65'535);
  CHECK(ring.held == 65'536);
  CHECK(!beyond.is(weft::core::NodeFlags::kept));
  slots.free_slot(beyond);  // The place `beyond` has not been counted.
  CHECK(ring.kept == 65'535);
  slots.free_slot(last);
  CHECK(ring.kept == 65'534);
  CHECK(ring.held == 65'534);
}

TEST_CASE(
    "rule 17.2: a list of the wakers is kept beside the queue, which loses them in any order") {
  std::vector<Waker> ws(6);
  RunQueue q;
  std::vector<Waker*> seen;
  const auto look = [&](core::Link** from) {
    q.from_here(from, [&](Waker* w) { seen.push_back(w); });
    return q.end();
  };
  core::Link** end = look(nullptr);
  CHECK(seen.empty());
  for (int i = 0; i < 4; ++i) q.push(&ws[static_cast<std::size_t>(i)]);
  end = look(end);
  CHECK(seen == std::vector<Waker*>{&ws[0], &ws[1], &ws[2], &ws[3]});
  seen.clear();
  look(end);
  CHECK(seen.empty());             // No waker was pushed meanwhile.
  q.take_at(&ws[0].next, &ws[1]);  // one in the middle
  q.take_at(q.begin(), &ws[0]);    // the first
  q.take_at(&ws[2].next, &ws[3]);  // the last: the next waker is put behind ws[2]
  end = q.end();
  q.push(&ws[4]);
  look(end);
  CHECK(seen == std::vector<Waker*>{&ws[4]});
  seen.clear();
  look(nullptr);
  CHECK(seen == std::vector<Waker*>{&ws[2], &ws[4]});
  q.take(&ws[4]);
  q.take(&ws[2]);
  CHECK(q.empty());
  q.push(&ws[5]);
  CHECK(all_of(q) == std::vector<Waker*>{&ws[5]});
}
