// Tests the queue of a worker of a multi-core executor (runtime/deque.hpp): which processes its
// owner takes, and which a thief takes (rules 15.5, 15.7).
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "hosted.hpp"
#include "weft/runtime/deque.hpp"

namespace weft::test {
namespace {

using runtime::StealQueue;

struct Job : runtime::ProcessBase {};

// Jobs 0, 1, 2, …; the letter at a job's place names the job's group, and '.' stands for no group.
// The queue never dereferences a group.
class Jobs {
 public:
  explicit Jobs(std::string_view groups) : jobs_(groups.size()) {
    for (std::size_t i = 0; i < groups.size(); ++i)
      jobs_[i].group = groups[i] == '.'
                           ? nullptr
                           : reinterpret_cast<runtime::Group*>(places_ + 16 * (groups[i] - 'a'));
  }
  void push_all(StealQueue& q) {
    for (Job& j : jobs_) q.push(&j);
  }
  int number(const core::Waker* w) const {
    return static_cast<int>(static_cast<const Job*>(w) - jobs_.data());
  }
  Job& operator[](std::size_t i) { return jobs_[i]; }
  std::vector<int> stolen(StealQueue& q) const {
    std::vector<int> r;
    for (core::Waker* w = q.steal(); w; w = core::next_of(w)) r.push_back(number(w));
    return r;
  }
  std::vector<int> taken(StealQueue& q) const {
    std::vector<int> r;
    while (const runtime::ProcessBase* p = q.take(1)) r.push_back(number(p));
    return r;
  }

 private:
  std::vector<Job> jobs_;
  alignas(16) char places_[16 * 26] = {};
};

using Numbers = std::vector<int>;

TEST_CASE(
    "queue of a worker: first come, first served; who takes one marks it (rules 15.5, 15.7)") {
  Jobs jobs("abc");
  StealQueue q;
  CHECK(q.take(3) == nullptr);
  jobs.push_all(q);
  CHECK(q.size() == 3);
  runtime::ProcessBase* const p = q.take(3);
  CHECK(jobs.number(p) == 0);
  CHECK(p->runs_on.load() == 3);
  CHECK(jobs.taken(q) == Numbers{1, 2});
  CHECK(q.size() == 0);
}

TEST_CASE(
    "queue of a worker: one that is not wholly suspended yet is passed over, and keeps no other "
    "from running (rule 15.5)") {
  Jobs jobs("aaa");
  StealQueue q;
  jobs.push_all(q);
  jobs[0].runs_on = 2;
  jobs[1].runs_on = 2;
  CHECK(jobs.number(q.take(1)) == 2);
  CHECK(q.take(1) == nullptr);
  CHECK(q.size() == 2);
  jobs[0].runs_on = 0;
  CHECK(jobs.number(q.take(1)) == 0);
  jobs[1].runs_on = 0;
  CHECK(jobs.number(q.take(1)) == 1);
  CHECK(q.size() == 0);
}

TEST_CASE("queue of a worker: a thief takes the older half of one group") {
  for (const std::string_view all : {"aaaaa", "....."}) {
    Jobs jobs(all);
    StealQueue q;
    CHECK(jobs.stolen(q).empty());
    jobs.push_all(q);
    CHECK(jobs.stolen(q) == Numbers{0, 1, 2});
    CHECK(q.size() == 2);
    CHECK(jobs.taken(q) == Numbers{3, 4});
  }
}

TEST_CASE(
    "queue of a worker: a thief takes whole groups, the oldest first; what it takes and what it "
    "leaves stay in order (rule 15.7)") {
  Jobs jobs("abcdabcd");
  StealQueue q;
  jobs.push_all(q);
  CHECK(jobs.stolen(q) == Numbers{0, 1, 4, 5});
  CHECK(jobs.taken(q) == Numbers{2, 3, 6, 7});
}

TEST_CASE("queue of a worker: the group of which one was taken last is left to its worker") {
  Jobs jobs("aabbcc");
  StealQueue q;
  jobs.push_all(q);
  CHECK(jobs.number(q.take(1)) == 0);
  CHECK(jobs.stolen(q) == Numbers{2, 3});  // Half would be three jobs; group c is not split.
  CHECK(jobs.taken(q) == Numbers{1, 4, 5});
}

TEST_CASE(
    "queue of a worker: that group is torn apart if there is no other, and the thief will have it "
    "so") {
  Jobs jobs("aaaa");
  StealQueue q;
  jobs.push_all(q);
  CHECK(jobs.number(q.take(1)) == 0);
  CHECK(q.steal(false) == nullptr);
  CHECK(q.size() == 3);
  CHECK(jobs.stolen(q) == Numbers{1, 2});
  CHECK(jobs.taken(q) == Numbers{3});
}

TEST_CASE("queue of a worker: other groups are taken by a thief who tears none apart") {
  Jobs jobs("aab");
  StealQueue q;
  jobs.push_all(q);
  CHECK(jobs.number(q.take(1)) == 0);
  CHECK(jobs.number(q.steal(false)) == 2);
  CHECK(jobs.taken(q) == Numbers{1});
}

TEST_CASE(
    "queue of a worker: of a group that is more than half the oldest are taken; one that does not "
    "fit any more stays") {
  Jobs big("abaaaaab");
  StealQueue q;
  big.push_all(q);
  CHECK(big.stolen(q) == Numbers{0, 2, 3, 4});
  CHECK(big.taken(q) == Numbers{1, 5, 6, 7});

  Jobs late("abbbbcdd");
  late.push_all(q);
  CHECK(late.stolen(q) == Numbers{0, 5, 6, 7});
  CHECK(late.taken(q) == Numbers{1, 2, 3, 4});
}

TEST_CASE(
    "queue of a worker: a long queue loses no more than a thief may take, and only from its "
    "beginning") {
  constexpr int kAll = 10 * StealQueue::kMaxStolen;
  Jobs jobs(std::string(kAll, 'a'));
  StealQueue q;
  jobs.push_all(q);
  Numbers expected;
  for (int i = 0; i < static_cast<int>(StealQueue::kMaxStolen); ++i) expected.push_back(i);
  CHECK(jobs.stolen(q) == expected);
  CHECK(q.size() == kAll - StealQueue::kMaxStolen);
  const Numbers rest = jobs.taken(q);
  REQUIRE(rest.size() == kAll - StealQueue::kMaxStolen);
  for (std::size_t i = 0; i < rest.size(); ++i)
    CHECK(rest[i] == static_cast<int>(StealQueue::kMaxStolen + i));
}

TEST_CASE(
    "queue of a worker: any groups, any order: nothing is lost or doubled, and no group in the "
    "middle of the loot is torn") {
  std::uint32_t seed = 20261122;
  const auto random = [&](std::uint32_t n) {
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    return seed % n;
  };
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::string groups;
    const std::uint32_t n = 1 + random(30), kinds = 1 + random(8);
    for (std::uint32_t i = 0; i < n; ++i) groups += static_cast<char>('a' + random(kinds));
    CAPTURE(groups);
    Jobs jobs(groups);
    StealQueue q;
    jobs.push_all(q);
    std::vector<int> seen(n, 0);
    char ran = 0;
    if (random(2)) {
      const int first = jobs.number(q.take(1));
      ++seen[static_cast<std::size_t>(first)];
      ran = groups[static_cast<std::size_t>(first)];
    }
    const std::uint32_t half = (q.size() + 1) / 2;
    const Numbers loot = jobs.stolen(q);
    CHECK(loot.size() <= half);
    CHECK((q.size() == 0 || !loot.empty()));
    const Numbers rest = jobs.taken(q);
    CHECK(std::is_sorted(loot.begin(), loot.end()));
    CHECK(std::is_sorted(rest.begin(), rest.end()));
    for (const int i : loot) ++seen[static_cast<std::size_t>(i)];
    for (const int i : rest) ++seen[static_cast<std::size_t>(i)];
    CHECK(std::all_of(seen.begin(), seen.end(), [](int k) { return k == 1; }));
    // At most one group of the loot has members on both sides: its first group, or, if there was no
    // other, the group of the job that ran.
    for (std::size_t k = 0; k < loot.size(); ++k) {
      const char g = groups[static_cast<std::size_t>(loot[k])];
      if (g == groups[static_cast<std::size_t>(loot[0])]) continue;
      CHECK(g != ran);
      CHECK(std::none_of(rest.begin(), rest.end(),
                         [&](int i) { return groups[static_cast<std::size_t>(i)] == g; }));
    }
  }
}

}  // namespace
}  // namespace weft::test
