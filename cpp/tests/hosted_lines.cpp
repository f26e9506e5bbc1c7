// Tests the lines that reports name (rule 10.2): where threads wait, and where channels are made.
#include "hosted.hpp"

#include <functional>
#include <map>

namespace {

using namespace test;

std::string at(unsigned line) { return "hosted_lines.cpp:" + std::to_string(line); }

// Runs f in a process on a thread, and checks that f ends in a deadlock whose report contains
// `part`.
void tells(const std::function<void()>& f, const std::string& part) {
  try {
    weft::run([&] { f(); });
    FAIL("no deadlock");
  } catch (const weft::Deadlock& e) {
    const std::string report = e.what();
    CAPTURE(report);
    CAPTURE(part);
    CHECK(report.find(part) != std::string::npos);
    for (const char* header : {"blocks.hpp", "channel.hpp", "compose.hpp", "stopping.hpp",
                               "keeping", "timeout<", "stl_", "unique_ptr", "tuple"})
      CHECK(report.find(header) == std::string::npos);
  }
}

}  // namespace

// Each check must be on the line that it expects.
// clang-format off

TEST_CASE("rule 10.2: a thread waits at the line of its operation") {
  weft::Channel<int> a{weft::named("a")};
  const auto r = a.reader();
  const auto w = a.writer();
  weft::Barrier two(2);
  tells([&] { r(); }, "read 'a' at " + at(__LINE__));
  tells([&] { w(1); }, "write 'a' at " + at(__LINE__));
  const int one = 1;
  tells([&] { w(one); }, "write 'a' at " + at(__LINE__));
  tells([&] { for (int v : r) { static_cast<void>(v); } }, "read 'a' at " + at(__LINE__));
  tells([&] { r.extended()(); }, "'a' at " + at(__LINE__));
  tells([&] { weft::select(r, weft::out(w, 1).when(false))(); }, "select 'a' at " + at(__LINE__));
  tells(
      [&] {
        weft::Alternative either(weft::Mode::fair, r);
        either.select()();
      },
      "select 'a' at " + at(__LINE__ - 2));
  tells([&] { weft::par_read(std::vector{r})(); }, "read 'a' at " + at(__LINE__));
  tells([&] { weft::par_write(std::vector{w}, std::vector{1})(); }, "write 'a' at " + at(__LINE__));
  tells([&] { two.sync()(); }, "at " + at(__LINE__));
  tells([&] { weft::sleep(weft::Span::max())(); }, "sleep at " + at(__LINE__));
  weft::ChannelHandle<int> h{weft::named("h")};
  const auto both = h;  // The handle keeps both sides open.
  tells([=] { h(); }, "read 'h' at " + at(__LINE__));
  tells([=] { h(1); }, "write 'h' at " + at(__LINE__));
}

TEST_CASE("rule 10.2: a function that becomes a thread stands at no line of the library's") {
  weft::Channel<int> a{weft::named("a")};
  const auto r = a.reader();
  const auto w = a.writer();
  const auto worker = [](weft::Reader<int> in) { in(); };
  const std::string here = "read 'a' at " + at(__LINE__ - 1);
  tells([&] { weft::run(weft::proc(worker, r)); }, here);
  tells([&] { weft::par{[&] { r(); }, [&] { r(); }}(); }, "read 'a' at " + at(__LINE__));
  tells([&] { weft::run(weft::par_for(0, 2, [&](int) { r(); })); }, "read 'a' at " + at(__LINE__));
  tells([&] { weft::run(std::vector<std::function<void()>>{[&] { r(); }}); }, "read 'a' at " + at(__LINE__));
  tells(
      [&] {
        weft::Group g;
        g.start([&] { r(); });
        g.wait()();
      },
      "read 'a' at " + at(__LINE__ - 3));
  tells([&] { weft::spawn([&] { r(); }); }, "read 'a' at " + at(__LINE__));
}

TEST_CASE("rule 10.2: blocks of coroutines stand at the program's lines, under names of the program's or the block's") {
  weft::Channel<int> a{weft::named("a")}, b{weft::named("b")};
  const auto r = a.reader(), other = b.reader();
  const auto w = a.writer();
  std::vector<weft::Reader<int>> both{r, other};
  const auto reads = [&]() -> weft::Process { co_await r.read(); };
  const std::string there = "/operator(): read 'a' at " + at(__LINE__ - 1);
  tells([&] { weft::par_for(0, 2, [&](int) { return r.read(); })(); }, "thread/par_for[1]: read 'a' at " + at(__LINE__));
  tells([&] { weft::par_for(both, [](const auto& one) { return one.read(); })(); }, "thread/par_for[0]: read 'a' at " + at(__LINE__));
  tells([&] { weft::par_for(0, 1, [&](int) { return w.write(1); })(); }, "thread/par_for: write 'a' at " + at(__LINE__));
  tells([&] { weft::par_for(0, 1, [&](int) { return weft::select(r, other); })(); }, "thread/par_for: select 'a', 'b' at " + at(__LINE__));
  tells([&] { weft::par_for(0, 1, [&](int) { return weft::par_read(both); })(); }, "thread/par_for: read 'a', 'b' at " + at(__LINE__));
  tells([&] { weft::par_for(0, 1, [&](int) { return reads(); })(); }, "thread" + there);
  tells([&] { weft::run(weft::timeout(weft::Span::max(), weft::par_for(0, 1, [&](int) { return r.read(); }))); }, "thread/timeout/par/par_for: read 'a' at " + at(__LINE__));
  tells([&] { weft::run(weft::timeout(weft::Span::max(), reads())); }, "thread/timeout" + there);
  tells([&] { weft::par{[&] { return reads(); }, reads()}(); }, "thread/closure" + there);
  tells([&] { weft::seq{weft::par{[&] { return reads(); }}, reads()}(); }, "thread/seq/par/closure" + there);
  tells([&] { weft::run(weft::proc([&](int) { return reads(); }, 1)); }, "thread/closure" + there);
}

TEST_CASE("rule 10.2: what the standard library makes is named by the program's line") {
  const auto one = std::make_unique<weft::Channel<int>>();
  const auto one_writer = one->writer();
  const std::string first_use = "read " + at(__LINE__ - 1) + " at ";
  tells([r = one->reader()] { r(); }, first_use + at(__LINE__));

  std::vector<weft::Channel<int>> many(2);
  tells([&] { many[1].reader()(); }, "read " + at(__LINE__) + " at " + at(__LINE__));
  std::map<int, weft::Channel<int, weft::Shared>> keyed;
  tells([&] { keyed[1].writer()(1); }, "write " + at(__LINE__) + " at " + at(__LINE__));
  std::optional<weft::Channel<int>> perhaps;
  perhaps.emplace();
  tells([&] { perhaps->reader()(); }, "read " + at(__LINE__));
  const auto buffered = std::make_shared<weft::Channel<int>>(weft::buffer(1));
  tells([&] { buffered->reader()(); }, "read " + at(__LINE__));
  const auto named = std::make_shared<weft::Channel<int>>(weft::named("n"));
  tells([&] { named->reader()(); }, "read 'n' at " + at(__LINE__));
  const auto handle = std::make_unique<weft::ChannelHandle<int>>();
  tells([&] { (*handle)(); }, "read " + at(__LINE__));

  // A conversion to an end and the use of a barrier give no line.
  const weft::Reader<int> converted = many[0];
  CHECK(many[0].name() == "'a channel that the standard library made'");
  const auto two = std::make_unique<weft::Barrier>(2);
  tells([&] { two->sync()(); }, "sync 'a barrier that the standard library made' at " + at(__LINE__));
}
