// Rules 14.9 to 14.11: the contents of a look from outside, and the answers to messages at the door
// (runtime/door.hpp).
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include <weft/inspect.hpp>
#include <weft/runtime/look.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

using weft::runtime::Look;

std::string framed(const std::string& json) {
  std::string s;
  for (const int shift : {24, 16, 8, 0}) s += static_cast<char>(json.size() >> shift);
  return s + json;
}
std::string reply_to(const std::string& json) {
  weft::detail::Answers answers;
  const std::string s = answers.take(framed(json));
  return s.size() < 4 ? "" : s.substr(4);
}

struct Looked {
  Look look;
  std::map<std::string, Look::Row> rows;
  std::map<std::string, Look::Channel> channels;
  void once(std::size_t most = 100) {
    look.begin();
    look.sample();
    Look::Found found = look.end(most);
    rows.clear();
    channels.clear();
    for (auto& r : found.rows) rows[r.path] = r;
    for (auto& c : found.channels) channels[c.name] = c;
  }
};

template <class P>
Process writes(weft::Writer<int, P> w) {
  co_await w.write(1);
}
template <class P>
Process chooses(weft::Reader<int, P> r) {
  co_await weft::select(r, weft::after(100s));
}

}  // namespace

TEST_CASE_TEMPLATE("rule 14.10: where processes at rest are, and what has passed", P, POLICIES) {
  weft::Channel<int, P> a{weft::named("a")}, b{weft::named("b")}, c{weft::buffer(4).called("c")};
  Looked seen;
  bool in_time = false;
  weft::Channel<int> go{weft::named("go")};
  weft::run(
      writes<P>(a.writer()).named("writes"), chooses<P>(b.reader()).named("chooses"),
      [](weft::Writer<int, P> w, weft::Reader<int> until) -> Process {
        for (int i = 0; i < 3; ++i) co_await w.write(i);
        co_await until.read();
      }(c.writer(), go.reader())
                                                                 .named("fills"),
      [](weft::Channel<int, P> one, weft::Channel<int, P> two, Looked& to, bool& when,
         weft::Writer<int> goes) -> Process {
        for (int i = 0; i < 5; ++i) co_await weft::yield();
        // The scheduler is busy with this process, so it serves the look after this step.
        std::thread outside([&] {
          to.once();
          when = true;
        });
        while (!std::atomic_ref(when).load()) co_await weft::yield();
        outside.join();
        one.poison();
        two.poison();
        co_await goes.write(0);
      }(a, b, seen, in_time, go.writer())
                                        .named("main_one"));
  CHECK(seen.rows.size() == 4);
  const Look::Row& w = seen.rows["main/writes"];
  CHECK(w.now == Look::writes);
  CHECK(has(w.does, "write 'a' at hosted_inspect.cpp:"));
  REQUIRE(w.waits.size() == 1);
  CHECK(w.waits[0].second);
  CHECK(w.holds == w.waits);
  CHECK(w.kind == std::string("coroutine"));
  const Look::Row& s = seen.rows["main/chooses"];
  CHECK(s.now == Look::reads);
  CHECK(has(s.does, "select 'b' at "));
  CHECK(s.found[Look::reads] == 1);
  CHECK(seen.rows["main/fills"].now == Look::reads);
  CHECK(seen.rows["main/fills"].holds.size() == 2);
  CHECK(seen.channels["'c'"].depth == 3);
  CHECK(seen.channels["'c'"].capacity == 4);
  CHECK(seen.channels["'a'"].waits[1] == 1);
  CHECK(seen.channels["'b'"].waits[0] == 1);
}

TEST_CASE("rule 14.10: a thread that waits, and one that runs") {
  weft::Channel<int> a{weft::named("a")};
  Looked seen;
  weft::run(weft::thread([r = a.reader()] { r(); }).named("waits"),
            weft::thread([&, w = a.writer()] {
              do {
                seen.once();
              } while (!has(seen.rows["main/waits"].does, "read 'a' at "));
              w(1);
            }).named("looks"));
  CHECK(seen.rows["main/looks"].now == Look::runs);
  CHECK(seen.rows["main/looks"].kind == std::string("thread"));
  CHECK(has(seen.rows["main/waits"].does, "read 'a' at hosted_inspect.cpp:"));
}

TEST_CASE("rules 14.9, 10.1: a deadlock and a virtual clock are as they are without a look") {
  std::atomic<bool> over{false};
  std::thread looks([&] {
    Look look;
    while (!over) {
      look.begin();
      look.sample();
      look.end(100);
      Look::stuck(weft::detail::wait_op);
    }
  });
  for (int i = 0; i < 30; ++i) {
    weft::Channel<int> a, b;
    const std::string text = thrown([&] {
      weft::run(virtually, send_all<weft::Shared>(a.writer(), {1, 2}), naps(3s),
                [](weft::Reader<int> r, weft::Reader<int> never) -> Process {
                  co_await weft::sleep(2s);
                  CHECK(co_await r.read() == 1);
                  co_await never.read();
                }(a.reader(), b.reader()));
    });
    REQUIRE(has(text, "deadlock: "));
  }
  over = true;
  looks.join();
}

TEST_CASE("rule 14.9: networks come and go while others look") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::atomic<bool> over{false};
  const auto looks = [&] {
    Look look;
    for (unsigned n = 0; !over; ++n) {
      look.begin();
      for (int i = 0; i < 3; ++i) look.sample();
      for (const Look::Row& r : look.end(n % 3 ? 1000 : 2).rows)
        if (r.path.rfind("main/", 0) != 0) std::abort();
      if (n % 4 == 0) Look::stuck(weft::detail::wait_op);
    }
  };
  std::thread first(looks), second(looks);
  for (int i = 0; i < 25; ++i) {
    weft::Channel<int> a, b{weft::buffer(2).called("b")}, c;
    std::vector<int> got;
    std::vector<int> values(random() % 200);
    for (int& v : values) v = static_cast<int>(random());
    weft::RunOptions o;
    if (random() % 2) o.cores = 2;
    const auto stage = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
      for (;;) {
        auto [k, x] = co_await weft::select(weft::in(r).ends(), weft::after(1000s));
        co_await w.write(*x);
      }
    };
    weft::run(o, send_all<weft::Shared>(a.writer(), values),
              stage(a.reader(), b.writer()).named("stage"),
              weft::thread([r = b.reader(), w = c.writer()] {
                for (;;) w(r());
              }).named("thread"),
              collect<weft::Shared>(c.reader(), got));
    REQUIRE(got == values);
  }
  over = true;
  first.join();
  second.join();
}

TEST_CASE("rule 14.9: what is no request is refused with a sentence") {
  for (const auto& [json, said] : std::initializer_list<std::pair<const char*, const char*>>{
           {"abc", "a message that is not JSON"},
           {"", "a message that is not JSON"},
           {"{\"weft\":1,}", "a message that is not JSON"},
           {"{\"weft\":01}", "a message that is not JSON"},
           {"{\"weft\":1,\"ask\":\"\\x\"}", "a message that is not JSON"},
           {"{\"weft\":1,\"ask\":\"\xff\"}", "a message that is not JSON"},
           {"[1]", "does not say which version of the protocol"},
           {"{\"ask\":\"who\"}", "does not say which version of the protocol"},
           {"{\"weft\":2,\"ask\":\"who\"}", "a message of version 2 of the protocol"},
           {"{\"weft\":\"1\"}", "a message of version ? of the protocol"},
           {"{\"weft\":1}", "the question must be"},
           {"{\"weft\":1,\"ask\":[\"who\",{\"a\":null}]}", "the question must be"},
           {"{\"weft\":1,\"ask\":\"look\",\"interval\":61}", "the interval must be from 0 to 60 s"},
           {"{\"weft\":1,\"ask\":\"look\",\"interval\":1e999}", "the interval must be"},
           {"{\"weft\":1,\"ask\":\"look\",\"most\":1.5}", "the number of processes must be"},
           {"{\"weft\":1,\"ask\":\"flight\"}", "the path of the file must be absolute"},
           {"{\"weft\":1,\"ask\":\"flight\",\"path\":\"/a\\u0000b\"}", "the path of the file"}})
    CHECK(has(reply_to(json), said));
  CHECK(has(reply_to(std::string("{\"weft\":1,\0\"ask\":\"who\"}", 23)), "that is not JSON"));
  CHECK(has(reply_to(std::string("{\"weft\":1}\0", 11)), "that is not JSON"));
  std::string deep = "{\"weft\":";
  for (int i = 0; i < 1000; ++i) deep += '[';
  CHECK(has(reply_to(deep), "a message that is not JSON"));
  CHECK(has(reply_to(" { \"weft\" : 1 , \"ask\" : \"wh\\u006f\" } "), "\"language\":\"C++\""));
  weft::detail::Answers answers;
  CHECK(has(answers.take(std::string("\xff\xff\xff\xff", 4)), "a message of 4294967295 bytes"));
  CHECK(answers.over);
  weft::detail::Answers one_byte_at_a_time;
  std::string got;
  for (const char c : framed("{\"weft\":1,\"ask\":\"who\"}") + framed("{\"weft\":1,\"ask\":\"x\"}"))
    got += one_byte_at_a_time.take({&c, 1});
  CHECK(has(got, "\"version\""));
  CHECK(has(got, "the question must be"));
  CHECK_FALSE(one_byte_at_a_time.over);
}

TEST_CASE("rule 14.9: any bytes are answered or refused") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string whole = "{\"weft\":1,\"ask\":\"look\",\"interval\":0,\"most\":2e0,\"x\":[{}]}";
  for (int i = 0; i < 3'000; ++i) {
    std::string s = whole;
    for (unsigned n = random() % 4; n > 0; --n)
      s[random() % s.size()] = static_cast<char>(random() % 3 ? "{}[]\",:\\u0"[random() % 10]
                                                              : static_cast<int>(random()));
    if (random() % 8 == 0) s.resize(random() % s.size());
    const std::string a = reply_to(s);
    CHECK(has(a, "{\"weft\":1,"));
  }
}
