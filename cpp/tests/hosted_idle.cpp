// Tests rule 15.8 by the system's counts for a thread: how often the thread has been switched, and
// how much CPU time it has used.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "hosted.hpp"

using namespace test;

namespace {

// The state, the switches and the ticks of a thread of this program. If two readings are equal, the
// thread has slept in between.
std::string state_and_ticks(long thread) {
  const std::string folder = "/proc/self/task/" + std::to_string(thread);
  std::ifstream status(folder + "/status"), stat(folder + "/stat");
  std::string all;
  for (std::string line; std::getline(status, line);)
    if (has(line, "State:") || has(line, "ctxt_switches")) all += line + "\n";
  std::string line, word;
  std::getline(stat, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  for (int i = 3; i <= 15 && fields >> word; ++i)
    if (i >= 14) all += word + "\n";  // fields 14 and 15: utime, stime
  return all;
}

}  // namespace

TEST_CASE(
    "rule 15.8: executors that have nothing to do do nothing, and a timer that is far changes "
    "nothing") {
  constexpr int threads = 5;
  weft::Cores pool(2);
  weft::Core one;
  weft::Channel<int> gate;
  std::mutex m;
  std::map<long, std::string> idle;  // the threads of the executors, each with its state and ticks
  std::atomic<int> here{0};

  // Each process occupies a thread before it waits.
  auto waits = [&](weft::Reader<int> r) -> Process {
    {
      const std::lock_guard g(m);
      idle[syscall(SYS_gettid)];
    }
    for (++here; here < threads;) std::this_thread::yield();
    co_await weft::select(r, weft::after(1h));
  };
  // While this thread sleeps and wakes fifty times, no thread of an executor may wake. Before that,
  // the executors' threads are given time to fall asleep.
  bool slept = false;
  auto looks = weft::thread([&, w = gate.writer()] {
    while (here < threads) std::this_thread::yield();
    for (int attempt = 0; attempt < 40 && !slept; ++attempt) {
      for (auto& [thread, was] : idle) was = state_and_ticks(thread);
      for (int i = 0; i < 50; ++i) std::this_thread::sleep_for(1ms);
      slept = true;
      for (auto& [thread, was] : idle)
        slept = slept && has(was, "S (sleeping)") && was == state_and_ticks(thread);
    }
  });
  constexpr weft::RunOptions two_cores{weft::Clock::steady, 2};
  weft::run(two_cores, waits(gate.reader()), waits(gate.reader()), waits(gate.reader()).on(pool),
            waits(gate.reader()).on(pool), waits(gate.reader()).on(one), std::move(looks));
  CHECK(idle.size() == threads);
  CHECK(slept);
}
