// Rule 18.9: the bridge to Asio. with_library.py compiles this file with stand-alone Asio and with
// Boost.Asio, if they are installed.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/asio.hpp>
#if WEFT_BOOST_ASIO
#include <boost/asio.hpp>
namespace net = boost::asio;
#else
#include <asio.hpp>
namespace net = asio;
#endif

using namespace std::chrono_literals;
using weft::Process;
using weft::use_weft;

namespace {

namespace net_local = net::local;
using Socket = net_local::stream_protocol::socket;

// An io_context, and the thread that runs it.
struct Loop {
  net::io_context io;
  net::executor_work_guard<net::io_context::executor_type> work{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    work.reset();
    thread.join();
  }
};

struct Pair {
  Socket a, b;
  explicit Pair(net::io_context& io) : a(io), b(io) { net_local::connect_pair(a, b); }
};

TEST_CASE("rule 18.9: what a handler would get is what the operation returns") {
  Loop loop;
  Pair s(loop.io);
  const auto echoes = [](Socket& x) -> Process {
    char bytes[100];
    const std::size_t n = co_await x.async_read_some(net::buffer(bytes), use_weft);
    co_await net::async_write(x, net::buffer(bytes, n), use_weft);
  };
  const auto asks = [](Socket& x) -> Process {
    co_await net::async_write(x, net::buffer("hello", 5), use_weft);
    char bytes[5];
    CHECK(co_await net::async_read(x, net::buffer(bytes), use_weft) == 5);
    CHECK(std::string(bytes, 5) == "hello");
    net::steady_timer timer(x.get_executor(), 1ms);
    co_await timer.async_wait(use_weft);
    co_await net::post(x.get_executor(), use_weft);
  };
  for (const unsigned cores : {1u, 2u}) weft::run({.cores = cores}, echoes(s.b), asks(s.a));
  // In a thread process, the operation is called, not awaited.
  net::write(s.b, net::buffer("x", 1));
  weft::run(weft::thread([&] {
    char c[1];
    CHECK(s.a.async_read_some(net::buffer(c), use_weft)() == 1);
  }));
}

TEST_CASE("rule 18.9: an error is thrown") {
  Loop loop;
  Pair s(loop.io);
  s.b.close();
  bool ended = false;
  const auto reads = [](Socket& x, bool& end) -> Process {
    char c[1];
    try {
      co_await x.async_read_some(net::buffer(c), use_weft);
    } catch (const weft::detail::bridge::SystemError& e) {
      end = e.code() == net::error::eof;
    }
  };
  weft::run(reads(s.a, ended));
  CHECK(ended);
}

TEST_CASE("rule 18.9: an operation that cannot begin throws why") {
  const auto begins = []() -> Process {
    bool told = false;
    try {
      co_await net::async_initiate<const weft::use_weft_t&, void()>(
          [](auto&&) { throw std::invalid_argument("no"); }, use_weft);
    } catch (const std::invalid_argument&) {
      told = true;
    }
    CHECK(told);
  };
  weft::run(begins());
}

TEST_CASE("rules 7.12, 18.9: a limit and a cancellation end the operation, and take no byte") {
  Loop loop;
  Pair s(loop.io);
  bool limited = false, cancelled = false;
  const auto reads = [](Socket& x, bool& told) -> Process {
    char c[1];
    try {
      co_await x.async_read_some(net::buffer(c), use_weft);
    } catch (const weft::Cancelled&) {
      told = true;
    }
  };
  const auto all = [reads](Socket& x, Socket& other, bool& limit_told, bool& told) -> Process {
    char c[2];
    try {
      weft::Timeout limit(1ms);
      co_await x.async_read_some(net::buffer(c), use_weft);
    } catch (const weft::TimedOut&) {
      limit_told = true;
    }
    weft::Group g;
    g.start(reads(x, told));
    co_await weft::yield();
    g.cancel();
    co_await g.wait();
    co_await net::async_write(other, net::buffer("ab", 2), use_weft);
    CHECK(co_await net::async_read(x, net::buffer(c), use_weft) == 2);
  };
  weft::run(all(s.a, s.b, limited, cancelled));
  CHECK(limited);
  CHECK(cancelled);
}

TEST_CASE("rules 10.3, 18.9: a wait for Asio is outside, until it is over") {
  Loop loop;
  const auto waits = [](net::io_context& io, weft::Reader<int> r) -> Process {
    net::steady_timer timer(io, 5ms);
    co_await timer.async_wait(use_weft);
    co_await r.read();
  };
  weft::Channel<int> c;
  const auto keeps = c.writer();
  CHECK_THROWS_AS(weft::run(waits(loop.io, c.reader())), weft::Deadlock);
}

TEST_CASE("rule 18.9: an io_context that goes ends the operations") {
  bool ended = false;
  auto io = std::make_unique<net::io_context>();  // no thread runs it
  const auto waits = [](net::io_context& at, bool& end) -> Process {
    try {
      co_await net::post(at, use_weft);
    } catch (const weft::detail::bridge::SystemError& e) {
      end = e.code() == net::error::operation_aborted;
    }
  };
  const auto goes = [](std::unique_ptr<net::io_context>& at) -> Process {
    co_await weft::yield();
    at.reset();
  };
  weft::run(waits(*io, ended), goes(io));
  CHECK(ended);
}

TEST_CASE("rules 1.4, 10.3, 18.9: a handler writes to a channel, and never waits") {
  Loop loop;
  weft::Channel<int> c(weft::buffer(2));
  std::vector<int> got, refused;
  auto out = std::make_shared<weft::TryWriter<int>>(c.writer());
  net::post(loop.io, [out, &refused] {
    for (int i = 0; i < 4; ++i)
      if (!out->try_write(i)) refused.push_back(i);
    out->retire();
  });
  out.reset();
  const auto reads = [](weft::Reader<int> r, std::vector<int>& into) -> Process {
    while (const auto v = co_await r.next()) into.push_back(*v);
  };
  std::promise<void> written;
  net::post(loop.io, [&written] { written.set_value(); });
  written.get_future().wait();
  weft::run(reads(c.reader(), got));
  CHECK(got == std::vector{0, 1});
  CHECK(refused == std::vector{2, 3});
}

}  // namespace
