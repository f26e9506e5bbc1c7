// A carrier of slots without a link.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <deque>

namespace weft::test {

// Passes descriptors from one space to another.
struct Pipe {
  std::uint64_t from, to;
  std::deque<int> fds{};
  std::size_t passed_ever = 0;
  bool can = true;
  bool passes() const { return can; }
  void pass(int fd) { fds.push_back(fd), ++passed_ever; }
  int passed() {
    if (fds.empty()) return -1;
    const int fd = fds.front();
    fds.pop_front();
    return fd;
  }
  // The receiving space, by the name that the sender uses, and by the name that the receiver uses.
  std::uint64_t theirs() const { return to; }
  std::uint64_t mine() const { return to; }
  bool lacks_room = false;
  void no_room() { lacks_room = true; }
  ~Pipe() {
    for (const int fd : fds) ::close(fd);
  }
};

}  // namespace weft::test
