// The workers of the thesis's design: C++ threads that speak JSON over ZeroMQ PAIR sockets.
// ../py/thesis_design.py compiles and loads this file.
#include <pthread.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "../../cpp/thesis_work.hpp"

namespace {
std::vector<std::thread> threads;

void worker(const std::string& address, const std::string& workload, std::uint64_t messages) {
  const thesis::Work work = thesis::work_of(workload);
  zmq::context_t context;  // one context for each worker, as in the thesis
  zmq::socket_t pair(context, zmq::socket_type::pair);
  pair.connect(address);
  const auto say = [&](std::uint64_t value) {
    pair.send(zmq::buffer(nlohmann::json{{"value", value}}.dump()), zmq::send_flags::none);
  };
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < messages; ++i) {  // the worker speaks first
    say(value);
    zmq::message_t m;
    if (!pair.recv(m)) return;
    value = work(nlohmann::json::parse(m.to_string_view())
                     .at("__value__")
                     .at("values")
                     .at(0)
                     .get<std::uint64_t>());
  }
  say(value);
}
}  // namespace

extern "C" void start(const char* address, const char* workload, std::uint64_t messages, int cpu) {
  threads.emplace_back([a = std::string(address), w = std::string(workload), messages, cpu] {
    if (cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpu, &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    worker(a, w, messages);
  });
}
extern "C" void join() {
  for (std::thread& t : threads) t.join();
  threads.clear();
}
