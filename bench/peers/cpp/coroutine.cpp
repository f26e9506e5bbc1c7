// A bound: measures the cost of one resume of a bare C++20 coroutine, through a queue of ready
// coroutines and without a channel.
//
// Invariant: each of the coroutines is in the queue exactly once, except the one that runs.
#include <coroutine>
#include <exception>

#include "../../cpp/sampler.hpp"

namespace {

struct Ready {
  Ready* next = nullptr;
  std::coroutine_handle<> handle;
};

Ready* head = nullptr;
Ready* tail = nullptr;

void push(Ready& r) {
  r.next = nullptr;
  (tail ? tail->next : head) = &r;
  tail = &r;
}

struct Turn {
  struct promise_type {
    Ready ready;
    Turn get_return_object() {
      ready.handle = std::coroutine_handle<promise_type>::from_promise(*this);
      return {&ready};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  Ready* ready;
};

struct Requeue {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<Turn::promise_type> h) noexcept {
    push(h.promise().ready);
  }
  void await_resume() const noexcept {}
};

long turns = 0;

Turn spin() {
  for (;;) {
    ++turns;
    co_await Requeue{};
  }
}

void resume(long n) {
  for (long i = 0; i < n; ++i) {
    Ready* r = head;
    head = r->next;
    if (!head) tail = nullptr;
    r->handle.resume();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: coroutine SAMPLES PER");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  Turn all[4] = {spin(), spin(), spin(), spin()};
  for (Turn& t : all) push(*t.ready);
  resume(per);
  bench::Sampler s(samples);
  for (long k = 0; k < samples; ++k) {
    s.begin();
    resume(per);
    s.end(static_cast<double>(per));
  }
  if (turns != per * (samples + 1)) bench::fail("coroutine: turns were lost");
  s.print();
  for (Turn& t : all) t.ready->handle.destroy();
}
