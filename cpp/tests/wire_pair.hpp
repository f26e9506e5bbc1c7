// Two spaces of one program, with a link between them.
#pragma once
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "weft/wire/stream.hpp"

namespace weft::test {

template <class L = wire::StreamLink>
struct Pair {
  std::shared_ptr<wire::Space> home = wire::Space::make("home"), far = wire::Space::make("far");
  int fds[2];
  std::optional<L> h, f;
  // Makes the two spaces. If `greets` is false, the home sends nothing until greet() is called.
  explicit Pair(bool greets = true) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    if (greets) greet();
    f.emplace(far, fds[1]);
  }
  void greet() { h.emplace(home, fds[0]); }
};

}  // namespace weft::test
