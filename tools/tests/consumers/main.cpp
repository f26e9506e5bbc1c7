// A user's program: built by each of the three ways to consume Weft. Prints the version it was
// built with.
#include <cstdio>
#include <thread>
#include <weft/version.hpp> // SWITCH to <weft/weft.hpp> when it is there: here, and nowhere else

static_assert(__cplusplus >= 202002L, "weft::weft must ask for C++20");

int main() {
  std::thread([] {
    std::printf("%s\n", weft::version.text);
  }).join(); // needs the platform's threads
}
