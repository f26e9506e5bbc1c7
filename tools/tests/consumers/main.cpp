// A user's program, built in each of the three ways to consume Weft. It prints the version with
// which it was built, from a process on a thread.
#include <cstdio>
#include <weft/weft.hpp>

static_assert(__cplusplus >= 202002L, "weft::weft must ask for C++20");

weft::Process print(weft::Reader<const char*> in) { std::printf("%s\n", co_await in.read()); }

int main() {
  weft::Channel<const char*> c;
  weft::run(print(c.reader()), weft::thread([out = c.writer()] { out(weft::version.text); }));
}
